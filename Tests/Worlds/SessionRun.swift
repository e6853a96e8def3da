import NighCore
import NighTestKit
import NighGroups
import NighMemory

/// One run of a session, from start to end, with all its events and calls, which are checked as they come.
///
/// `@unchecked Sendable`: confined to the thread that runs the world.
final class SessionRun: @unchecked Sendable {
    /// The service that all runs offer and look for.
    static let service: ServiceName = "world"

    struct Call {
        let what: String
        let deadline: Moment
        /// Whether the call was made after the session had closed. Such a call is answered at once.
        let isLate: Bool
    }

    /// A stream of messages to a peer, as long as the conversation lasts.
    struct OutgoingStream {
        let number: Int
        let receiver: SessionRun?
        /// The number of the conversation in the session machines; the same at both ends, once both have heard of it.
        var conversation: UInt64
        /// Whether a task that waits for room is sending on the bulk lane.
        var bulkIsInUse = false
    }

    unowned let world: World
    let owner: WorldPeer
    let number: Int
    let address: TransportAddress
    let host: SimulatedHost
    /// All addresses at which others see it.
    let addresses: Set<TransportAddress>
    let incarnation: UInt64
    /// The digits that its user sees, and the peer with whom.
    var shownDigits: (other: Int, code: PairingCode)?
    private(set) var session: Session?
    /// The session, for as long as anything holds it. Shows whether it is released in the end.
    private(set) weak var weakSession: Session?

    var states = PeerStateChecker()
    /// How many conversations with each peer this run was notified of.
    private var conversations: [Int: Int] = [:]
    var streams: [Int: OutgoingStream] = [:]
    /// The transport that carries the conversation with each peer, as last reported.
    private var carriers: [PeerID: String] = [:]
    /// The peers from which this run has withdrawn at some time: it left, cancelled an invitation, or had one
    /// fail.
    var withdrawnFrom: Set<Int> = []
    /// The streams whose arrival was confirmed by a successful `disconnect`.
    private(set) var confirmedStreams: [OutgoingStream] = []
    private var invitations: Set<UInt64> = []
    private var endedInvitations: Set<UInt64> = []
    private(set) var calls: [Int: Call] = [:]
    private var callCount = 0
    /// Tasks that wait for room, and hold the session meanwhile.
    var tasks: [Task<Void, Never>] = []
    /// Its groups; nil if it has none.
    let groups: WorldGroups?
    /// Its channels and questions; nil if it has none.
    let channels: WorldChannels?
    let questions: WorldQuestions?
    /// The transfers that this run takes part in.
    var transfers: [WorldTransfer] = []
    var isAdvertising: Bool
    var isBrowsing: Bool
    var info = DiscoveryInfo.none
    private(set) var isClosing = false
    private(set) var hasClosed = false
    private(set) var wasKilled = false
    private var sawClosed = false

    var index: Int { owner.index }
    var faults: FaultControl { host.faults[0] }
    /// The faults on the worse of two wires; nil if there is only one.
    var spareFaults: FaultControl? { host.faults.dropFirst().first }
    var label: String { "\(index).\(number)" }
    var timings: SessionTimings { owner.member.timings }
    var readsLater: Bool { owner.member.reading != .handler }

    init(_ owner: WorldPeer, in world: World, number: Int, address: String) {
        self.world = world
        self.owner = owner
        groups = world.hasGroups(owner.index) ? WorldGroups() : nil
        channels = world.hasChannels(owner.index) ? WorldChannels() : nil
        questions = world.hasQuestions(owner.index) ? WorldQuestions() : nil
        self.number = number
        self.address = TransportAddress(scheme: "memory", value: address)
        let member = owner.member
        isAdvertising = member.role != .client
        isBrowsing = member.role != .server
        var plan = world.isQuiet ? WorldPlan.healed(member.faults) : member.faults
        if !world.betterTransportsAreOpen { plan.refuse = .all }
        world.addPacketFaults(to: &plan)
        let wires = world.plan.hasSpareTransports ? [0, 1] : [0]
        host = world.network.addHost(at: address, on: wires) {
            $0 == 0 ? plan : WorldPlan.healed(member.faults)
        }
        addresses = Set(
            wires.map { TransportAddress(scheme: world.network.wires[$0].scheme, value: address) })
        var configuration = SessionConfiguration(
            service: Self.service, name: DisplayName(fitting: "peer \(owner.index)"), role: member.role)
        configuration.seed = world.generator.next()
        configuration.security = world.plan.security
        configuration.acceptsPairing = true
        configuration.datagrams = world.hasDatagrams(owner.index)
        configuration.limits = member.limits
        configuration.timings = member.timings
        if world.acceptsFiles(owner.index) {
            configuration.layers.append(
                TestLayer(streams: world.filePurpose(of: owner.index)) {
                    [unowned world, index = owner.index] stream in
                    if let run = world.peers[index].currentRun { world.filesOffered(run, stream) }
                })
        }
        if world.acceptsKinds(owner.index) {
            configuration.layers.append(
                TestLayer(kinds: TestLayer.allKinds.filter { $0 != GroupRecord.kind }) {
                    [unowned world, index = owner.index] bytes, kind, origin in
                    bytes.withUnsafeBytes { world.peers[index].currentRun?.received($0, origin, kind) }
                })
            if let groups { configuration.layers.append(groups.groups) }
        }
        if let channels { configuration.layers.append(channels.layer) }
        if let questions { configuration.layers.append(questions.layer) }
        let session = Session(
            configuration, identity: owner.identity, trust: owner.trust,
            transports: host.transports, loop: world.loop)
        self.session = session
        weakSession = session
        incarnation = session.inspection.incarnation
    }

    static let spareScheme = "spare"

    /// The number of open pipes on all its transports.
    var pipeCount: Int { host.faults.reduce(0) { $0 + $1.pipes.count } }

    func start() {
        let onMessage: MessageHandler = { [self] bytes, origin in
            bytes.withUnsafeBytes { received($0, origin) }
        }
        groups?.report(to: self)
        session?.start(
            onEvent: { [self] in handle($0) }, onMessage: readsLater ? nil : onMessage)
    }

    func report(_ rule: Violation.Rule, _ message: String) {
        world.report(Violation(rule, "\(label): \(message)"))
    }

    func note(_ kind: WorldLog.Kind, _ first: Int = 0, _ second: Int = 0, _ text: @autoclosure () -> String) {
        world.log.note(at: world.loop.now, label, kind, index << 32 | first, second, text())
    }

    // MARK: Events

    /// Checks who a connected peer is said to be, and that no peer is taken for one that lies.
    private func check(_ peer: Peer, _ other: Int) {
        let identity = world.peers[other].identity
        let expected = peer.trust == nil ? identity.peerID : identity.principal
        if peer.state == .connected, peer.identity != expected {
            report(.ghosts, "\(other) acts for \(peer.identity.short), which is not its identity")
        }
        if case .falselyAnnounced? = peer.trust { report(.ghosts, "\(other) is said to pretend") }
    }

    private func handle(_ event: SessionEvent) {
        guard !wasKilled else { return }
        guard !hasClosed, !sawClosed else { return report(.silence, "reports \(event) after it closed") }
        switch event {
        case _ where event.stateChange != nil: stateChanged(event)
        case .peerChanged(let peer):
            note(
                .event, world.index(of: peer.id) ?? -1, 1,
                "peer changed: \(peer.name) \(peer.state) over \(peer.transport ?? "nothing")")
            if let last = carriers[peer.id], let next = peer.transport, last != next {
                world.counts.moves += 1
            }
            carriers[peer.id] = peer.transport
            if let other = world.index(of: peer.id) { check(peer, other) }
            if peer.state == .connected, let other = world.index(of: peer.id) {
                noteConversation(with: other, peer.id)
            }
            if states.state(of: peer.id) != peer.state {
                report(
                    .moves,
                    "\(peer.id.short) changed, is \(peer.state), reported was \(states.state(of: peer.id))")
            }
        case .invited(let invitation):
            note(
                .invitation, world.index(of: invitation.peer.id) ?? -1, 1,
                "invited by \(invitation.peer.name)")
            if !invitations.insert(invitation.number).inserted {
                report(.calls, "invitation \(invitation.number) arrives twice")
            }
            check(invitation.context, from: invitation.peer)
            world.invited(self, invitation)
        case .invitationEnded(let invitation, let cause):
            note(.invitation, world.index(of: invitation.peer.id) ?? -1, 2, "invitation ended: \(cause)")
            // The handler that was notified of it may have answered it just before.
            let isNew = endedInvitations.insert(invitation.number).inserted
            if !isNew || !invitations.contains(invitation.number) {
                report(.calls, "an invitation ends that ended before, or was never reported: \(cause)")
            }
        case .invitationsCrossed(let peer, let context):
            note(.invitation, world.index(of: peer.id) ?? -1, 3, "invitations crossed")
            check(context, from: peer)
            if states.state(of: peer.id) != .connected {
                report(.calls, "an invitation crosses, but \(peer.id.short) is not connected")
            }
        case .streamOpened(let stream): world.streamOpened(self, stream)
        case .closed:
            note(.event, 0, 2, "closed")
            sawClosed = true
        case .peerUnresponsive(let peer):
            note(.event, world.index(of: peer.id) ?? -1, 3, "suspected true")
        case .peerResponsive(let peer):
            note(.event, world.index(of: peer.id) ?? -1, 4, "suspected false")
        case .problem(let error): note(.event, 0, 5, "\(error)")
        case .listening(_, let addresses): note(.event, addresses.count, 6, "listening at \(addresses)")
        case .pairingCode(let peer, let code): world.showDigits(code, with: peer, to: self)
        case .paired(let peer): world.paired(self, with: peer)
        case .pairingFailed(let peer, let error): world.pairingEnded(self, with: peer, error)
        default: report(.calls, "reports \(event)")
        }
    }

    private func stateChanged(_ event: SessionEvent) {
        guard let (peer, cause) = event.stateChange else { return }
        guard let other = world.index(of: peer.id) else {
            return report(.ghosts, "meets the unknown peer \(peer.id.short)")
        }
        let last = states.state(of: peer.id)
        note(
            .state, other, PeerState.allCases.firstIndex(of: peer.state) ?? 0,
            "\(other) goes from \(last) to \(peer.state)\(cause.map { ", \($0)" } ?? "")")
        if let violation = states.record(event) { report(violation.rule, violation.message) }
        carriers[peer.id] = peer.transport
        check(peer, other)
        changed(other, peer, from: last, cause: cause)
    }

    /// Checks that an invitation says what its sender made it say.
    private func check(_ context: [UInt8], from peer: Peer) {
        guard let other = world.index(of: peer.id), !context.isEmpty else { return }
        if context != world.context(from: other, to: index) {
            report(.calls, "an invitation from \(other) says \(context)")
        }
    }

    private func changed(_ other: Int, _ peer: Peer, from last: PeerState, cause: NighError?) {
        switch (last, peer.state) {
        case (.connecting, .connected):
            conversations[other, default: 0] += 1
            world.counts.conversations += 1
            let inside = session?.inspection(of: peer.id)
            streams[other] = OutgoingStream(
                number: world.ledger.open(from: index, run: number, to: other),
                receiver: inside.flatMap { world.run(withIncarnation: $0.incarnation) },
                conversation: inside?.conversation ?? 0)
            world.connectedEnds[inside?.conversation ?? 0, default: 0] += 1
        case (.connected, .reconnecting):
            world.counts.interruptions += 1
            if world.plan.kind == .calm || world.isFaultFree {
                report(.endurance, "lost \(other) without any fault: \(cause!)")
            }
        case (.reconnecting, .connected):
            world.counts.reconnects += 1
            noteConversation(with: other, peer.id)
        case (_, .disconnected):
            if let cause, let stream = streams[other] { world.conversationEnded(self, other, stream, cause) }
            streams[other] = nil
        default: break
        }
        world.respondToState(self, of: peer, from: last)
    }

    /// Notes a conversation that goes on under another number, because invitations crossed and the first one's answer
    /// was lost.
    private func noteConversation(with other: Int, _ peer: PeerID) {
        guard let old = streams[other]?.conversation, let new = session?.inspection(of: peer)?.conversation,
            new != old
        else { return }
        streams[other]?.conversation = new
        world.connectedEnds[old, default: 0] -= 1
        world.connectedEnds[new, default: 0] += 1
        for stream in world.worldStreams where stream.opener === self && stream.other == other {
            if stream.conversation == old { stream.conversation = new }
        }
    }

    // MARK: Messages

    private func received(
        _ bytes: UnsafeRawBufferPointer, _ origin: MessageOrigin, _ kind: MessageKind? = nil
    ) {
        guard !wasKilled else { return }
        guard !hasClosed, !sawClosed else { return report(.silence, "receives a message after it closed") }
        guard let sender = world.index(of: origin.peer) else {
            return report(.ghosts, "receives from the unknown peer \(origin.peer)")
        }
        let state = states.state(of: origin.peer)
        if !readsLater, state != .connected, state != .reconnecting {
            report(.moves, "receives from \(sender), which is \(state)")
        }
        let row = MessageLedger.Row(of: origin, kind)
        note(
            .received, sender, bytes.count << 2 | row.rawValue,
            "received \(bytes.count) bytes from \(sender), \(row)")
        let reader = MessageLedger.Reader(
            receiver: index, run: number, conversation: readsLater ? nil : conversations[sender])
        if let violation = world.ledger.recordArrival(of: bytes, at: reader, from: sender, row: row) {
            report(violation.rule, "from \(sender): \(violation.message)")
        }
        if let kind, kind != World.kind(of: bytes.count) {
            report(.order, "from \(sender): \(bytes.count) bytes of the kind \(kind.rawValue)")
        }
        if !readsLater { world.respondToMessage(self, from: sender) }
    }

    /// Reads up to `count` messages from the inbox. Returns how many there were.
    @discardableResult
    func read(_ count: Int) -> Int {
        guard let session else { return 0 }
        for done in 0..<count {
            guard let message = session.messages.poll() else { return done }
            message.payload.withUnsafeBytes { read($0, message.origin) }
        }
        return count
    }

    private func read(_ bytes: UnsafeRawBufferPointer, _ origin: MessageOrigin) {
        // Messages that arrived before the session closed may be read at any time afterwards.
        let (closed, reported) = (hasClosed, sawClosed)
        (hasClosed, sawClosed) = (false, false)
        received(bytes, origin)
        (hasClosed, sawClosed) = (closed, reported)
    }

    // MARK: Calls

    /// Registers a call that must be answered once, within `limit`.
    func call(_ what: String, within limit: Duration) -> Int {
        callCount += 1
        calls[callCount] = Call(
            what: what, deadline: world.loop.now + Moment.Span(limit), isLate: hasClosed)
        note(.call, callCount, 0, what)
        return callCount
    }

    /// Records the answer to a call.
    func recordAnswer(to call: Int, _ text: @autoclosure () -> String, error: NighError? = nil) {
        guard let known = calls.removeValue(forKey: call) else {
            return report(.calls, "call \(call) is answered twice: \(text())")
        }
        if hasClosed, !wasKilled, !known.isLate {
            report(.silence, "\(known.what) is answered after it closed")
        }
        note(.outcome, call, error == nil ? 1 : 0, "\(known.what): \(error.map { "\($0)" } ?? text())")
    }

    func confirm(_ stream: OutgoingStream) { confirmedStreams.append(stream) }

    // MARK: End

    func close() {
        guard let session, !isClosing else { return }
        isClosing = true
        withdrawnFrom.formUnion(world.peers.indices)
        note(.run, 0, 2, "closes")
        countPackets()
        let call = call("close", within: timings.linger + .milliseconds(1_200))
        session.close { [self] in
            recordAnswer(to: call, "done")
            if !sawClosed, !wasKilled { report(.silence, "has closed and did not report it") }
            hasClosed = true
        }
    }

    /// Lets go of other runs, which may refer to this one.
    func forgetOthers() {
        streams = [:]
        confirmedStreams = []
        transfers = []
        channels?.flows = [:]
        questions?.stop()
    }

    private func countPackets() {
        session?.statistics { [self] statistics in
            for peer in statistics.peers.values {
                world.counts.packets += peer.datagrams?.packetsReceived ?? 0
            }
        }
    }

    /// Ends the session without a goodbye, as when its process dies.
    func kill() {
        note(.run, 0, 3, "is killed")
        if !isClosing { countPackets() }
        isClosing = true
        wasKilled = wasKilled || !hasClosed
        hasClosed = true
        streams = [:]
        session?.statistics { [self] statistics in
            for peer in statistics.peers.values {
                world.counts.messagesResent += peer.messagesResent
            }
            for cause in ["TLS damaged", "TLS malformed", "preface changed"] {
                world.counts.damagedLinks += statistics.linksEnded[cause] ?? 0
            }
        }
        session?.crash()
        for task in tasks { task.cancel() }
        tasks = []
        questions?.stop()
        session = nil
    }
}

extension MessageLedger.Row {
    /// The row of a message that has arrived.
    fileprivate init(of origin: MessageOrigin, _ kind: MessageKind?) {
        if kind != nil {
            self = .kinds
        } else if !origin.isReliable {
            self = .unreliable
        } else {
            self = origin.lane == .main ? .main : .bulk
        }
    }
}
