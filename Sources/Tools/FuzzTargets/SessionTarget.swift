import NighCalls
import NighChannels
import NighCore
import NighMemory
import NighTestKit

/// Three sessions over memory in virtual time, and an attacker on all links and beside them, who changes frames and
/// packets, leaves them out, repeats them, and makes up others.
enum SessionTarget {
    /// More than a session may hold for one link: an incomplete frame, and the answers that wait.
    private static let mostHeld = 8_192 + (64 << 10) + (64 << 10)

    static func run(_ input: inout Input) throws {
        // Far more work than any input needs: a session that never comes to rest is a finding, not a hang.
        let loop = VirtualEventLoop(workLimit: 60_000)
        let attacker = Attacker(input)
        do {
            let hub = MemoryHub()
            let members = (0..<3).map { SessionMember($0, hub, attacker, loop) }
            try loop.run(for: .milliseconds(10))
            while !attacker.input.isAtEnd {
                try step(members, attacker, loop)
                for member in members { try check(member) }
            }
            // With no peer there any more, everything must be given up in time.
            for member in members { member.faults.cut() }
            for member in members { member.faults.block() }
            for _ in 0..<3 {
                try loop.run(for: .seconds(15))
                for member in members { try check(member) }
            }
            for member in members { try member.close(isClean: attacker.isClean) }
        } catch let lock as VirtualEventLoop.Livelock {
            throw Finding(description: "\(lock)")
        }
        // Sessions that nobody holds any more have some last work to do.
        try loop.runQueued()
    }

    private static func step(
        _ members: [SessionMember], _ attacker: Attacker, _ loop: VirtualEventLoop
    ) throws {
        let own = attacker.input.number(below: 3)
        let other = members[(own + 1 + attacker.input.number(below: 2)) % 3]
        switch attacker.input.number(below: 16) {
        case 0: try loop.run(for: .milliseconds(attacker.input.pick([1, 100, 1_000, 5_000, 15_000])))
        case 1: members[own].faults.cut()
        case 2: members[own].faults.stall()
        case 3: members[own].faults.release()
        case 4, 5, 6: attacker.edits = 1 + attacker.input.number(below: 16)
        case 7: for _ in 0..<4 { members[own].act(.invite, other) }
        default: members[own].act(attacker.input.pick(SessionMember.Action.allCases), other)
        }
        // Without a delay, actions of several members cross on their way.
        if attacker.input.isUsual() { try loop.run(for: .milliseconds(1)) }
    }

    private static func check(_ member: SessionMember) throws {
        let session = member.session
        try expect(session.inconsistencies.isEmpty, session.inconsistencies.joined(separator: "; "))
        try expect(session.mostBytesHeld <= mostHeld, "a link holds \(session.mostBytesHeld) bytes")
        let limits = session.configuration.limits
        let view = session.inspection
        try expect(view.strangers <= limits.unauthenticatedPipes, "\(view.strangers) strangers")
        for peer in view.peers {
            try expect(peer.streams <= 2 * limits.streams, "\(peer.streams) streams with a peer")
        }
        try expect(member.mostReadAtOnce <= 5_000 + 8_192, "\(member.mostReadAtOnce) bytes of a stream wait")
    }
}

/// One of the sessions, and its program.
///
/// `@unchecked Sendable`: confined to the thread that runs the loop.
private final class SessionMember: @unchecked Sendable {
    enum Action: CaseIterable {
        case invite, inviteByAddress, cancel, leave, leaveAll
        case sendSmall, sendLarge, sendBulk, sendUnreliable, sendNewest, sendSmallKind, sendLargeKind, read
        case ping, pingByPackets
        case openStream, openFileStream, writeStreams, readStreams, finishStream, cancelStream
        case toggleChannel, sendInChannel, readChannel, ask, cancelTasks
    }

    let session: Session
    let faults: FaultControl
    /// The most bytes that were read from a stream at once, before its writer could write more.
    private(set) var mostReadAtOnce = 0
    private let name: String
    private let loop: VirtualEventLoop
    private let channels = Channels()
    private let calls = Calls()
    private let held = HeldStreams()
    private var hasClosed = false
    /// Whether a link has ended because a peer broke a rule.
    private var hasViolation = false
    private var channel: ChannelPort?
    private var tasks: [Int: Task<Void, Never>] = [:]
    private var taskCount = 0

    /// The streams that the program has not let go of, the oldest first.
    private final class HeldStreams: @unchecked Sendable {
        // Confined to the thread that runs the loop.
        var all: [ByteStream] = []
    }

    /// - Parameter number: the first has limits for one peer only; the last accepts no streams for files and channels,
    ///   no messages of kinds, and answers invitations as the input says.
    init(_ number: Int, _ hub: MemoryHub, _ attacker: Attacker, _ loop: VirtualEventLoop) {
        self.loop = loop
        name = "\(number)"
        let faulty = FaultyTransport(MemoryTransport(hub: hub, address: name))
        faults = faulty.control
        let transport = RelabelledTransport(faulty, scheme: "memory", priority: 1) {
            TamperedPipe($0, attacker)
        }
        session = Session(
            Self.configuration(number, channels, calls, held), identity: Decoders.identities[number],
            transports: [transport], loop: loop)
        let answer = number == 2 ? attacker.input.number(below: 3) : 0
        let onMessage: MessageHandler = { _, _ in }
        session.start(
            onEvent: { [weak self] in self?.handle($0, answer: answer) },
            onMessage: number == 1 ? nil : onMessage)
    }

    private func handle(_ event: SessionEvent, answer: Int) {
        switch event {
        case .invited(let invitation):
            if answer == 0 { invitation.accept() }
            if answer == 1 { invitation.decline(because: "not now", retryAfter: .seconds(3)) }
        case .streamOpened(let stream): held.all.append(stream)
        case .closed: hasClosed = true
        default: break
        }
    }

    /// Limits so low that they are reached, and no encryption, so that bytes mean something to the attacker.
    private static func configuration(
        _ number: Int, _ channels: Channels, _ calls: Calls, _ held: HeldStreams
    ) -> SessionConfiguration {
        var configuration = SessionConfiguration(service: "fuzz", name: DisplayName(fitting: "x"))
        configuration.seed = UInt64(number + 1)
        configuration.security = .none
        configuration.checksTransports = false
        configuration.limits.frame = 8_192
        configuration.limits.message = 40_000
        configuration.limits.receiveWindow = 16_384
        configuration.limits.sendBuffer = 32_768
        configuration.limits.streams = 3
        configuration.limits.streamWindow = 5_000
        configuration.limits.peers = number == 0 ? 1 : 2
        configuration.limits.knownPeers = 3
        configuration.limits.pendingInvitations = 2
        configuration.limits.unauthenticatedPipes = 4
        configuration.limits.routesPerPeer = 2
        // It fails only if the name is answered already.
        try? calls.answer("echo") { content, _ in .answer(content) }
        configuration.layers = [calls]
        if number < 2 {
            configuration.layers += [
                channels, TestLayer(streams: .files) { held.all.append($0) },
                TestLayer(kinds: TestLayer.allKinds) { _, _, _ in },
            ]
        }
        return configuration
    }

    /// Carries out an action of the program, which must handle that it is not connected, or that there is no room.
    func act(_ action: Action, _ other: SessionMember) {
        let id = other.session.id
        switch action {
        case .invite: session.invite(id, context: [1, 2, 3], timeout: .seconds(20)) { _ in }
        case .inviteByAddress:
            let address = TransportAddress(scheme: "memory", value: other.name)
            session.invite(at: address, timeout: .seconds(20)) { _ in }
        case .cancel: session.cancelInvitation(of: id)
        case .leave: session.disconnect(id)
        case .leaveAll: session.disconnectAll()
        case .sendSmall: send(100, .reliable, to: id)
        case .sendLarge: send(10_000, .reliable, to: id)
        case .sendBulk: send(8_300, .reliable(.bulk), to: id)
        case .sendUnreliable: send(50, .unreliable, to: id)
        case .sendNewest: send(3_000, .newest(key: 5), to: id)
        case .sendSmallKind: sendKind(100, to: id)
        case .sendLargeKind: sendKind(10_000, to: id)
        case .read: while session.messages.poll() != nil {}
        case .ping: session.ping(id, payload: [9, 9]) { _ in }
        case .pingByPackets: session.ping(id, over: .packets) { _ in }
        case .openStream: open(.program, to: id)
        case .openFileStream: open(.files, to: id)
        case .writeStreams:
            for stream in held.all {
                _ = try? stream.tryWrite(ByteSlice([UInt8](repeating: 0x5A, count: 3_000)))
            }
        case .readStreams: for stream in held.all { read(stream) }
        case .finishStream: if !held.all.isEmpty { held.all.removeFirst().finish() }
        case .cancelStream: held.all.popLast()?.cancel(because: "enough")
        case .toggleChannel:
            if let channel { channels.close(channel) }
            channel = channel == nil ? try? channels.open("red") : nil
        case .sendInChannel:
            guard let channel else { return }
            let peer = session.peer(id)
            start { _ in try? await channel.send(ByteSlice([UInt8](repeating: 0x52, count: 3_000)), to: peer)
            }
        case .readChannel: while channel?.poll() != nil {}
        case .ask:
            // A question that the peer answers at once, and one that it does not know.
            let peer = session.peer(id)
            for name in ["echo", "nobody"] {
                start { member in
                    _ = try? await member.calls.call(
                        name, ByteSlice([1, 2, 3]), at: peer, timeout: .seconds(5))
                }
            }
        case .cancelTasks: for (_, task) in tasks.sorted(by: { $0.key < $1.key }) { task.cancel() }
        }
    }

    private func send(_ count: Int, _ reliability: Reliability, to id: PeerID) {
        try? session.trySend([UInt8](repeating: 0xA5, count: count), to: id, reliability)
    }

    private func sendKind(_ count: Int, to id: PeerID) {
        let payload = ByteSlice([UInt8](repeating: 0x4B, count: count))
        try? session.trySend(payload, of: MessageKind(rawValue: 1), to: id, on: .bulk)
    }

    private func open(_ purpose: StreamPurpose, to id: PeerID) {
        let stream = try? session.reference.openStream(named: "s", to: id, for: purpose)
        if let stream { held.all.append(stream) }
    }

    private func read(_ stream: ByteStream) {
        var count = 0
        while case .bytes(let bytes) = stream.poll() { count += bytes.count }
        // The window of a stream of files grows.
        if stream.purpose == .program { mostReadAtOnce = max(mostReadAtOnce, count) }
    }

    private func start(_ work: @escaping @Sendable (SessionMember) async -> Void) {
        guard tasks.count < 20 else { return }
        taskCount += 1
        let number = taskCount
        tasks[number] = Task(executorPreference: loop) { [self] in
            await work(self)
            tasks[number] = nil
        }
    }

    /// Closes the session. Afterwards nothing may be left.
    func close(isClean: Bool) throws {
        session.statistics { [weak self] in self?.hasViolation = $0.linksEnded["protocol violation"] != nil }
        try loop.runQueued()
        try expect(!isClean || !hasViolation, "a violation by an honest peer")
        session.close {}
        try loop.run(for: .seconds(30))
        try expect(hasClosed, "the session did not close")
        try expect(tasks.isEmpty, "\(tasks.count) tasks wait for a session that has closed")
        try expect(calls.counts == (0, 0, 0), "calls are left: \(calls.counts)")
    }
}

/// An attacker on all links, which does what the input says.
///
/// `@unchecked Sendable`: confined to the thread that runs the loop.
private final class Attacker: @unchecked Sendable {
    var input: Input
    /// The number of frames and packets, counted from the next one, that the input may change.
    var edits = 0 { didSet { if edits > 0 { isClean = false } } }
    private(set) var isClean = true

    init(_ input: Input) { self.input = input }
}

/// A pipe whose incoming frames, and whose incoming packets, the attacker may change.
private final class TamperedPipe: ForwardingPipe, DatagramPort, DatagramHandler {
    let inner: any Pipe
    private let attacker: Attacker
    private var router = FrameRouter()
    private var port: (any DatagramPort)?
    private var packetHandler: (any DatagramHandler)?

    init(_ inner: any Pipe, _ attacker: Attacker) {
        self.inner = inner
        self.attacker = attacker
    }

    func deliver(_ bytes: ByteSlice, to handler: any PipeHandler) {
        let frames = router.frames(in: bytes.bytes, changing: &attacker.edits, &attacker.input)
        let changed = frames.flatMap(\.self)
        if !changed.isEmpty { handler.pipe(self, received: ByteSlice(changed)) }
    }

    // MARK: Packets

    func openDatagrams() -> (any DatagramPort)? {
        port = inner.openDatagrams()
        return port == nil ? nil : self
    }

    var place: [UInt8] { port?.place ?? [] }
    var longestPacket: Int { port?.longestPacket ?? 0 }
    func source(of place: [UInt8]) -> DatagramSource? { port?.source(of: place) }

    func start(handler: any DatagramHandler, prefix: UInt64?) {
        packetHandler = handler
        port?.start(handler: self, prefix: prefix)
    }

    func send(_ packet: UnsafeRawBufferPointer, to source: DatagramSource) -> DatagramOutcome {
        port?.send(packet, to: source) ?? .sent
    }

    func close() {
        packetHandler = nil
        port?.close()
        port = nil
    }

    func datagramPort(
        _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer, from source: DatagramSource
    ) {
        guard attacker.edits > 0, packet.count > DatagramPacket.headerByteCount + 8 else {
            packetHandler?.datagramPort(self, received: packet, from: source)
            return
        }
        attacker.edits -= 1
        var changed = HostileNetwork.edited(UnsafeRawBufferPointer(packet), &attacker.input)
        let from = attacker.input.isUsual() ? source : DatagramSource(UInt64(attacker.input.byte()))
        guard !changed.isEmpty, changed.count <= longestPacket else { return }
        changed.withUnsafeMutableBytes { packetHandler?.datagramPort(self, received: $0, from: from) }
    }
}
