import Dispatch
import NighIntroductions
import NighLoop
import NighUV
import Synchronization

/// Performs the commands of the input with a session, and prints the session's events.
final class Conductor: Sendable {
    private let options: PeerOptions
    private let session: Session
    private let loop: UVEventLoop
    private let writer = LineWriter()
    /// Distinguishes the messages of this run of the program from those of an earlier one.
    private let run = UInt64.random(in: .min ... .max)
    /// Called once, when everything has been exchanged.
    private let exchanged: @Sendable () -> Void
    private let state = Mutex(State())

    private struct State {
        var states: [PeerID: PeerState] = [:]
        var lastNumbers: [PeerID: UInt64] = [:]
        var sending: [Task<Void, Never>] = []
        /// The peers with which an exchange has begun.
        var exchanging: Set<PeerID> = []
        /// How many messages were sent to each peer and received from it.
        var sent: [PeerID: UInt64] = [:]
        var received: [PeerID: UInt64] = [:]
    }

    init(_ options: PeerOptions, exchanged: @escaping @Sendable () -> Void) throws {
        self.options = options
        self.exchanged = exchanged
        let identity = try options.identity.map { try IdentityFile(path: $0).load() } ?? .ephemeral()
        var configuration = SessionConfiguration(
            service: options.service, name: DisplayName(fitting: options.name), role: .peer,
            info: try DiscoveryInfo(options.info))
        if !options.isEncrypted { configuration.security = .none }
        if let grace = options.grace { configuration.timings.grace = grace }
        let introductions = Introductions(
            identity, of: configuration, isMesh: options.isMesh,
            relaying: options.hasRelays ? .everyone : .nobody)
        configuration.layers = [introductions]
        loop = UVEventLoop()
        session = Session(
            configuration, identity: identity,
            transports: try TransportRegistry.standard.makeAll(options.transport), loop: loop)
        introductions.report(
            to: Introductions.Observer(
                failed: { [writer] peer, error in writer.writeLine("failed introduction \(peer) \(error)") },
                violated: { [writer] error in writer.writeLine("trouble \(error)") }))
    }

    // MARK: Start and end

    func start() {
        writer.writeLine("ready \(session.id) \(String(run, radix: 16))")
        session.start(
            onEvent: { [unowned self] in report($0) },
            onMessage: { [unowned self, writer] bytes, origin in
                guard let message = NumberedMessage(bytes) else {
                    return writer.writeLine("damaged \(origin.peer)")
                }
                guard origin.isReliable else {
                    return writer.writeLine("value \(origin.peer) \(message.number)")
                }
                writer.writeLine(
                    "received \(origin.peer) \(String(message.run, radix: 16)) \(message.number)")
                progress { $0.received[origin.peer, default: 0] += 1 }
            })
    }

    /// Leaves all peers, and returns when that is done.
    func finish() {
        stopSending()
        let done = DispatchSemaphore(value: 0)
        session.close { done.signal() }
        done.wait()
        loop.shutdown()
    }

    // MARK: Commands

    /// Performs a command; returns false for `quit`.
    func perform(_ line: String) -> Bool {
        let words = line.split(separator: " ").map(String.init)
        let peer = words.count > 1 ? PeerID(words[1]) : nil
        let last = words.last ?? ""
        switch (words.first, words.count, peer) {
        case ("quit", 1, _): return false
        case ("hush", 1, _): stopSending()
        case ("statistics", 1, _): session.statistics { [self] in report($0) }
        case ("advertise", 2, _): last == "on" ? session.startAdvertising() : session.stopAdvertising()
        case ("browse", 2, _): last == "on" ? session.startBrowsing() : session.stopBrowsing()
        case ("info", _, _): change(words[1...])
        case ("call", 2, _): call(last)
        case ("invite", 2, let peer?): invite(peer)
        case ("leave", 2, let peer?):
            session.disconnect(peer) { [self] in report("left", "leave", peer, $0.map { _ in "" }) }
        case ("ping", 2, let peer?):
            session.ping(peer) { [self] result in
                report("pong", "ping", peer, result.map { " \(Int($0 / .microseconds(1)))" })
            }
        case ("show", 3, let peer?): if let pause = Int(last) { show(to: peer, pause: pause) }
        case ("send", 5, let peer?):
            send(to: peer, count: UInt64(words[2]), size: Int(words[3]) ?? 0, pause: Int(last) ?? 0)
        default:
            CommandLineOfLab.complain(
                "lab peer: cannot do \"\(line)\"; `lab peer --help` lists what can be done")
        }
        return true
    }

    /// Prints what became of a command: a word if it succeeded, with what it found, or the reason why not.
    private func report(
        _ word: String, _ command: String, _ object: some CustomStringConvertible,
        _ result: Result<String, NighError>
    ) {
        switch result {
        case .success(let found): writer.writeLine("\(word) \(object)\(found)")
        case .failure(let error): writer.writeLine("failed \(command) \(object) \(error)")
        }
    }

    private func call(_ text: String) {
        guard let address = TransportAddress(text) else {
            return writer.writeLine("failed call \(text) that is no address")
        }
        session.invite(at: address) { [self] in report("called", "call", address, $0.map { " \($0)" }) }
    }

    private func invite(_ peer: PeerID) {
        session.invite(peer) { [writer] result in
            if case .failure(let error) = result { writer.writeLine("failed invite \(peer) \(error)") }
        }
    }

    private func meet(_ peer: Peer) {
        if options.meets, peer.state == .available, !peer.routes.isEmpty { invite(peer.id) }
    }

    private func change(_ words: ArraySlice<String>) {
        do {
            session.update(info: try DiscoveryInfo(PeerOptions.pairs(words)))
        } catch {
            writer.writeLine("failed info \(error)")
        }
    }

    // MARK: Sending

    /// Sends until `count` messages are sent, the task is cancelled, or the session accepts no more.
    private func send(to peer: PeerID, count: UInt64?, size: Int, pause: Int) {
        keep(
            Task { [self] in
                var left = count ?? .max
                while left > 0, !Task.isCancelled {
                    left -= 1
                    let number = state.withLock { state in
                        state.lastNumbers[peer, default: 0] += 1
                        return state.lastNumbers[peer, default: 0]
                    }
                    do throws(NighError) {
                        try await session.send(
                            NumberedMessage(run: run, number: number).bytes(size: size), to: peer)
                    } catch {
                        if error.cause != .cancelled { writer.writeLine("failed send \(peer) \(error)") }
                        return
                    }
                    writer.writeLine("sent \(peer) \(number)")
                    progress { $0.sent[peer, default: 0] += 1 }
                    if pause > 0 { try? await Task.sleep(for: .milliseconds(pause)) }
                }
            })
    }

    /// Sends numbered values unreliably until `stopSending`. Those that cannot be sent are lost.
    private func show(to peer: PeerID, pause: Int) {
        keep(
            Task { [self] in
                var number: UInt64 = 0
                while !Task.isCancelled {
                    number += 1
                    let bytes = NumberedMessage(run: run, number: number).bytes(size: 0)
                    try? session.trySend(ByteSlice(bytes), to: peer, .unreliable)
                    try? await Task.sleep(for: .milliseconds(pause))
                }
            })
    }

    private func keep(_ task: Task<Void, Never>) { state.withLock { $0.sending.append(task) } }

    private func stopSending() {
        let tasks = state.withLock { state in
            defer { state.sending = [] }
            return state.sending
        }
        for task in tasks { task.cancel() }
    }

    /// Begins the exchange with a peer, unless it has begun.
    private func exchange(with peer: PeerID) {
        guard let count = options.exchangeCount,
            state.withLock({ $0.exchanging.insert(peer).inserted })
        else { return }
        send(to: peer, count: count, size: 0, pause: 20)
    }

    /// Counts a message, and reports when as many as wanted have gone to all peers of the exchange and come from them.
    private func progress(_ count: (inout State) -> Void) {
        guard let wanted = options.exchangeCount else { return }
        let isDone = state.withLock { state in
            count(&state)
            return !state.exchanging.isEmpty
                && state.exchanging.allSatisfy { state.sent[$0] == wanted && state.received[$0] == wanted }
        }
        if isDone { exchanged() }
    }

    // MARK: Events

    private func report(_ event: SessionEvent) {
        if let (peer, cause) = event.stateChange {
            show(peer)
            let from = state.withLock { $0.states.updateValue(peer.state, forKey: peer.id) } ?? .unavailable
            let reason = cause.map { " \($0)" } ?? ""
            writer.writeLine("state \(peer.id) \(from.rawValue) \(peer.state.rawValue)\(reason)")
            // A peer that has just failed to connect is not invited again before something about it changes.
            if from != .connecting { meet(peer) }
            if peer.state == .connected { exchange(with: peer.id) }
            return
        }
        switch event {
        case .peerChanged(let peer):
            show(peer)
            meet(peer)
        case .invited(let invitation):
            writer.writeLine("invited \(invitation.peer.id)")
            invitation.accept()
        case .invitationEnded(let invitation, let cause):
            writer.writeLine("uninvited \(invitation.peer.id) \(cause)")
        case .peerUnresponsive(let peer): writer.writeLine("suspected \(peer.id) true")
        case .peerResponsive(let peer): writer.writeLine("suspected \(peer.id) false")
        case .transportUp(let scheme): writer.writeLine("transport \(scheme) up")
        case .transportDown(let scheme, let error): writer.writeLine("transport \(scheme) down \(error)")
        case .listening(_, let addresses):
            writer.writeLine("listening " + addresses.map(\.description).joined(separator: " "))
        case .advertised(_, let name): writer.writeLine("advertised \(name)")
        case .problem(let error): writer.writeLine("trouble \(error)")
        case .eventsDropped(let count): writer.writeLine("trouble \(count) events were missed")
        case .closed: writer.writeLine("closed")
        // The two are connected, which is what a scenario wants to know.
        default: break
        }
    }

    /// Prints what is new of a peer: its transport, whether unreliable messages travel beside the link, and what
    /// discovery shows.
    private func show(_ peer: Peer) {
        if let transport = peer.transport { writer.writeIfChanged("over \(peer.id)", transport) }
        writer.writeIfChanged("packets \(peer.id)", "\(peer.hasDatagrams)", from: "false")
        guard !peer.routes.isEmpty else {
            if writer.forget("found \(peer.id)") { writer.writeLine("lost \(peer.id)") }
            return
        }
        let routes = peer.routes.map(\.address.description).joined(separator: ",")
        let info = peer.info.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let pairs = info.joined(separator: ",").replacing(" ", with: "_")
        writer.writeIfChanged("found \(peer.id)", "\(routes) \(pairs) \(peer.name)")
        if let quality = peer.routes.compactMap(\.quality).max() {
            writer.writeIfChanged("quality \(peer.id)", "\(Int((quality * 100).rounded()))")
        }
    }

    private func report(_ statistics: SessionStatistics) {
        var counts: [String: Int] = [:]
        for (cause, count) in statistics.dialsFailed { counts["dialsFailed.\(cause)"] = count }
        for (cause, count) in statistics.linksEnded { counts["linksEnded.\(cause)"] = count }
        for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
            writer.writeLine("count \(name.replacing(" ", with: "-")) \(count)")
        }
        writer.writeLine("count done 1")
    }
}
