import NighCore
import NighTestKit

/// One thing that the network or the program does to the session in the harness. Together the cases are everything
/// that can happen.
enum Event {
    /// Discovery sees the other session, or no longer sees it.
    case sight(Bool)
    /// A pipe comes in.
    case open
    /// The oldest dial succeeds with a pipe. Without a dial, a pipe comes in.
    case answer
    /// The oldest dial fails.
    case refuse
    /// The pipe with this index receives bytes.
    case bytes(Int, [UInt8])
    /// A packet comes beside the pipe with this index, from this source.
    case packet(Int, [UInt8], DatagramSource)
    /// The other end has closed the pipe.
    case cut(Int)
    /// The other end writes no more.
    case end(Int)
    /// The other end takes nothing for now, or takes bytes again.
    case block(Int, Bool)
    case pass(milliseconds: Int)
    case act(Action)
}

/// An action of the program.
enum Action: CaseIterable {
    case invite
    case inviteByAddress
    case knowAddress
    case cancel
    case sendSmall
    case sendLarge
    case sendBulk
    case sendUnreliable
    case sendNewest
    case sendSmallKind
    case sendLargeKind
    case ping
    case pingByPackets
    case read
    case openStream
    case openFileStream
    case openChannelStream
    case openCallStream
    /// Writes a message or a call to each stream of the two kinds above.
    case writeLayerStreams
    case dropLayerStreams
    case toggleChannel
    case sendInChannel
    case readChannel
    case ask
    case cancelTasks
    /// Writes to every stream.
    case writeStreams
    /// Reads what has come on every stream.
    case readStreams
    case finishStream
    case cancelStream
    case leave
    case leaveAll
}

/// How the program behaves: how it answers invitations, and how it reads messages.
struct ProgramBehavior {
    enum Answer {
        case accept
        case decline
        case none
    }

    var answer = Answer.accept
    var readsInbox = false
}

/// A session in a simulated environment: its transport, its pipes and its clock do what the events say.
final class SessionHarness: @unchecked Sendable {
    // Confined to the thread that runs the loop.
    let loop: VirtualEventLoop
    let session: Session
    let transport = HarnessTransport()
    private let other: Identity
    private(set) var pipes: [HarnessPipe] = []
    private(set) var hasClosed = false
    private var reads = 0
    /// The streams that the program has not let go of, the oldest first.
    private let streams = HeldStreams()
    let layers: HarnessLayers
    private var lastStatistics = SessionStatistics()

    static let identities = [Identity.ephemeral(seed: 1), .ephemeral(seed: 2)]
    static let address = TransportAddress(scheme: "stage", value: "other")

    /// Counts the bytes of messages of kinds.
    private let kindsRead = ByteCount()

    private final class ByteCount: @unchecked Sendable {
        // Confined to the thread that runs the loop.
        var count = 0
    }

    private final class HeldStreams: @unchecked Sendable {
        // Confined to the thread that runs the loop.
        var all: [ByteStream] = []
    }

    /// Returns whether a session accepts streams for files and channels, and messages of kinds. One of the two does, so
    /// that both cases are met.
    static func acceptsMore(_ own: Int) -> Bool { own == 0 }

    /// Returns a configuration with limits so low that they are reached.
    static func configuration(_ own: Int) -> SessionConfiguration {
        var configuration = SessionConfiguration(service: "fuzz", name: DisplayName(fitting: "stage \(own)"))
        configuration.seed = UInt64(own + 1)
        // Recorded events are replayed and changed. Neither is possible with encryption.
        configuration.security = .none
        // The transport is the harness itself, which reports what events say, in any order.
        configuration.checksTransports = false
        configuration.limits.frame = 8_192
        configuration.limits.message = 40_000
        configuration.limits.receiveWindow = 16_384
        configuration.limits.sendBuffer = 32_768
        configuration.limits.streams = 3
        configuration.limits.streamWindow = 5_000
        configuration.limits.peers = 2
        configuration.limits.knownPeers = 3
        configuration.limits.pendingInvitations = 2
        configuration.limits.unauthenticatedPipes = 4
        configuration.limits.routesPerPeer = 2
        return configuration
    }

    init(_ own: Int, behavior: ProgramBehavior, loop: VirtualEventLoop) throws {
        self.loop = loop
        layers = HarnessLayers(on: loop)
        other = Self.identities[1 - own]
        var configuration = Self.configuration(own)
        let kindsRead = kindsRead
        configuration.layers = layers.make(hasChannels: Self.acceptsMore(own))
        if Self.acceptsMore(own) {
            configuration.layers += [
                TestLayer(streams: .files) { [streams] in streams.all.append($0) },
                TestLayer(kinds: TestLayer.allKinds) { bytes, _, _ in kindsRead.count += bytes.byteCount },
            ]
        }
        session = Session(
            configuration, identity: Self.identities[own], transports: [transport], loop: loop)
        let onMessage: MessageHandler = { [weak self] bytes, _ in self?.reads += bytes.byteCount }
        session.start(
            onEvent: { [weak self] event in self?.handle(event, behavior) },
            onMessage: behavior.readsInbox ? nil : onMessage)
        try loop.runQueued()
    }

    private func handle(_ event: SessionEvent, _ behavior: ProgramBehavior) {
        switch event {
        case .invited(let invitation):
            switch behavior.answer {
            case .accept: invitation.accept()
            case .decline: invitation.decline(because: "not now", retryAfter: .seconds(3))
            case .none: break
            }
        case .streamOpened(let stream): streams.all.append(stream)
        case .closed: hasClosed = true
        default: break
        }
    }

    func perform(_ event: Event) throws {
        switch event {
        case .sight(let isThere): sight(isThere)
        case .open: open(dial: nil)
        case .answer: open(dial: transport.takeDial())
        case .refuse:
            if let dial = transport.takeDial() {
                transport.events?.dialFailed(dial, error: NighError(.connecting, .refused), by: transport)
            }
        case .bytes(let index, let bytes): pipe(index)?.deliver(ByteSlice(bytes))
        case .packet(let index, let bytes, let source): pipe(index)?.port?.deliver(bytes, from: source)
        case .cut(let index): pipe(index)?.cut()
        case .end(let index): pipe(index)?.end()
        case .block(let index, let isBlocked): pipe(index)?.block(isBlocked)
        case .pass(let milliseconds): try loop.run(for: .milliseconds(milliseconds))
        case .act(let action): act(action)
        }
        repeat {
            try loop.runQueued()
        } while pipes.reduce(false) { $1.deliverHeld() || $0 }
    }

    private func pipe(_ index: Int) -> HarnessPipe? { pipes.isEmpty ? nil : pipes[index % pipes.count] }

    private func open(dial: DialID?) {
        guard let events = transport.events, pipes.count < 32 else { return }
        let pipe = HarnessPipe(on: loop)
        pipes.append(pipe)
        events.pipeOpened(pipe, dial: dial, by: transport)
    }

    private func sight(_ isThere: Bool) {
        guard isThere else {
            transport.events?.routeLost(Self.address, by: transport)
            return
        }
        let advertisement = Advertisement(
            service: session.configuration.service, peer: other.peerID, name: DisplayName(fitting: "other"))
        transport.events?.routeFound(
            Sighting(address: Self.address, advertisement: advertisement), by: transport)
    }

    private func act(_ action: Action) {
        switch action {
        case .invite:
            session.invite(other.peerID, context: [1, 2, 3], timeout: .seconds(20)) { _ in }
        case .inviteByAddress: session.invite(at: Self.address, timeout: .seconds(20)) { _ in }
        case .knowAddress: transport.events?.addressKnown(Self.address, by: transport)
        case .cancel: session.cancelInvitation(of: other.peerID)
        case .sendSmall: send(100, .reliable)
        case .sendLarge: send(10_000, .reliable)
        case .sendBulk: send(8_300, .reliable(.bulk))
        case .sendUnreliable: send(50, .unreliable)
        case .sendNewest: send(3_000, .newest(key: 5))
        case .sendSmallKind: sendKind(100)
        case .sendLargeKind: sendKind(10_000)
        case .ping: session.ping(other.peerID, payload: [9, 9]) { _ in }
        case .pingByPackets: session.ping(other.peerID, over: .packets) { _ in }
        case .read: while session.messages.poll() != nil { reads += 1 }
        case .openStream: open(.program)
        case .openFileStream: open(.files)
        case .openChannelStream: open(.channel)
        case .openCallStream: open(.calls)
        case .writeLayerStreams: layers.writeStreams()
        case .dropLayerStreams: layers.dropStreams()
        case .toggleChannel: layers.toggleChannel()
        case .sendInChannel: layers.sendInChannel(to: session.peer(other.peerID))
        case .readChannel: layers.readChannel()
        case .ask: layers.ask(session.peer(other.peerID))
        case .cancelTasks: layers.cancelTasks()
        case .writeStreams:
            let bytes = ByteSlice([UInt8](repeating: 0x5A, count: 3_000))
            for stream in streams.all { _ = try? stream.tryWrite(bytes) }
        case .readStreams: for stream in streams.all { readAll(of: stream) }
        case .finishStream: if !streams.all.isEmpty { streams.all.removeFirst().finish() }
        case .cancelStream: streams.all.popLast()?.cancel(because: "enough")
        case .leave: session.disconnect(other.peerID)
        case .leaveAll: session.disconnectAll()
        }
    }

    private func open(_ purpose: StreamPurpose) {
        let name = purpose == .channel ? "red" : "s"
        session.openStream(named: name, to: other.peerID, for: purpose) { [streams, layers] result in
            // Not connected, too many, or not accepted: a program must handle all three.
            guard let stream = try? result.get() else { return }
            switch purpose {
            case .channel, .calls: layers.use(stream)
            default: streams.all.append(stream)
            }
        }
    }

    private func readAll(of stream: ByteStream) {
        while case .bytes(let bytes) = stream.poll() { reads += bytes.count }
    }

    private func send(_ count: Int, _ reliability: Reliability) {
        // Not connected, or no room: a program must handle both.
        try? session.trySend([UInt8](repeating: 0xA5, count: count), to: other.peerID, reliability)
    }

    private func sendKind(_ count: Int) {
        // Not connected, no room, or not taken there: a layer must handle all three.
        let payload = ByteSlice([UInt8](repeating: 0x4B, count: count))
        try? session.trySend(payload, of: MessageKind(rawValue: 1), to: other.peerID, on: .bulk)
    }

    func statistics() throws -> SessionStatistics {
        session.statistics { [weak self] in self?.lastStatistics = $0 }
        try loop.runQueued()
        return lastStatistics
    }

    /// Closes the session. Afterwards nothing may be left.
    func close() throws {
        session.close {}
        for pipe in pipes { pipe.block(false) }
        try loop.run(for: .seconds(30))
        guard hasClosed else { throw Finding("the session did not close") }
        try layers.checkEnd()
        transport.events = nil
    }
}

/// A failed check.
struct Finding: Error {
    let message: String

    init(_ message: String) { self.message = message }
}
