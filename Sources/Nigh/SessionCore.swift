import NighGroups
import NighIntroductions
import NighLoop
import Synchronization

/// What a session and its peers share: the low-level session, a table of peers, and the readers of events.
final class SessionCore: Sendable {
    private struct State {
        var peers: [PeerID: NighCore.Peer] = [:]
        /// Peers that were lost, so that their last messages still carry their names.
        var lostPeers: [PeerID: NighCore.Peer] = [:]
        var lostInOrder: [PeerID] = []
        var readers: [Reader] = []
        var listReaders = PeerListReaders()
        /// The readers of the members of each group.
        var memberReaders: [Membership: PeerListReaders] = [:]
        var isClosed = false
        /// What to call when the session is closed; nil before somebody closes it.
        var closeCompletions: [@Sendable () -> Void]?
        var connectsAutomatically = false
        var invitations = AutomaticInvitations()
        var invitationTimer: LoopTimer?
        var problems: UnreadProblems
        /// Whether the program has ever asked for events.
        var hasEventReader: Bool

        func peerList(in session: SessionCore) -> [Peer] {
            peers.values.sorted { $0.id < $1.id }.map { Peer($0, in: session) }
        }

        /// Gives an event to every reader, and forgets the readers that are gone.
        mutating func append(_ event: SessionEvent) {
            readers.removeAll { $0.subscription == nil }
            for reader in readers { reader.subscription?.append(event) }
        }

        mutating func remember(lost peer: NighCore.Peer) {
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

    let low: NighCore.Session
    let loop: UVEventLoop
    private let identity: IdentityUse
    private let onEvent: (@Sendable (SessionEvent) -> Void)?
    let streams = Streams(inbox: Inbox())
    /// Answers offers of files; the low-level session does not keep it.
    let reception: FileReception
    let groups: Groups
    let introductions: Introductions
    private let meshMembers: MeshMembers
    private let state: Mutex<State>

    init(
        _ low: NighCore.Session, loop: UVEventLoop, identity: IdentityUse, reception: FileReception,
        groups: Groups, introductions: Introductions, meshMembers: MeshMembers, settings: SessionSettings,
        problems: UnreadProblems
    ) {
        self.low = low
        self.loop = loop
        self.identity = identity
        onEvent = settings.onEvent
        self.reception = reception
        self.groups = groups
        self.introductions = introductions
        self.meshMembers = meshMembers
        state = Mutex(
            State(
                connectsAutomatically: settings.connectsAutomatically, problems: problems,
                hasEventReader: settings.onEvent != nil))
        var onMessage: MessageHandler?
        if let handle = settings.onMessage {
            onMessage = { bytes, origin in
                let payload = bytes.withUnsafeBytes { ByteSlice(copying: $0) }
                handle(Message(NighCore.Message(origin: origin, payload: payload)))
            }
        }
        reception.attach(to: self)
        meshMembers.attach(to: self)
        groups.attach(
            to: low, reporting: { [weak self] in self?.handle($0) },
            violations: { [weak self] in self?.report(.problem($0)) })
        introductions.attach(
            to: low,
            observer: Introductions.Observer(
                failed: { [weak self] in self?.introductionFailed($0, $1) },
                violated: { [weak self] in self?.report(.problem($0)) }))
        low.start(
            onEvent: { [weak self] event in
                // First, so that a reader that comes between the two misses nothing.
                self?.noteProblem(event)
                self?.handle(event)
                groups.handle(event)
                introductions.handle(event)
            }, onMessage: onMessage)
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
        loop.execute { [introductions] in introductions.stop() }
        low.close { [self] in
            let completions = finish()
            identity.end()
            // From its own thread the loop does not wait for its end.
            loop.shutdown()
            for completion in completions { completion() }
        }
    }

    /// Whether the session is closed or closing.
    var isClosing: Bool { state.withLock { $0.isClosed || $0.closeCompletions != nil } }

    // MARK: Peers

    var peers: [Peer] { state.withLock { $0.peerList(in: self) } }

    /// The peer as it was last seen.
    func peer(_ id: PeerID) -> Peer {
        state.withLock { state in
            (state.peers[id] ?? state.lostPeers[id]).map { Peer($0, in: self) }
                ?? Peer(forgotten: id, in: self)
        }
    }

    /// The peer as it was last seen; if it was not, as others tell of it.
    func peer(_ id: PeerID, told: Advertisement?) -> Peer {
        state.withLock { state in
            if let seen = state.peers[id] { return Peer(seen, in: self) }
            guard let told else { return Peer(forgotten: id, in: self) }
            return Peer(told, low.trust(inTold: told), in: self)
        }
    }

    /// Saves the identity in a file, where later sessions find it.
    func saveIdentity(in file: IdentityFile) throws(NighError) {
        try file.save(identity.identity.principalIdentity)
    }

    /// Changes the table and reports it, in one step: a new reader gets either the table or the events.
    private func update(_ peer: NighCore.Peer, reporting events: [SessionEvent]) {
        state.withLock { state in
            if peer.state == .unavailable {
                state.peers[peer.id] = nil
                state.remember(lost: peer)
            } else {
                state.peers[peer.id] = peer
            }
            if !state.listReaders.isEmpty { state.listReaders.yield(state.peerList(in: self)) }
            for event in events { state.append(event) }
        }
        if let onEvent { for event in events { onEvent(event) } }
    }

    // MARK: Readers

    func events() -> SessionEvents {
        let subscription = SessionEvents.Subscription()
        let isClosed = state.withLock { state in
            state.hasEventReader = true
            for problem in state.problems.events { subscription.append(problem) }
            for peer in state.peerList(in: self) {
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
            let list = state.peerList(in: self)
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
        groups.members(of: group).compactMap { state.peers[$0] }.map { Peer($0, in: self) }
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

    /// Keeps what leaves a program deaf for those that begin to read of it later, and prints it for one that does not.
    private func noteProblem(_ event: NighCore.SessionEvent) {
        let mayPrint = state.withLock { state in
            state.problems.handle(event) && state.problems.print != nil && !state.hasEventReader
        }
        guard mayPrint else { return }
        loop.schedule(at: loop.now + UnreadProblems.patience) { [weak self] in self?.printProblems() }
    }

    private func printProblems() {
        let (lines, print) = state.withLock { state -> ([String], (@Sendable (String) -> Void)?) in
            guard !state.hasEventReader, !state.isClosed, state.closeCompletions == nil else {
                return ([], nil)
            }
            return (state.problems.takeLines(), state.problems.print)
        }
        for line in lines { print?(line) }
    }

    /// The error with the names of the peers, of which the low-level session may know only the IDs.
    func named(_ error: PartialSendError) -> PartialSendError {
        guard error.reason == nil else { return error }
        return PartialSendError(
            failures: Dictionary(uniqueKeysWithValues: error.failures.map { ($0, peer($0).named($1)) }))
    }

    // MARK: Events of the low-level session

    private func handle(_ event: NighCore.SessionEvent) {
        switch event {
        case .stateChanged(let peer, let former, let cause): handleState(of: peer, from: former, cause)
        case .peerChanged(let peer):
            update(peer, reporting: [.peerChanged(Peer(peer, in: self))])
            if peer.trust == .paired { inviteAfterPairing(peer.id) }
        case .invited(let invitation):
            if introductions.answer(invitation) { return }
            if connectsAutomatically { return answerAutomatically(invitation) }
            report(.invited(Invitation(invitation, in: self)))
        case .invitationEnded(let invitation, let cause):
            if !connectsAutomatically { report(.invitationEnded(Invitation(invitation, in: self), cause)) }
        case .invitationsCrossed(let peer, let context):
            if !connectsAutomatically {
                report(.invitationsCrossed(Peer(peer, in: self), context: context))
            }
        case .streamOpened(let stream):
            streams.inbox.append(stream, droppingOldestBeyond: Streams.limit)
            report(.streamOpened(peer(stream.peer), name: stream.name))
        case .pairing(let peer, let code): report(.pairingCode(Peer(peer, in: self), code))
        case .paired(let peer):
            report(.paired(Peer(peer, in: self)))
            inviteAfterPairing(peer.id)
        case .pairingEnded(let peer, let cause): report(.pairingFailed(Peer(peer, in: self), cause))
        case .trustStoreFailed(let error), .transportFailed(let error): report(.problem(error))
        case .peerUnresponsive(let id): report(.peerUnresponsive(peer(id)))
        case .peerResponsive(let id): report(.peerResponsive(peer(id)))
        case .transportChanged(let scheme, .up): report(.transportUp(scheme))
        case .transportChanged(let scheme, .down(let error)): report(.transportDown(scheme, error))
        case .eventsDropped(let count): report(.eventsDropped(count))
        case .listening, .advertised, .closed: break
        }
    }

    private func answerAutomatically(_ invitation: NighCore.Invitation) {
        if let reason = meshMembers.reason(against: invitation.peer.id) {
            low.decline(invitation, reason: reason)
        } else {
            low.accept(invitation)
        }
    }

    private func introductionFailed(_ id: PeerID, _ error: NighError) {
        report(.automaticInvitationFailed(peer(id), error))
    }

    private func handleState(of low: NighCore.Peer, from former: PeerState, _ cause: NighError?) {
        let peer = Peer(low, in: self)
        let wasUnknown = former == .unavailable
        var events: [SessionEvent] = wasUnknown ? [.peerFound(peer)] : []
        switch (former, low.state) {
        case (_, .unavailable):
            events.append(.peerLost(peer))
            state.withLock { $0.invitations.lost(low.id) }
        case (.reconnecting, .connected): events.append(.reconnected(peer))
        case (_, .connected):
            events.append(.connected(peer))
            state.withLock { $0.invitations.connected(low.id) }
        case (_, .reconnecting):
            events.append(.reconnecting(peer, cause ?? NighError(.conversing, .linkLost, peer: peer.name)))
        case (_, .disconnected):
            let error = cause ?? NighError(.conversing, .left, peer: peer.name)
            events.append(.disconnected(peer, error))
            state.withLock { $0.invitations.disconnected(low.id, because: error, at: loop.now) }
        case (_, .available):
            if !wasUnknown { events.append(.peerChanged(peer)) }
            state.withLock { $0.invitations.available(low.id, at: loop.now) }
        case (_, .connecting):
            if !wasUnknown { events.append(.peerChanged(peer)) }
        }
        update(low, reporting: events)
        // The peer may have become available by inviting this session, which is the next event and answered first.
        loop.execute { [weak self] in self?.inviteDue() }
    }

    // MARK: Automatic invitations

    var connectsAutomatically: Bool {
        get { state.withLock { $0.connectsAutomatically } }
        set {
            state.withLock { $0.connectsAutomatically = newValue }
            guard newValue else { return }
            loop.execute { [self] in
                state.withLock { state in
                    // Peers that were left alone are invited again.
                    state.invitations = AutomaticInvitations()
                    for peer in state.peers.values {
                        switch peer.state {
                        case .available: state.invitations.available(peer.id, at: loop.now)
                        case .connected, .reconnecting: state.invitations.connected(peer.id)
                        case .unavailable, .connecting, .disconnected: break
                        }
                    }
                }
                inviteDue()
            }
        }
    }

    /// The program ends the conversation with this peer: do not begin another one automatically.
    func programLeaves(_ peer: PeerID) { state.withLock { $0.invitations.finish(peer) } }

    private func inviteAfterPairing(_ peer: PeerID) {
        state.withLock { $0.invitations.paired(peer, at: loop.now) }
        inviteDue()
    }

    /// Invites the peers that are due, and waits for the next ones. To be called on the loop.
    private func inviteDue() {
        guard connectsAutomatically else { return }
        let due = state.withLock { $0.invitations.takeDue(at: loop.now) }
        for id in due {
            guard meshMembers.reason(against: id) == nil else {
                state.withLock { $0.invitations.finish(id) }
                continue
            }
            low.invite(id) { [weak self] result in
                guard let self, case .failure(let error) = result else { return }
                state.withLock { state in
                    let isPaired = state.peers[id]?.trust == .paired
                    state.invitations.failed(id, because: error, isPaired: isPaired, at: loop.now)
                }
                report(.automaticInvitationFailed(peer(id), error))
                inviteDue()
            }
        }
        let (former, next) = state.withLock { ($0.invitationTimer, $0.invitations.nextMoment) }
        if let former { loop.cancel(former) }
        let timer = next.map { loop.schedule(at: $0) { [weak self] in self?.inviteDue() } }
        state.withLock { $0.invitationTimer = timer }
    }
}
