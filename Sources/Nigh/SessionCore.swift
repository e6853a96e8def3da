import NighGroups
import NighIntroductions
import NighLoop
import Synchronization

/// What a session and its peers share: the low-level session, a table of peers, and the readers of events.
///
/// It is the first layer of the low-level session, so that everything that other layers report comes after the event
/// that it follows from.
final class SessionCore: SessionLayer {
    private struct State {
        var peers: [PeerID: Peer] = [:]
        /// Peers that were lost, so that their last messages still carry their names.
        var lostPeers: [PeerID: Peer] = [:]
        var lostInOrder: [PeerID] = []
        var readers: [Reader] = []
        var listReaders = PeerListReaders()
        /// The readers of the members of each group.
        var memberReaders: [Membership: PeerListReaders] = [:]
        var isClosed = false
        /// What to call when the session is closed; nil before somebody closes it.
        var closeCompletions: [@Sendable () -> Void]?

        var peerList: [Peer] {
            peers.values.sorted { $0.id < $1.id }
        }

        /// Gives an event to every reader, and forgets the readers that are gone.
        mutating func append(_ event: SessionEvent) {
            readers.removeAll { $0.subscription == nil }
            for reader in readers { reader.subscription?.append(event) }
        }

        mutating func remember(lost peer: Peer) {
            if lostPeers.updateValue(peer, forKey: peer.id) == nil { lostInOrder.append(peer.id) }
            if lostInOrder.count > SessionCore.lostPeerLimit { lostPeers[lostInOrder.removeFirst()] = nil }
        }
    }

    /// Weak, so that a subscription ends with its reader.
    private struct Reader {
        weak var subscription: SessionEvents.Subscription?
    }

    /// The number of lost peers whose names are kept.
    private static let lostPeerLimit = 256

    /// The low-level session, set before anything else uses this.
    nonisolated(unsafe) private(set) var low: NighCore.Session!
    let loop: UVEventLoop
    private let identity: Identity
    private let onEvent: (@Sendable (SessionEvent) -> Void)?
    let streams = Streams(inbox: Inbox())
    /// Answers offers of files.
    let reception: FileReception
    let groups = Groups()
    let introductions: Introductions
    private let meshMembers: MeshMembers
    private let problems: ProblemPrinter
    private let state = Mutex(State())
    /// Invites and accepts peers in place of the program.
    let inviter: AutomaticInviter

    /// - Parameters:
    ///   - configuration: that of the session which is to be made, without its layers.
    ///   - problems: the problems of the session's transports.
    init(
        _ configuration: SessionConfiguration, _ settings: SessionSettings, loop: UVEventLoop,
        identity: Identity, problems: UnreadProblems
    ) {
        self.loop = loop
        self.identity = identity
        onEvent = settings.onEvent
        reception = FileReception(settings.files)
        let meshMembers = MeshMembers(settings.topology == .mesh ? settings.meshMembers : .everyone)
        self.meshMembers = meshMembers
        introductions = Introductions(
            identity, of: configuration, isMesh: settings.topology == .mesh,
            relaying: settings.relays.policy, limits: settings.relays.limits,
            refusing: { meshMembers.reason(against: $0, $1) })
        self.problems = ProblemPrinter(problems, hasEventReader: settings.onEvent != nil)
        inviter = AutomaticInviter(
            isOn: settings.connectsAutomatically, refusing: { meshMembers.reason(against: $0) })
        reception.report(to: self)
        meshMembers.attach(to: self)
        groups.report(
            to: Groups.Observer(
                changed: { [weak self] in self?.handle($0) },
                violated: { [weak self] in self?.report(.problem($0)) }))
        inviter.reportFailures { [weak self] in self?.invitationFailed($0, $1) }
        introductions.report(
            to: Introductions.Observer(
                failed: { [weak self] in self?.invitationFailed($0, $1) },
                violated: { [weak self] in self?.report(.problem($0)) }))
    }

    /// The layers of the session. The problems come first, so that a reader that begins in between misses none.
    var layers: [any SessionLayer] { [problems, self, reception, groups, introductions, inviter] }

    func attach(to session: NighCore.Session) { low = session }

    /// Starts the session.
    func start(onMessage handle: (@Sendable (Message) -> Void)?) {
        let onMessage = handle.map { handle -> MessageHandler in
            { bytes, origin in
                let payload = bytes.withUnsafeBytes { ByteSlice(copying: $0) }
                handle(Message(origin: origin, payload: payload))
            }
        }
        low.start(onEvent: { _ in }, onMessage: onMessage)
    }

    /// Ends all conversations in good order, then the loop. Calls `completion` when nothing of the session runs any
    /// more, on whatever thread that is known.
    func close(completion: @escaping @Sendable () -> Void = {}) {
        let (isFirst, isClosed) = state.withLock { state in
            guard !state.isClosed else { return (false, true) }
            let isFirst = state.closeCompletions == nil
            state.closeCompletions = (state.closeCompletions ?? []) + [completion]
            return (isFirst, false)
        }
        if isClosed { completion() }
        guard isFirst else { return }
        low.close { [self] in
            let completions = finish()
            // From its own thread the loop does not wait for its end.
            loop.shutdown()
            for completion in completions { completion() }
        }
    }

    /// Whether the session is closed or closing.
    var isClosing: Bool { state.withLock { $0.isClosed || $0.closeCompletions != nil } }

    // MARK: Peers

    var peers: [Peer] { state.withLock { $0.peerList } }

    /// The peer as it was last seen.
    func peer(_ id: PeerID) -> Peer {
        state.withLock { state in
            state.peers[id] ?? state.lostPeers[id] ?? low.peer(id)
        }
    }

    /// The peer as it was last seen; if it was not, as others tell of it.
    func peer(_ id: PeerID, told: Advertisement?) -> Peer {
        state.withLock { state in
            state.peers[id] ?? low.peer(id, told: told)
        }
    }

    /// Saves the identity in a file, where later sessions find it.
    func saveIdentity(in file: IdentityFile) throws(NighError) {
        try file.save(identity.principalIdentity)
    }

    /// Changes the table and reports it, in one step: a new reader gets either the table or the events.
    private func update(_ peer: Peer, reporting events: [SessionEvent]) {
        state.withLock { state in
            if peer.state == .unavailable {
                state.peers[peer.id] = nil
                state.remember(lost: peer)
            } else {
                state.peers[peer.id] = peer
            }
            if !state.listReaders.isEmpty { state.listReaders.yield(state.peerList) }
            for event in events { state.append(event) }
        }
        if let onEvent { for event in events { onEvent(event) } }
    }

    // MARK: Readers

    func events() -> SessionEvents {
        let subscription = SessionEvents.Subscription()
        let isClosed = state.withLock { state in
            for problem in problems.beginReading() { subscription.append(problem) }
            for peer in state.peerList {
                subscription.append(.peerFound(peer))
                if peer.isConnected { subscription.append(.connected(peer)) }
            }
            if !state.isClosed { state.readers.append(Reader(subscription: subscription)) }
            return state.isClosed
        }
        if isClosed { subscription.finish() }
        return SessionEvents(subscription: subscription)
    }

    func peerLists() -> AsyncStream<[Peer]> {
        state.withLock { state in
            let list = state.peerList
            guard !state.isClosed else { return PeerListReaders.only(list) }
            return state.listReaders.add(list) { [weak self] number in
                self?.state.withLock { $0.listReaders.remove(number) }
            }
        }
    }

    func memberLists(of group: Membership) -> AsyncStream<[Peer]> {
        state.withLock { state in
            guard !state.isClosed, groups.isIn(group) else { return PeerListReaders.only([]) }
            return state.memberReaders[group, default: PeerListReaders()].add(members(of: group, state)) {
                [weak self] number in
                self?.state.withLock { $0.memberReaders[group]?.remove(number) }
            }
        }
    }

    func members(of group: Membership) -> [Peer] { state.withLock { members(of: group, $0) } }

    private func members(of group: Membership, _ state: borrowing State) -> [Peer] {
        groups.members(of: group).compactMap { state.peers[$0] }
    }

    /// Gives the readers of a group's members the list as it is now.
    func showMembers(of name: GroupName) {
        state.withLock { state in
            for (group, readers) in state.memberReaders where group.name == name && !readers.isEmpty {
                readers.yield(members(of: group, state))
            }
        }
    }

    /// Ends the sequences of a group's members.
    func finishMembers(of group: Membership) {
        state.withLock { $0.memberReaders.removeValue(forKey: group) }?.finish()
    }

    /// Ends all sequences. Returns what waits for the end.
    private func finish() -> [@Sendable () -> Void] {
        let (readers, lists, completions) = state.withLock { state in
            state.isClosed = true
            defer {
                state.readers = []
                state.listReaders = PeerListReaders()
                state.memberReaders = [:]
                state.closeCompletions = []
            }
            return (
                state.readers.compactMap(\.subscription),
                [state.listReaders] + Array(state.memberReaders.values), state.closeCompletions ?? []
            )
        }
        for reader in readers { reader.finish() }
        for list in lists { list.finish() }
        streams.inbox.finish()
        reception.offers.inbox.finish()
        return completions
    }

    /// Gives an event to every reader and to the program's handler.
    func report(_ event: SessionEvent) {
        state.withLock { $0.append(event) }
        onEvent?(event)
    }

    /// The error with the names of the peers, of which the low-level session may know only the IDs.
    func named(_ error: PartialSendError) -> PartialSendError {
        guard error.reason == nil else { return error }
        return PartialSendError(
            failures: Dictionary(uniqueKeysWithValues: error.failures.map { ($0, peer($0).named($1)) }))
    }

    // MARK: Events of the low-level session

    func handle(_ event: NighCore.SessionEvent) {
        switch event {
        case .stateChanged(let peer, let former, let cause): handleState(of: peer, from: former, cause)
        case .peerChanged(let peer):
            update(peer, reporting: [.peerChanged(peer)])
        case .invited(let invitation): report(.invited(invitation))
        case .invitationEnded(let invitation, let cause):
            if !inviter.isOn { report(.invitationEnded(invitation, cause)) }
        case .invitationsCrossed(let peer, let context):
            if !inviter.isOn {
                report(.invitationsCrossed(peer, context: context))
            }
        case .streamOpened(let stream):
            streams.inbox.append(stream, droppingOldestBeyond: Streams.limit)
            report(.streamOpened(peer(stream.peer), name: stream.name))
        case .pairing(let peer, let code): report(.pairingCode(peer, code))
        case .paired(let peer): report(.paired(peer))
        case .pairingEnded(let peer, let cause): report(.pairingFailed(peer, cause))
        case .trustStoreFailed(let error), .transportFailed(let error): report(.problem(error))
        case .peerUnresponsive(let id): report(.peerUnresponsive(peer(id)))
        case .peerResponsive(let id): report(.peerResponsive(peer(id)))
        case .transportChanged(let scheme, .up): report(.transportUp(scheme))
        case .transportChanged(let scheme, .down(let error)): report(.transportDown(scheme, error))
        case .eventsDropped(let count): report(.eventsDropped(count))
        case .listening, .advertised, .closed: break
        }
    }

    private func invitationFailed(_ id: PeerID, _ error: NighError) {
        report(.automaticInvitationFailed(peer(id), error))
    }

    private func handleState(of peer: Peer, from former: PeerState, _ cause: NighError?) {
        let wasUnknown = former == .unavailable
        var events: [SessionEvent] = wasUnknown ? [.peerFound(peer)] : []
        switch (former, peer.state) {
        case (_, .unavailable):
            events.append(.peerLost(peer))
        case (.reconnecting, .connected): events.append(.reconnected(peer))
        case (_, .connected):
            events.append(.connected(peer))
        case (_, .reconnecting):
            events.append(.reconnecting(peer, cause ?? NighError(.conversing, .linkLost, peer: peer.name)))
        case (_, .disconnected):
            events.append(.disconnected(peer, cause ?? NighError(.conversing, .left, peer: peer.name)))
        case (_, .available), (_, .connecting):
            if !wasUnknown { events.append(.peerChanged(peer)) }
        }
        update(peer, reporting: events)
    }
}
