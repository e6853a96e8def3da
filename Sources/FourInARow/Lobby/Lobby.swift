import NighCore

/// A player among the tables nearby: sees tables, hosts one, joins or watches another, and plays. It has a session and
/// knows no transport.
///
/// Create a lobby, `start` it, and `close` it when done. Any thread may call all members. The lobby reports every
/// change on the session's loop, each time with a complete view. The handler must not block the loop.
///
/// `@unchecked Sendable`: confined to the session's loop from `start` on.
/// This file is long because the player's state is private to it.
public final class Lobby: @unchecked Sendable {
    /// The service that sessions of this game advertise and look for.
    public static let service: ServiceName = "fourinarow"

    /// Called with the current view and its news; nil if there are none.
    public typealias Handler = @Sendable (LobbyView, LobbyNews?) -> Void

    /// The key and the values in the discovery info with which a host says whether its seat is free.
    enum Info {
        static let key = "table"
        static let open = "open"
        static let taken = "taken"
    }

    /// The interval between measurements of the round trip.
    private static let measureInterval = Moment.Span.seconds(2)
    /// The time that a host may take to send its welcome, once there is a conversation.
    private static let welcomeTimeout = Moment.Span.seconds(10)
    /// The time that the person at the other end may take to answer.
    private static let answerTimeout = Duration.seconds(90)
    /// The time that the watchers of a lost host have to come to the table of the guest, before the seat is offered to
    /// those present.
    private static let gatheringTime = Moment.Span.seconds(5)
    /// The time that a watcher has to take the seat before it is also offered to the next one.
    private static let offerTime = Moment.Span.seconds(10)
    /// The time after which a table that was taken over is closed if nobody has come to it.
    private static let emptyTableTime = Moment.Span.seconds(40)
    /// The time during which an unreached host is called again.
    private static let reachTimeout = Moment.Span.seconds(30)

    /// Where the player is, and the state that belongs there.
    enum State {
        case lobby
        case hosting(HostTable)
        case joining(JoinAttempt)
        case visiting(PeerID, VisitorTable)
    }

    /// An attempt to join a table.
    struct JoinAttempt {
        var number: UInt64
        var name: String
        var role: TableRole
        /// The table that the player comes from, if this host takes it over.
        var lost: LostHost?
        /// Nil until a host has answered at the address.
        var host: PeerID?
        /// Calls the address, if the host is asked by its address. Cancelling it withdraws the question.
        var addressCall: Task<Void, Never>?
        /// False while the last conversation with that host is still ending.
        var hasInvited = true
        /// Decides when to call a host again that was not reached.
        var calls: RetrySchedule
        /// The timer of the next call, while one is scheduled.
        var callTimer: LoopTimer?
        /// Why the host was not reached while discovery still saw it.
        var failure: NighError?

        /// Returns the reason to report if the last call failed with `error`.
        ///
        /// If `error` only says that the host is not seen any more, the failure before it says more.
        func reason(_ error: NighError) -> NighError {
            switch error.cause {
            case .noRoute, .unknownPeer: failure ?? error
            default: error
            }
        }

        /// Returns the news to report when the attempt has failed. A player who followed a lost host's guest has only
        /// lost the host.
        func news(of error: NighError) -> LobbyNews {
            lost.map { .tableClosed(name: $0.name, $0.cause) } ?? .couldNotJoin(name: name, error)
        }
    }

    /// The host that the player has lost, and its table.
    struct LostHost {
        var table: LostTable
        var name: String
        var cause: NighError?
    }

    /// The session. Only the lobby starts and closes it.
    public var session: Session { low.session }
    let low: LowLevelSession
    /// The loop of the session, on which the lobby reports.
    public let loop: any EventLoop
    private var handler: Handler?
    var view: LobbyView
    var state = State.lobby
    /// The peers that the session sees.
    var peers: [PeerID: Peer] = [:]
    /// The people that the player is connected to.
    var people: [PeerID: Person] = [:]
    /// Invitations that wait for the player's answer.
    var invitations: [PeerID: Invitation] = [:]
    /// The requests of peers that were accepted and are not connected yet.
    var awaited: [PeerID: JoinRequest] = [:]
    /// Offers the seat of a table that was taken over.
    private var seatTimer: LoopTimer?
    /// Closes a table that was taken over, if nobody comes to it.
    private var emptyTableTimer: LoopTimer?
    private var attemptCount: UInt64 = 0
    private(set) var acceptsAll = false
    private var measureTimer: LoopTimer?
    private var isClosing = false

    /// Creates a player called `name` on `loop`. From here on the transports belong to the session.
    public init(
        name: DisplayName, identity: Identity, trust: TrustStore = .ephemeral(),
        transports: [any Transport], loop: any EventLoop,
        adjusting adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) {
        // A player without a table must not be found.
        var configuration = SessionConfiguration(service: Self.service, name: name, role: .client)
        adjust(&configuration)
        low = LowLevelSession(
            configuration, identity: identity, trust: trust, transports: transports, loop: loop)
        self.loop = loop
        view = LobbyView(name: name.description, id: low.session.identity)
    }

    private func onLoop(_ work: @escaping @Sendable (Lobby) -> Void) {
        if loop.isCurrent { work(self) } else { loop.execute { work(self) } }
    }

    // MARK: Starting and closing

    /// Starts to look for tables, and calls `handler` with every change from now on. Call this once only.
    public func start(_ handler: @escaping Handler) {
        onLoop { lobby in
            precondition(lobby.handler == nil, "a lobby was started twice")
            lobby.handler = handler
            lobby.low.start(
                onEvent: { [weak lobby] in lobby?.handle($0) },
                onMessage: { [weak lobby] bytes, origin in
                    lobby?.received(bytes.withUnsafeBytes { Array($0) }, from: origin.peer)
                })
            lobby.measureLater()
            lobby.notify()
        }
    }

    /// Leaves the table and closes the session, and returns when that is done. The handler is not called afterwards.
    public func close() async {
        onLoop { lobby in
            lobby.isClosing = true
            lobby.handler = nil
            if let timer = lobby.measureTimer { lobby.loop.cancel(timer) }
            lobby.cancelTableTimers()
        }
        await session.close()
    }

    func notify(_ news: LobbyNews? = nil) {
        refresh()
        handler?(view, news)
    }

    // MARK: Hosting a table

    /// Opens a table of the player's own, which others see and may come to. Leaves the current table, if there is one.
    ///
    /// - Parameter acceptsAll: whether the first peer that wants the seat gets it without a question to the player.
    public func host(acceptsAll: Bool = false) {
        onLoop { lobby in
            lobby.leaveQuietly()
            lobby.acceptsAll = acceptsAll
            lobby.state = .hosting(HostTable())
            lobby.publish()
            lobby.session.startAdvertising()
            lobby.notify()
        }
    }

    /// Answers a peer that wants to sit down. Does nothing if the peer no longer wants to.
    public func answer(_ peer: PeerID, accept: Bool, reason: String = "") {
        onLoop { lobby in
            guard let invitation = lobby.invitations[peer] else { return }
            lobby.answer(invitation, accept: accept, reason: reason)
            lobby.notify()
        }
    }

    func answer(_ invitation: Invitation, accept: Bool, reason: String) {
        let peer = invitation.peer.id
        invitations[peer] = nil
        guard accept, case .hosting(let table) = state, table.hasFreeSeat, !isSeatPromised,
            let request = try? JoinRequest(invitation), request.canStay || !table.table.isWaiting
        else {
            let reason = accept ? Self.seatIsTaken : reason
            return invitation.decline(because: reason)
        }
        awaited[peer] = request
        invitation.accept()
    }

    /// Whether somebody is on the way to the seat.
    var isSeatPromised: Bool { awaited.values.contains { $0.role == .seat } }

    // MARK: Taking over a table

    /// Hosts the table of a host that left, and waits for its watchers. `former` is the game as it was until now.
    func takeOver(_ table: HostTable, _ former: Game?, from name: String, _ cause: NighError?) {
        guard !isClosing else { return }
        state = .hosting(table)
        acceptsAll = false
        publish()
        session.startAdvertising()
        notify(.hostLeft(name: name, successor: nil))
        if let game = table.table.shown.game, let former {
            // The player's pending action takes effect now.
            if game.moves.count > former.moves.count, let cell = game.lastCell {
                notify(.table(.moved(table.table.hostDisc, cell)))
            }
            if former.ending == nil, let ending = game.ending { notify(.table(.ended(ending))) }
        }
        scheduleOffer(after: Self.gatheringTime)
        emptyTableTimer = loop.schedule(at: loop.now + Self.emptyTableTime) { [weak self] in
            self?.closeEmptyTable(of: name, cause)
        }
    }

    /// Offers the seat later: to the watchers of a table that was just taken over, or to the next one if the last does
    /// not answer.
    func scheduleOffer(after span: Moment.Span = offerTime) {
        if let seatTimer { loop.cancel(seatTimer) }
        seatTimer = loop.schedule(at: loop.now + span) { [weak self] in
            self?.seatTimer = nil
            self?.offerSeat()
        }
    }

    /// Offers the seat of a waiting game to the next watcher, and to another one later.
    func offerSeat() {
        guard case .hosting(var table) = state, table.awaitsFormerHost else { return }
        let outputs = table.offerSeat()
        state = .hosting(table)
        carryOut(outputs)
        publish()
        scheduleOffer()
    }

    private func closeEmptyTable(of name: String, _ cause: NighError?) {
        emptyTableTimer = nil
        guard case .hosting(let table) = state, table.isEmpty, awaited.isEmpty else { return }
        leaveQuietly()
        notify(.tableClosed(name: name, cause))
    }

    /// Keeps a table that was taken over open, because somebody has come to it.
    func keepTableOpen() {
        if let emptyTableTimer { loop.cancel(emptyTableTimer) }
        emptyTableTimer = nil
    }

    private func cancelTableTimers() {
        for timer in [seatTimer, emptyTableTimer] { if let timer { loop.cancel(timer) } }
        seatTimer = nil
        emptyTableTimer = nil
    }

    /// Goes to the table of the guest that takes over from the lost host.
    func follow(_ guest: PeerID, called name: String, after lost: LostHost) {
        guard !isClosing else { return }
        startJoining(name, as: .watch, host: guest, after: lost)
        notify(.hostLeft(name: lost.name, successor: name))
        inviteHost()
    }

    /// Takes or declines the seat that the host has offered to this watcher.
    public func answerOffer(takesSeat: Bool) {
        onLoop { lobby in
            guard case .visiting(let host, var table) = lobby.state else { return }
            let outputs = table.answerOffer(takesSeat: takesSeat)
            lobby.state = .visiting(host, table)
            lobby.carryOut(outputs, host)
            lobby.notify()
        }
    }

    // MARK: Joining a table

    /// Asks for a seat at a host's table, or to watch there. The handler gets the result. `leave` cancels the request.
    public func join(_ host: PeerID, as role: TableRole) {
        onLoop { lobby in
            let name = lobby.peers[host]?.name.description ?? host.short
            lobby.startJoining(name, as: role, host: host)
            lobby.inviteHost()
        }
    }

    /// Invites the host of the current attempt. If the last conversation with that host is still ending, it waits for
    /// the end.
    func inviteHost() {
        guard case .joining(var attempt) = state, let host = attempt.host else { return }
        switch peers[host]?.state {
        case .connected, .reconnecting, .disconnected: attempt.hasInvited = false
        case .unavailable, .available, .connecting, nil: attempt.hasInvited = true
        }
        if attempt.hasInvited { attempt.calls.callStarted(along: routes(to: host), at: loop.now) }
        state = .joining(attempt)
        guard attempt.hasInvited else { return }
        let request = JoinRequest(attempt.role, lostTable: attempt.lost?.table)
        low.invite(host, context: request.bytes, timeout: Self.answerTimeout) {
            [weak self, number = attempt.number] in self?.inviteCompleted($0, number)
        }
    }

    private func routes(to host: PeerID) -> [TransportAddress] {
        peers[host]?.routes.map(\.address) ?? []
    }

    /// Asks the host at this address, without discovery.
    public func join(at address: TransportAddress, as role: TableRole) {
        onLoop { lobby in
            let number = lobby.startJoining(address.description, as: role, host: nil)
            guard case .joining(var attempt) = lobby.state, attempt.number == number else { return }
            attempt.addressCall = Task(executorPreference: lobby.loop) {
                [weak lobby, low = lobby.low] in
                do throws(NighError) {
                    let host = try await low.invite(
                        at: address, context: JoinRequest(role).bytes, timeout: Self.answerTimeout)
                    lobby?.inviteCompleted(.success(host), number)
                } catch {
                    lobby?.inviteCompleted(.failure(error), number)
                }
            }
            lobby.state = .joining(attempt)
        }
    }

    @discardableResult
    private func startJoining(
        _ name: String, as role: TableRole, host: PeerID?, after lost: LostHost? = nil
    ) -> UInt64 {
        leaveQuietly()
        attemptCount += 1
        let calls = RetrySchedule(from: loop.now, until: loop.now + Self.reachTimeout)
        state = .joining(
            JoinAttempt(
                number: attemptCount, name: name, role: role, lost: lost, host: host, calls: calls))
        notify()
        return attemptCount
    }

    private func inviteCompleted(_ result: Result<PeerID, NighError>, _ number: UInt64) {
        guard !isClosing else { return }
        guard case .joining(var attempt) = state, attempt.number == number else {
            // The player has changed plans in the meantime.
            if case .success(let host) = result, !isAtTable(with: host) { low.disconnect(host) }
            return
        }
        switch result {
        case .failure(let error):
            // A host that was asked by its address is not called again: that nobody hosts there is an answer.
            guard attempt.host != nil, let next = attempt.calls.nextCall(after: error, at: loop.now) else {
                state = .lobby
                return notify(attempt.news(of: attempt.reason(error)))
            }
            // A guest needs a moment to take over the table.
            let isFirst = attempt.failure == nil && attempt.lost == nil
            attempt.failure = attempt.reason(error)
            state = .joining(attempt)
            inviteAgain(at: next)
            if isFirst { notify(.notReachedYet(name: attempt.name, error)) }
        case .success(let host):
            attempt.host = host
            state = .joining(attempt)
            loop.schedule(at: loop.now + Self.welcomeTimeout) { [weak self] in self?.giveUp(number) }
        }
    }

    private func inviteAgain(at moment: Moment) {
        guard case .joining(var attempt) = state else { return }
        if let timer = attempt.callTimer { loop.cancel(timer) }
        attempt.callTimer = loop.schedule(at: moment) { [weak self, number = attempt.number] in
            guard let self, !isClosing, case .joining(var attempt) = state, attempt.number == number else {
                return
            }
            attempt.callTimer = nil
            state = .joining(attempt)
            inviteHost()
        }
        state = .joining(attempt)
    }

    /// Calls an unreached host sooner than planned, if its routes have changed.
    func inviteSooner(_ host: PeerID) {
        guard case .joining(var attempt) = state, attempt.host == host else { return }
        let sooner = attempt.calls.nextCall(along: routes(to: host), at: loop.now)
        state = .joining(attempt)
        if let sooner, attempt.callTimer != nil { inviteAgain(at: sooner) }
    }

    private func giveUp(_ number: UInt64) {
        guard case .joining(let attempt) = state, attempt.number == number else { return }
        leaveQuietly()
        notify(
            attempt.news(
                of: NighError(
                    .inviting, .timedOut, peer: attempt.name,
                    advice: "the host accepted but sent no table")))
    }

    /// Returns to the lobby: leaves the table with a goodbye, or cancels the attempt to join one.
    public func leave() {
        onLoop { lobby in
            lobby.leaveQuietly()
            lobby.notify()
        }
    }

    func leaveQuietly() {
        let left = state
        // Events that follow from leaving are not news.
        state = .lobby
        people = [:]
        cancelTableTimers()
        switch left {
        case .lobby: return
        case .hosting:
            session.stopAdvertising()
            for invitation in invitations.values {
                invitation.decline(because: "the table was closed")
            }
            invitations = [:]
            awaited = [:]
            low.disconnectAll()
        case .joining(let attempt):
            attempt.addressCall?.cancel()
            if let host = attempt.host { low.disconnect(host) }
            attemptCount += 1
        case .visiting(let host, _): low.disconnect(host)
        }
    }

    // MARK: Playing

    /// Performs an action at the current table. The handler gets the result.
    ///
    /// - Parameter onRefusal: called on the loop, with the reason, if the action is not possible now.
    public func act(_ action: Action, onRefusal: @escaping @Sendable (Breach) -> Void = { _ in }) {
        onLoop { lobby in
            do throws(Breach) {
                try lobby.perform(action)
            } catch {
                onRefusal(error)
            }
        }
    }

    private func perform(_ action: Action) throws(Breach) {
        switch state {
        case .lobby, .joining: throw .untimely
        case .hosting(var table):
            let outputs = try table.act(action)
            state = .hosting(table)
            carryOut(outputs)
        case .visiting(let host, var table):
            let outputs = try table.act(action)
            state = .visiting(host, table)
            carryOut(outputs, host)
            notify()
        }
    }

    // MARK: Measuring

    private func measureLater() {
        measureTimer = loop.schedule(at: loop.now + Self.measureInterval) { [weak self] in
            self?.measure()
            self?.measureLater()
        }
    }

    private func measure() {
        guard let other = otherPeer, people[other]?.transport != nil else { return }
        low.ping(other) { [weak self] result in
            guard let self, case .success(let time) = result, people[other] != nil else { return }
            people[other]?.roundTrip = time
            notify()
        }
    }

    /// The peer at the other end of the table.
    var otherPeer: PeerID? {
        switch state {
        case .hosting(let table): table.guest
        case .visiting(let host, _): host
        case .lobby, .joining: nil
        }
    }

}
