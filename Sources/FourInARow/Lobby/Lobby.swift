import NighCore

/// One player among the tables near: sees them, hosts one, joins or watches another, plays. It has a session and knows no transport.
///
/// Make one, `start` it, and `close` it when done. All members can be called from any thread. What comes of them is told on the
/// session's loop, as a whole view each time; the handler must not block it.
///
/// Confined to the session's loop from `start` on; hence `@unchecked Sendable`.
public final class Lobby: @unchecked Sendable {
    /// What a session of this game offers and looks for.
    public static let service: ServiceName = "fourinarow"

    /// Told with everything as it is now, and with what has happened; nil where there is nothing to say about it.
    public typealias Handler = @Sendable (LobbyView, LobbyNews?) -> Void

    /// The key and the values under which a host says whether its seat is free.
    enum Info {
        static let key = "table"
        static let open = "open"
        static let taken = "taken"
    }

    /// How often the way there and back is measured.
    private static let measurePause = Moment.Span.seconds(2)
    /// So long a host may take to say how its table looks, once there is a conversation.
    private static let welcomePatience = Moment.Span.seconds(10)
    /// So long the person over there may take to answer.
    private static let answerPatience = Duration.seconds(90)
    /// So long a host who is not reached is called again.
    private static let reachPatience = Moment.Span.seconds(30)

    /// Where one is, with what belongs to it.
    enum Stand {
        case lobby
        case hosting(HostTable)
        case joining(Journey)
        case visiting(PeerID, VisitorTable)
    }

    /// The way to a table.
    struct Journey {
        var number: UInt64
        var name: String
        var wish: TableWish
        /// Nil until it is known who answers at the address.
        var host: PeerID?
        /// False while the last conversation with that host is still being ended.
        var hasAsked = true
        /// When a host who is not reached is called again.
        var calls: RepeatedCall
        /// Until then it is not.
        var callTimer: LoopTimer?
        /// Why the host was not reached, while they were to be seen.
        var failure: NighError?

        /// What to tell where the last call ended with `error`: that nobody is seen any more says less than the failure
        /// before.
        func reason(_ error: NighError) -> NighError {
            switch error.cause {
            case .noRoute, .unknownPeer: failure ?? error
            default: error
            }
        }
    }

    /// The session. It is this object's: nobody else starts or closes it.
    public let session: Session
    private let loop: any EventLoop
    private var handler: Handler?
    var view: LobbyView
    var stand = Stand.lobby
    /// Those near who have a table, and those one has a conversation with.
    var peers: [PeerID: Peer] = [:]
    var people: [PeerID: Person] = [:]
    /// Invitations that wait for this side's answer.
    var invitations: [PeerID: Invitation] = [:]
    /// Who was let in and is not connected yet.
    var awaited: [PeerID: TableWish] = [:]
    private var journeys: UInt64 = 0
    private var acceptsAll = false
    private var measureTimer: LoopTimer?
    private var isClosing = false

    /// A player called `name` on `loop`. The transports belong to the session from here on.
    public init(
        name: DisplayName, identity: Identity, trust: TrustStore = .ephemeral(),
        transports: [any Transport], loop: any EventLoop,
        adjusting adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) {
        // Whoever hosts no table is not to be found.
        var configuration = SessionConfiguration(service: Self.service, name: name, role: .client)
        adjust(&configuration)
        session = Session(
            configuration, identity: identity, trust: trust, transports: transports, loop: loop)
        self.loop = loop
        view = LobbyView(name: name.description, id: session.id)
    }

    private func onLoop(_ work: @escaping @Sendable (Lobby) -> Void) {
        if loop.isCurrent { work(self) } else { loop.execute { work(self) } }
    }

    // MARK: Life

    /// Begins to look for tables. `handler` is told of everything from now on. Once only.
    public func start(_ handler: @escaping Handler) {
        onLoop { lobby in
            precondition(lobby.handler == nil, "a lobby was started twice")
            lobby.handler = handler
            lobby.session.start(
                onEvent: { [weak lobby] in lobby?.took($0) },
                onMessage: { [weak lobby] bytes, origin in
                    lobby?.received(bytes.withUnsafeBytes { Array($0) }, from: origin.peer)
                })
            lobby.measureLater()
            lobby.tell()
        }
    }

    /// Leaves the table, and everything; returns when that is done. Nothing is told afterwards.
    public func close() async {
        onLoop { lobby in
            lobby.isClosing = true
            lobby.handler = nil
            if let timer = lobby.measureTimer { lobby.loop.cancel(timer) }
        }
        await session.close()
    }

    func tell(_ news: LobbyNews? = nil) {
        refresh()
        handler?(view, news)
    }

    // MARK: Own table

    /// Opens a table of one's own, which others see and may come to; whatever table one was at is left.
    ///
    /// - Parameter acceptsAll: the first who wants to sit down may, without being asked about.
    public func host(acceptsAll: Bool = false) {
        onLoop { lobby in
            lobby.leaveQuietly()
            lobby.acceptsAll = acceptsAll
            lobby.stand = .hosting(HostTable())
            lobby.publish()
            lobby.session.setAdvertising(true)
            lobby.tell()
        }
    }

    /// Answers somebody who wants to sit down. Nothing happens where they do not any more.
    public func answer(_ asker: PeerID, accept: Bool, words: String = "") {
        onLoop { lobby in
            guard let invitation = lobby.invitations[asker] else { return }
            lobby.answer(invitation, accept: accept, words: words)
            lobby.tell()
        }
    }

    func answer(_ invitation: Invitation, accept: Bool, words: String) {
        let asker = invitation.peer.id
        invitations[asker] = nil
        guard accept, case .hosting(let table) = stand, table.hasFreeSeat, !awaited.values.contains(.seat)
        else {
            let reason = accept ? "somebody else took the seat" : words
            return session.decline(invitation, words: reason)
        }
        awaited[asker] = .seat
        session.accept(invitation)
    }

    // MARK: Other tables

    /// Asks for a seat at somebody's table, or to watch. What comes of it is told; `leave` takes it back.
    public func join(_ host: PeerID, as wish: TableWish) {
        onLoop { lobby in
            let name = lobby.peers[host]?.name.description ?? host.short
            lobby.depart(to: name, as: wish, host: host)
            lobby.ask()
        }
    }

    /// Asks the host one is on the way to, unless the last conversation with it has yet to end: then once it has.
    func ask() {
        guard case .joining(var journey) = stand, let host = journey.host else { return }
        switch peers[host]?.state {
        case .connected, .reconnecting, .disconnected: journey.hasAsked = false
        case .unavailable, .available, .connecting, nil: journey.hasAsked = true
        }
        if journey.hasAsked { journey.calls.begins(along: routes(to: host), at: loop.now) }
        stand = .joining(journey)
        guard journey.hasAsked else { return }
        session.invite(host, context: journey.wish.bytes, timeout: Self.answerPatience) {
            [weak self, number = journey.number] in self?.arrived($0, number)
        }
    }

    private func routes(to host: PeerID) -> [TransportAddress] {
        peers[host]?.routes.map(\.address) ?? []
    }

    /// Asks whoever hosts at that address, without discovery.
    public func join(at address: TransportAddress, as wish: TableWish) {
        onLoop { lobby in
            let number = lobby.depart(to: address.description, as: wish, host: nil)
            lobby.session.invite(at: address, context: wish.bytes, timeout: Self.answerPatience) {
                [weak lobby] in lobby?.arrived($0, number)
            }
        }
    }

    @discardableResult
    private func depart(to name: String, as wish: TableWish, host: PeerID?) -> UInt64 {
        leaveQuietly()
        journeys += 1
        let calls = RepeatedCall(from: loop.now, until: loop.now + Self.reachPatience)
        stand = .joining(Journey(number: journeys, name: name, wish: wish, host: host, calls: calls))
        tell()
        return journeys
    }

    private func arrived(_ result: Result<PeerID, NighError>, _ number: UInt64) {
        guard !isClosing else { return }
        guard case .joining(var journey) = stand, journey.number == number else {
            // One has changed one's mind meanwhile.
            if case .success(let host) = result, !isAtTable(with: host) { session.disconnect(host) }
            return
        }
        switch result {
        case .failure(let error):
            // That nobody hosts at an address is an answer.
            guard journey.host != nil, let next = journey.calls.nextCall(after: error, at: loop.now) else {
                stand = .lobby
                return tell(.couldNotJoin(name: journey.name, journey.reason(error)))
            }
            let isFirst = journey.failure == nil
            journey.failure = journey.reason(error)
            stand = .joining(journey)
            askAgain(at: next)
            if isFirst { tell(.notReachedYet(name: journey.name, error)) }
        case .success(let host):
            journey.host = host
            stand = .joining(journey)
            loop.schedule(at: loop.now + Self.welcomePatience) { [weak self] in self?.giveUp(number) }
        }
    }

    private func askAgain(at moment: Moment) {
        guard case .joining(var journey) = stand else { return }
        if let timer = journey.callTimer { loop.cancel(timer) }
        journey.callTimer = loop.schedule(at: moment) { [weak self, number = journey.number] in
            guard let self, !isClosing, case .joining(var journey) = stand, journey.number == number else {
                return
            }
            journey.callTimer = nil
            stand = .joining(journey)
            ask()
        }
        stand = .joining(journey)
    }

    /// Something may be otherwise about the ways to a host who was not reached.
    func askSooner(_ host: PeerID) {
        guard case .joining(var journey) = stand, journey.host == host else { return }
        let sooner = journey.calls.nextCall(along: routes(to: host), at: loop.now)
        stand = .joining(journey)
        if let sooner, journey.callTimer != nil { askAgain(at: sooner) }
    }

    private func giveUp(_ number: UInt64) {
        guard case .joining(let journey) = stand, journey.number == number else { return }
        leaveQuietly()
        tell(
            .couldNotJoin(
                name: journey.name,
                NighError(.inviting, .timedOut, peer: journey.name, advice: "they show no table")))
    }

    /// Goes back to the lobby: from a table, with good-bye, or from the way to one.
    public func leave() {
        onLoop { lobby in
            lobby.leaveQuietly()
            lobby.tell()
        }
    }

    func leaveQuietly() {
        let left = stand
        // What comes of leaving is no news any more.
        stand = .lobby
        people = [:]
        switch left {
        case .lobby: return
        case .hosting:
            session.setAdvertising(false)
            for invitation in invitations.values {
                session.decline(invitation, words: "the table was closed")
            }
            invitations = [:]
            awaited = [:]
            session.disconnectAll()
        case .joining(let journey):
            if let host = journey.host { session.disconnect(host) }
            journeys += 1
        case .visiting(let host, _): session.disconnect(host)
        }
    }

    // MARK: Playing

    /// Does something at the table one is at. What comes of it is told.
    ///
    /// - Parameter refused: called on the loop where it cannot be done now, with the reason.
    public func act(_ action: Action, refused: @escaping @Sendable (Breach) -> Void = { _ in }) {
        onLoop { lobby in
            do throws(Breach) {
                try lobby.perform(action)
            } catch {
                refused(error)
            }
        }
    }

    private func perform(_ action: Action) throws(Breach) {
        switch stand {
        case .lobby, .joining: throw .untimely
        case .hosting(var table):
            let outputs = try table.act(action)
            stand = .hosting(table)
            carryOut(outputs)
        case .visiting(let host, var table):
            let outputs = try table.act(action)
            stand = .visiting(host, table)
            carryOut(outputs, host)
            tell()
        }
    }

    // MARK: Measuring

    private func measureLater() {
        measureTimer = loop.schedule(at: loop.now + Self.measurePause) { [weak self] in
            self?.measure()
            self?.measureLater()
        }
    }

    private func measure() {
        guard let other = other, people[other]?.transport != nil else { return }
        session.ping(other) { [weak self] result in
            guard let self, case .success(let time) = result, people[other] != nil else { return }
            people[other]?.roundTrip = time
            tell()
        }
    }

    /// The one at the other end of the table.
    var other: PeerID? {
        switch stand {
        case .hosting(let table): table.guest
        case .visiting(let host, _): host
        case .lobby, .joining: nil
        }
    }

    var takesEverybody: Bool { acceptsAll }
}
