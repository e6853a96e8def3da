import Glibc
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
    private let questions: Questions
    /// Distinguishes the messages of this run of the program from those of an earlier one.
    private let run = UInt64.random(in: .min ... .max)
    /// Called once, when everything has been exchanged.
    private let exchanged: @Sendable () -> Void
    private let state = Mutex(State())

    private struct State {
        /// What discovery showed of each peer when it was last printed.
        var shown: [PeerID: Peer] = [:]
        var lastNumbers: [PeerID: UInt64] = [:]
        var transports: [PeerID: String] = [:]
        var states: [PeerID: PeerState] = [:]
        var havePackets: [PeerID: Bool] = [:]
        var sending: [Task<Void, Never>] = []
        var exchange: Exchange?
    }

    init(_ options: PeerOptions, exchanged: @escaping @Sendable () -> Void) throws {
        self.options = options
        self.exchanged = exchanged
        state.withLock { $0.exchange = options.exchange }
        let identity = try options.identity.map { try IdentityFile(path: $0).load() } ?? .ephemeral()
        var configuration = SessionConfiguration(
            service: options.service, name: DisplayName(fitting: options.name), role: options.role,
            info: try DiscoveryInfo(options.info))
        if !options.isEncrypted { configuration.security = .none }
        if let grace = options.grace { configuration.timings.grace = grace }
        let showsNumbers = options.showsNumbers
        questions = Questions { [writer] number in
            if showsNumbers { writer.writeLine("asked \(number)") }
        }
        let introductions = Introductions(
            identity, of: configuration, isMesh: options.isMesh,
            relaying: options.hasRelays ? .everyone : .nobody)
        configuration.layers = [introductions, questions.calls]
        loop = UVEventLoop()
        session = Session(
            configuration, identity: identity,
            transports: try TransportRegistry.standard.makeAll(options.transport), loop: loop)
        try questions.begin(session)
        introductions.report(
            to: Introductions.Observer(
                failed: { [writer] peer, error in writer.writeLine("failed introduction \(peer) \(error)") },
                violated: { [writer] error in writer.writeLine("trouble \(error)") }))
    }

    // MARK: Start and end

    func start() {
        writer.writeLine("ready \(session.id) \(Self.hexadecimal(run))")
        session.start(
            onEvent: { [unowned self] in report($0) },
            onMessage: { [unowned self, writer] bytes, origin in
                guard let message = NumberedMessage(bytes) else {
                    return writer.writeLine("damaged \(origin.peer)")
                }
                guard origin.isReliable else {
                    return writer.writeLine("value \(origin.peer) \(message.number)")
                }
                writer.writeLine("received \(origin.peer) \(Self.hexadecimal(message.run)) \(message.number)")
                note { $0.didReceive(from: origin.peer) }
            })
    }

    /// Leaves all peers, and returns when that is done.
    func finish() {
        stopSending()
        let done = CompletionSignal()
        session.close { done.signal() }
        done.wait()
        loop.shutdown()
    }

    private static func hexadecimal(_ number: UInt64) -> String { String(number, radix: 16) }

    // MARK: Commands

    /// Performs a command; returns false for `quit`.
    func perform(_ line: String) -> Bool {
        let words = line.split(separator: " ")
        switch (words.first, words.count) {
        case ("quit", 1): return false
        case ("hush", 1): stopSending()
        case ("statistics", 1): session.statistics { [self] in report($0) }
        case ("advertise", 2):
            if words[1] == "on" { session.startAdvertising() } else { session.stopAdvertising() }
        case ("ask", 3):
            guard let count = Int(words[2]), count > 0 else { return reportUnknownCommand(line) }
            withPeer(words[1], line) { ask($0, atOnce: count) }
        case ("browse", 2):
            if words[1] == "on" { session.startBrowsing() } else { session.stopBrowsing() }
        case ("call", 2): call(String(words[1]))
        case ("info", _): change(words[1...])
        case ("invite", 2): withPeer(words[1], line) { invite($0) }
        case ("leave", 2): withPeer(words[1], line) { leave($0) }
        case ("ping", 2): withPeer(words[1], line) { ping($0) }
        case ("show", 3):
            guard let pause = Int(words[2]), pause > 0 else { return reportUnknownCommand(line) }
            withPeer(words[1], line) { show(to: $0, pause: pause) }
        case ("send", 5):
            guard let size = Int(words[3]), let pause = Int(words[4]) else {
                return reportUnknownCommand(line)
            }
            withPeer(words[1], line) { send(to: $0, count: UInt64(words[2]), size: size, pause: pause) }
        default: return reportUnknownCommand(line)
        }
        return true
    }

    private func reportUnknownCommand(_ line: String) -> Bool {
        CommandLineOfLab.complain("lab peer: cannot do \"\(line)\"; `lab peer --help` lists what can be done")
        return true
    }

    private func withPeer(_ word: Substring, _ line: String, _ work: (PeerID) -> Void) {
        if let peer = PeerID(String(word)) { work(peer) } else { _ = reportUnknownCommand(line) }
    }

    private func invite(_ peer: PeerID) {
        session.invite(peer) { [writer] result in
            if case .failure(let error) = result { writer.writeLine("failed invite \(peer) \(error)") }
        }
    }

    private func meet(_ peer: Peer) {
        if options.meets, peer.state == .available, !peer.routes.isEmpty { invite(peer.id) }
    }

    private func call(_ text: String) {
        guard let address = TransportAddress(text) else {
            return writer.writeLine("failed call \(text) that is no address")
        }
        session.invite(at: address) { [writer] result in
            switch result {
            case .success(let peer): writer.writeLine("called \(address) \(peer)")
            case .failure(let error): writer.writeLine("failed call \(address) \(error)")
            }
        }
    }

    private func leave(_ peer: PeerID) {
        session.disconnect(peer) { [writer] result in
            switch result {
            case .success: writer.writeLine("left \(peer)")
            case .failure(let error): writer.writeLine("failed leave \(peer) \(error)")
            }
        }
    }

    private func ping(_ peer: PeerID) {
        session.ping(peer) { [writer] result in
            switch result {
            case .success(let span): writer.writeLine("pong \(peer) \(Int(span / .microseconds(1)))")
            case .failure(let error): writer.writeLine("failed ping \(peer) \(error)")
            }
        }
    }

    private func change(_ words: ArraySlice<Substring>) {
        var pairs: [String: String] = [:]
        for pair in words.compactMap({ PeerOptions.pair($0) }) { pairs[pair.key] = pair.value }
        do throws(NighError) {
            session.update(info: try DiscoveryInfo(pairs))
        } catch {
            writer.writeLine("failed info \(error)")
        }
    }

    // MARK: Sending

    /// Sends until `count` messages are sent, the task is cancelled, or the session accepts no more.
    private func send(to peer: PeerID, count: UInt64?, size: Int, pause: Int) {
        let task = Task { [self] in
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
                note { $0.didSend(to: peer) }
                if pause > 0 { try? await Task.sleep(for: .milliseconds(pause)) }
            }
        }
        state.withLock { $0.sending.append(task) }
    }

    /// Sends numbered values unreliably until `stopSending`. Those that cannot be sent are lost.
    private func show(to peer: PeerID, pause: Int) {
        let task = Task { [self] in
            var number: UInt64 = 0
            while !Task.isCancelled {
                number += 1
                let message = NumberedMessage(run: run, number: number)
                try? session.trySend(
                    ByteSlice(message.bytes(size: NumberedMessage.headerByteCount)), to: peer, .unreliable)
                try? await Task.sleep(for: .milliseconds(pause))
            }
        }
        state.withLock { $0.sending.append(task) }
    }

    /// Asks a peer, so many questions at once, until `stopSending`.
    private func ask(_ peer: PeerID, atOnce count: Int) {
        let task = Task { [questions, session] in await questions.ask(session.peer(peer), atOnce: count) }
        state.withLock { $0.sending.append(task) }
    }

    private func exchange(with peer: PeerID) {
        let wanted = state.withLock { state in
            state.exchange?.begin(with: peer) == true ? state.exchange : nil
        }
        guard let wanted else { return }
        send(to: peer, count: wanted.count, size: NumberedMessage.headerByteCount, pause: wanted.pause)
    }

    private func note(_ change: (inout Exchange) -> Void) {
        let isDone = state.withLock { state in
            guard var exchange = state.exchange else { return false }
            change(&exchange)
            state.exchange = exchange.isDone ? nil : exchange
            return exchange.isDone
        }
        if isDone { exchanged() }
    }

    private func stopSending() {
        let tasks = state.withLock { state in
            defer { state.sending = [] }
            return state.sending
        }
        for task in tasks { task.cancel() }
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
        case .transportDown(let scheme, let error):
            writer.writeLine("transport \(scheme) down \(error)")
        case .listening(_, let addresses):
            writer.writeLine("listening " + addresses.map(\.description).joined(separator: " "))
        case .advertised(_, let name): writer.writeLine("advertised \(name)")
        case .problem(let error): writer.writeLine("trouble \(error)")
        case .pairingCode(let peer, let code): writer.writeLine("pairing \(peer.id) \(code.digits)")
        case .paired(let peer): writer.writeLine("paired \(peer.id)")
        case .pairingFailed(let peer, let error): writer.writeLine("unpaired \(peer.id) \(error)")
        case .eventsDropped(let count): writer.writeLine("trouble \(count) events were missed")
        case .closed: writer.writeLine("closed")
        // The two are connected, which is what a scenario wants to know.
        default: break
        }
    }

    /// Prints the transport of a conversation if it has changed.
    private func reportTransport(of peer: Peer) {
        guard let transport = peer.transport else { return }
        let before = state.withLock { $0.transports.updateValue(transport, forKey: peer.id) }
        if before != transport { writer.writeLine("over \(peer.id) \(transport)") }
    }

    /// Prints whether unreliable messages travel beside the link if that has changed.
    private func reportPackets(of peer: Peer) {
        let before = state.withLock { $0.havePackets.updateValue(peer.hasDatagrams, forKey: peer.id) }
        if before ?? false != peer.hasDatagrams {
            writer.writeLine("packets \(peer.id) \(peer.hasDatagrams)")
        }
    }

    /// Prints what discovery shows of a peer if it has changed.
    private func show(_ peer: Peer) {
        reportTransport(of: peer)
        reportPackets(of: peer)
        let before = state.withLock { state in
            defer { state.shown[peer.id] = peer.routes.isEmpty ? nil : peer }
            return state.shown[peer.id]
        }
        if peer.routes.isEmpty {
            if before != nil { writer.writeLine("lost \(peer.id)") }
        } else if before?.routes != peer.routes || before?.name != peer.name || before?.info != peer.info {
            let routes = peer.routes.map(\.address.description).joined(separator: ",")
            let info = peer.info.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            let pairs = info.joined(separator: ",").replacing(" ", with: "_")
            writer.writeLine("found \(peer.id) \(routes) \(pairs) \(peer.name)")
            if let quality = peer.routes.compactMap(\.quality).max() {
                writer.writeLine("quality \(peer.id) \(Int((quality * 100).rounded()))")
            }
        }
    }

    private func report(_ statistics: SessionStatistics) {
        var counts = ["dials": statistics.dials, "pipesAccepted": statistics.pipesAccepted]
        counts["pipesRefused"] = statistics.pipesRefused
        counts["sightingsIgnored"] = statistics.sightingsIgnored
        for (cause, count) in statistics.dialsFailed { counts["dialsFailed." + cause] = count }
        for (cause, count) in statistics.linksEnded { counts["linksEnded." + cause] = count }
        counts.merge(questions.counts) { $1 }
        for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
            writer.writeLine("count \(name.replacing(" ", with: "-")) \(count)")
        }
        writer.writeLine("count done 1")
    }
}

/// Lets one thread wait for a notification from another.
final class CompletionSignal: @unchecked Sendable {
    // A semaphore may be used by several threads, and must not move in memory.
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func signal() { sem_post(semaphore) }

    func wait() { while sem_wait(semaphore) != 0 {} }
}
