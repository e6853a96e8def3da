/// A session of one service: it sees the peers that offer the same service, invites them or is invited, and exchanges
/// messages with them, over the transports that it was given.
///
/// Create a session, `start` it, and `close` it when done. All members can be called from any thread or task, also from
/// the session's own handlers. The results of a call are reported as events, in order, on the session's loop. Handlers
/// must not block the loop. Messages arrive in the handler given to `start`, or in `messages` if there is none.
///
/// A reliable message arrives exactly once and in the order of its lane, also when the link breaks and another link
/// takes over. Otherwise the conversation ends, and both sides are notified. `SessionLimits` bounds every resource.
public final class Session: Sendable {
    /// The PeerID by which other sessions know this one.
    public let id: PeerID
    /// The identity that the session acts for, by which others trust it: its own PeerID, unless its key is a delegate.
    public let identity: PeerID
    /// The settings that the session was made with, except its layers.
    public let configuration: SessionConfiguration
    /// The trust store: what is known about peers' identities.
    public let trust: TrustStore
    /// The received messages of all peers, if no message handler was given to `start`.
    public let messages: MessageSequence
    /// The events, if no event handler was given to `start`.
    public let events: EventSequence
    /// The event loop on which everything happens.
    public let loop: any EventLoop

    /// The loop's thread, if it has one of its own.
    private let loopThread: LoopThread?
    let driver: SessionDriver
    /// The driver's machine, touched on the loop only. It is kept here so that a message sent from the loop reaches it
    /// without retaining the driver.
    nonisolated(unsafe) let machine: SessionMachine
    let directory = PortDirectory()
    /// How peers and invitations reach this session.
    let reference: SessionReference

    /// Creates a session that uses `transports` and calls back on `loop`. Nothing happens before `start`.
    ///
    /// The layers of the configuration may bring further transports. From here on all transports belong to the session,
    /// which shuts them down when it closes. Two transports of one scheme, two layers for one thing, or limits with
    /// impossible values (see `SessionLimits`), are programming errors and stop the program. So does a libssl without
    /// TLS 1.3.
    ///
    /// - Parameter identity: the key pair; the hash of its public key is this session's PeerID. Load it from an
    ///   `IdentityFile` to be the same peer at every start.
    /// - Parameter trust: what is known about peers' keys. `TrustStore.standard()` keeps it for all of this user's
    ///   programs. The default store is forgotten with the session.
    public convenience init(
        _ configuration: SessionConfiguration, identity: Identity, trust: TrustStore = .ephemeral(),
        transports: [any Transport], loop: any EventLoop
    ) {
        do throws(NighError) {
            try self.init(
                checking: configuration, identity: identity, trust: trust, transports: transports, loop: loop)
        } catch {
            fatalError("\(error)")
        }
    }

    /// The same for callers that report mistakes instead of stopping.
    package init(
        checking configuration: SessionConfiguration, identity: Identity, trust: TrustStore,
        transports: [any Transport], loop: any EventLoop
    ) throws(NighError) {
        var transports = transports + configuration.layers.flatMap(\.transports)
        guard Set(transports.map(\.scheme)).count == transports.count else {
            throw NighError(.configuring, .invalid("list of transports: a session takes one of each scheme"))
        }
        if let name = configuration.limits.invalidLimit {
            throw NighError(
                .configuring, .invalid("value of limits.\(name): the protocol does not allow it"),
                advice: "docs/reference/LIMITS.md has the bounds")
        }
        let layers = try LayerCalls(configuration.layers)
        let offer = try Self.offer(configuration.security, identity)
        if configuration.checksTransports { transports = transports.map(Self.checked) }
        var seeds = SeededGenerator(seed: configuration.seed ?? .random(in: .min ... .max))
        var hello = Hello(
            peer: identity.peerID, incarnation: seeds.next(), service: configuration.service,
            name: configuration.name,
            maximumFrame: configuration.limits.frame, maximumMessage: configuration.limits.message)
        hello.streams = configuration.limits.streamTerms
        hello.streams?.acceptsFiles = layers?.streams[.files] != nil
        hello.streams?.acceptsRelays = layers?.streams[.relay] != nil
        hello.acceptsKinds = layers?.receivers.isEmpty == false
        hello.hasDatagrams = configuration.datagrams
        hello.acceptsDelegations = configuration.security != .none
        if configuration.security != .none {
            hello.delegation = identity.delegation(
                service: configuration.service, incarnation: hello.incarnation)
        }
        let driverReference = SessionDriver.DriverReference()
        let portNotifier = PortNotifier(loop: loop) { driverReference.driver?.processListedPorts() }
        let reference = SessionReference(
            loop: loop, directory: directory, portNotifier: portNotifier,
            unreliableLimit: configuration.limits.unreliableMessage, driverReference: driverReference)
        let machine = SessionMachine(
            reference: reference, hello: hello, limits: configuration.limits, timings: configuration.timings,
            transports: transports.map {
                .init(
                    scheme: $0.scheme, priority: $0.capabilities.priority,
                    hasDatagrams: $0.capabilities.datagrams, isForPeople: $0.capabilities.isForPeople)
            },
            offer: offer, security: configuration.security,
            trust: trust, identity: hello.delegation == nil ? identity.peerID : identity.principal,
            seed: seeds.next())
        machine.acceptsPairing = configuration.acceptsPairing
        var advertisement = Advertisement(
            service: configuration.service, peer: identity.peerID, name: configuration.name,
            info: configuration.info)
        if hello.delegation != nil {
            advertisement.identity = identity.principal
            advertisement.name = configuration.name.withNextNumber
        }
        let driver = SessionDriver(
            machine: machine, loop: loop, transports: transports, advertisement: advertisement,
            role: configuration.role, layers: layers, directory: directory,
            driverReference: driverReference, portNotifier: portNotifier)
        self.id = identity.peerID
        self.identity = machine.identity
        // The layers refer to the session; the driver lets them go when it closes.
        var withoutLayers = configuration
        withoutLayers.layers = []
        self.configuration = withoutLayers
        self.trust = trust
        self.loop = loop
        loopThread = reference.loopThread
        self.driver = driver
        self.machine = machine
        self.reference = reference
        messages = MessageSequence(inbox: driver.inbox)
        events = EventSequence(inbox: driver.events)
        for layer in configuration.layers { layer.attach(to: self) }
    }

    private static func checked(_ transport: any Transport) -> any Transport {
        transport is CheckedTransport ? transport : CheckedTransport(transport)
    }

    private static func offer(
        _ security: SessionSecurity, _ identity: Identity
    ) throws(NighError) -> SecureChannelOffer {
        try security == .none ? .plaintext : .tls(TLSContext(identity))
    }

    deinit {
        let driver = driver
        loop.execute { driver.abandon() }
    }

    /// Whether the caller runs on the loop.
    @inline(__always)
    var isOnLoop: Bool { if let loopThread { loopThread.isCurrent } else { loop.isCurrent } }

    /// Runs `work` with the driver on the loop: at once if the caller is on the loop, otherwise soon.
    @inline(__always)
    func onLoop(_ work: @escaping @Sendable (SessionDriver) -> Void) {
        let driver = driver
        if isOnLoop { work(driver) } else { loop.execute { work(driver) } }
    }

    // MARK: Start and close

    /// Starts the transports and, depending on the role, advertises and browses. Without handlers, read `events` and
    /// `messages`. A second call does nothing.
    public func start(onEvent: EventHandler? = nil, onMessage: MessageHandler? = nil) {
        onLoop { $0.start(onEvent: onEvent, onMessage: onMessage) }
    }

    /// Starts the session for a program that reads `messages` with `poll`, on whatever thread and whenever it is ready.
    /// A peer whose messages it does not read is slowed down.
    ///
    /// - Parameter onWaitingMessages: called on the loop after messages have come, and after the events that came
    ///   before them. One call may stand for several messages.
    public func start(onEvent: EventHandler? = nil, onWaitingMessages: @escaping @Sendable () -> Void) {
        onLoop { $0.start(onEvent: onEvent, onWaitingMessages: onWaitingMessages) }
    }

    /// Leaves all peers, shuts everything down, and returns when that is done. What was sent is still delivered, within
    /// `timings.linger`. Nothing is called back afterwards, the sequences end, and other calls fail with `closed`.
    /// Cancelling the task does not cut this short.
    public nonisolated(nonsending) func close() async {
        await PendingAnswer.wait(otherwise: ()) { answer in close { answer.give(()) } }
    }

    /// Closes the session without waiting. Calls `completion` on the loop, after everything else that is called back.
    public func close(completion: @escaping @Sendable () -> Void) {
        onLoop { $0.close(completion: completion) }
    }

    /// Whether the session is closed or closing.
    package var isClosing: Bool { directory.isClosed }

    /// Starts to advertise, regardless of the session's role.
    public func startAdvertising() { onLoop { $0.startAdvertising() } }

    /// Stops advertising. Conversations are not affected. A game, for example, stops advertising when it begins.
    public func stopAdvertising() { onLoop { $0.stopAdvertising() } }

    /// Starts to browse, regardless of the session's role.
    public func startBrowsing() { onLoop { $0.startBrowsing() } }

    /// Stops browsing. Conversations are not affected. Peers that are not connected become unavailable.
    public func stopBrowsing() { onLoop { $0.stopBrowsing() } }

    /// Replaces the discovery info of this session, also while it is advertised.
    public func update(info: DiscoveryInfo) {
        onLoop { driver in
            var advertisement = driver.advertisement
            advertisement.info = info
            driver.update(advertisement)
        }
    }

    // MARK: Peers

    /// Invites a peer. Calls `completion` once, on the loop: with the peer's PeerID when it is connected (also if it
    /// already is), otherwise with the reason why it is not.
    ///
    /// - Parameters:
    ///   - context: bytes that the peer's program receives with the invitation; at most `limits.invitationContext`.
    ///   - timeout: the time for everything: dialling, and waiting for the answer.
    public func invite(
        _ peer: PeerID, context: [UInt8] = [], timeout: Duration = .seconds(30),
        completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        invite(peer, context: context, timeout: timeout, token: reference.newToken(), completion: completion)
    }

    /// Invites the peer that answers at `address`, without discovery.
    public func invite(
        at address: TransportAddress, context: [UInt8] = [], timeout: Duration = .seconds(30),
        completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        invite(
            at: address, context: context, timeout: timeout, token: reference.newToken(),
            completion: completion)
    }

    /// Invites the peer that answers at `address`, waits until it is connected, and returns its PeerID. Cancelling the
    /// task withdraws the invitation.
    public nonisolated(nonsending) func invite(
        at address: TransportAddress, context: [UInt8] = [], timeout: Duration = .seconds(30)
    ) async throws(NighError) -> PeerID {
        let token = reference.newToken()
        return try await reference.outcome(.inviting, cancelledBy: { $0.cancel(token) }) {
            driver, completion in
            driver.begin(.inviting, token, completion) { machine, now in
                machine.call(address, context: context, timeout: timeout, token: token, now: now)
            }
        }
    }

    /// Invites a peer that somebody has introduced, and says so to it.
    package func invite(
        _ peer: PeerID, introduction: [UInt8], timeout: Duration,
        completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        invite(
            peer, context: [], introduction: introduction, timeout: timeout, token: reference.newToken(),
            completion: completion)
    }

    private func invite(
        _ peer: PeerID, context: [UInt8], introduction: [UInt8] = [], timeout: Duration, token: CallToken,
        completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        onLoop { driver in
            driver.begin(.inviting, token, completion) { machine, now in
                machine.invite(
                    peer, context: context, introduction: introduction, timeout: timeout, token: token,
                    now: now)
            }
        }
    }

    private func invite(
        at address: TransportAddress, context: [UInt8], timeout: Duration, token: CallToken,
        completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        onLoop { driver in
            driver.begin(.inviting, token, completion) { machine, now in
                machine.call(address, context: context, timeout: timeout, token: token, now: now)
            }
        }
    }

    /// Withdraws an invitation of this session, if it is not answered yet.
    public func cancelInvitation(of peer: PeerID) {
        onLoop { driver in driver.inTurn { driver.machine.cancelInvitation(of: peer, now: driver.loop.now) } }
    }

    /// Ends the conversation with a peer in good order. What was sent is still delivered, within `timings.linger`; from
    /// now on nothing more can be sent. `completion` gets an error if something may not have arrived. Also withdraws an
    /// invitation to the peer, and declines one from it.
    public func disconnect(
        _ peer: PeerID, completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void = { _ in }
    ) {
        let token = reference.newToken()
        onLoop { driver in
            driver.begin(.conversing, token, completion) { machine, now in
                machine.leave(peer, token: token, now: now)
            }
        }
    }

    /// Ends all conversations in good order.
    public func disconnectAll() {
        onLoop { driver in
            driver.inTurn {
                for peer in driver.machine.sortedPeers {
                    driver.machine.leave(peer.id, token: nil, now: driver.loop.now)
                }
            }
        }
    }

    /// Measures the round trip to a connected peer, whose session answers without its program. A ping is small and
    /// overtakes waiting messages.
    ///
    /// - Parameter path: whether it travels on the link, or beside it as unreliable messages do. Beside the link it is
    ///   lost if one of its two packets is, and then fails after 5 s. When another link takes over, it is sent again
    ///   there.
    public func ping(
        _ peer: PeerID, over path: PingPath = .link, payload: [UInt8] = [],
        completion: @escaping @Sendable (Result<Duration, NighError>) -> Void
    ) {
        let token = reference.newToken()
        onLoop { $0.ping(peer, over: path, payload: payload, token: token, completion) }
    }

    /// Measures the round trip to a connected peer. If the task is cancelled, the call fails at once. Its ping still
    /// counts against `limits.pendingPings` until it is answered.
    public nonisolated(nonsending) func ping(
        _ peer: PeerID, over path: PingPath = .link, payload: [UInt8] = []
    ) async throws(NighError) -> Duration {
        let token = reference.newToken()
        return try await reference.outcome(.pinging, cancelledBy: { $0.abandonPing(token, peer) }) {
            $0.ping(peer, over: path, payload: payload, token: token, $1)
        }
    }

    /// Passes all known peers, sorted by PeerID, to `completion`: at once if called on the loop, otherwise soon, on the
    /// loop.
    public func peers(completion: @escaping @Sendable ([Peer]) -> Void) {
        onLoop { driver in completion(driver.machine.sortedPeers.map(driver.machine.snapshot)) }
    }

    /// Returns all known peers, sorted by PeerID. Waits for nothing but the loop, so cancelling changes nothing.
    public nonisolated(nonsending) func peers() async -> [Peer] {
        await PendingAnswer.wait(otherwise: []) { answer in peers { answer.give($0) } }
    }

    /// The PeerIDs of the peers to which messages can be sent now.
    public var connectedPeers: [PeerID] { directory.peers }

    /// Passes the counts so far, by cause, to `completion`: at once if called on the loop, otherwise soon, on the loop.
    public func statistics(completion: @escaping @Sendable (SessionStatistics) -> Void) {
        onLoop { completion($0.statistics()) }
    }

    /// Returns the counts so far, by cause. Waits for nothing but the loop, so cancelling changes nothing.
    public nonisolated(nonsending) func statistics() async -> SessionStatistics {
        await PendingAnswer.wait(otherwise: SessionStatistics()) { answer in statistics { answer.give($0) } }
    }
}
