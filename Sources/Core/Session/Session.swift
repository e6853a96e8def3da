import Synchronization

/// This program among its neighbours: sees the peers that offer the same service, invites them or is invited, sends
/// and receives messages, over whatever transports it was given.
///
/// Make one, `start` it, and `close` it when done. All members can be called from any thread or task, also from the
/// session's own handlers. What a call brings about is told as events, in order, on the session's loop; handlers must
/// not block it. Messages arrive in the handler given to `start`, or without one in `messages`.
///
/// What holds: a reliable message arrives exactly once and in the order of its lane, also when the link breaks and
/// another takes over, or the conversation ends and both sides are told. Everything is bounded by `SessionLimits`.
public final class Session: Sendable {
    /// Who this session is to others.
    public let id: PeerID
    /// What it was made from.
    public let configuration: SessionConfiguration
    /// What is known of peers' keys.
    public let trust: TrustStore
    /// The messages of all peers, when no message handler was given to `start`.
    public let messages: MessageSequence
    /// The events, when no event handler was given to `start`.
    public let events: EventSequence
    /// The loop everything happens on.
    public let loop: any EventLoop

    let driver: SessionDriver
    /// The driver's, touched on the loop only: a message from there goes to it without a reference taken on the way.
    nonisolated(unsafe) let machine: SessionMachine
    let directory = PortDirectory()
    let attention: Attention
    private let tokens = Atomic<UInt64>(0)

    /// A session that uses `transports` and calls back on `loop`. Nothing happens before `start`. The transports belong
    /// to the session from here on; they are shut down with it. Two transports of one scheme, or limits that cannot be (see
    /// `SessionLimits`), are mistakes of the program and stop it, and so does a libssl without TLS 1.3.
    ///
    /// - Parameter identity: the key pair whose hash is this session's PeerID; load it from an `IdentityFile` to be the
    ///   same peer at every start.
    /// - Parameter trust: what is known of peers' keys; `TrustStore.standard()` keeps it for all of this user's programs. By
    ///   default it is forgotten with the session.
    public init(
        _ configuration: SessionConfiguration, identity: Identity, trust: TrustStore = .ephemeral(),
        transports: [any Transport], loop: any EventLoop
    ) {
        precondition(
            Set(transports.map(\.scheme)).count == transports.count,
            "a session takes one transport of each scheme")
        configuration.limits.check()
        let transports = configuration.checksTransports ? transports.map(Self.checked) : transports
        var seeds = SeededGenerator(seed: configuration.seed ?? .random(in: .min ... .max))
        let hello = Hello(
            peer: identity.peerID, incarnation: seeds.next(), service: configuration.service,
            name: configuration.name,
            maximumFrame: configuration.limits.frame, maximumMessage: configuration.limits.message)
        let machine = SessionMachine(
            hello: hello, limits: configuration.limits, timings: configuration.timings,
            transports: transports.map { .init(scheme: $0.scheme, priority: $0.capabilities.priority) },
            offer: Self.offer(configuration.security, identity), security: configuration.security,
            trust: trust, seed: seeds.next())
        machine.acceptsPairing = configuration.acceptsPairing
        let advertisement = Advertisement(
            service: configuration.service, peer: identity.peerID, name: configuration.name,
            info: configuration.info)
        let access = SessionDriver.Access()
        let attention = Attention(loop: loop) { access.driver?.attendNow() }
        let driver = SessionDriver(
            machine: machine, loop: loop, transports: transports, advertisement: advertisement,
            role: configuration.role, observer: configuration.observer, directory: directory, access: access,
            attention: attention)
        self.id = identity.peerID
        self.configuration = configuration
        self.trust = trust
        self.loop = loop
        self.driver = driver
        self.machine = machine
        self.attention = attention
        messages = MessageSequence(inbox: driver.inbox)
        events = EventSequence(inbox: driver.events)
    }

    private static func checked(_ transport: any Transport) -> any Transport {
        transport is CheckedTransport ? transport : CheckedTransport(transport)
    }

    private static func offer(_ security: SessionSecurity, _ identity: Identity) -> SecureChannelOffer {
        guard security != .none else { return .plaintext }
        do throws(NighError) {
            return .tls(try TLSContext(identity))
        } catch {
            fatalError("\(error)")
        }
    }

    deinit {
        let driver = driver
        loop.execute { driver.abandon() }
    }

    /// Runs `work` with the driver on the loop: at once when the caller is there, else soon.
    @inline(__always)
    func onLoop(_ work: @escaping @Sendable (SessionDriver) -> Void) {
        let driver = driver
        if loop.isCurrent { work(driver) } else { loop.execute { work(driver) } }
    }

    // MARK: Life

    /// Brings the transports up and, by the role, advertises and browses. Without handlers, read `events` and
    /// `messages`. Once only; a second call does nothing.
    public func start(onEvent: EventHandler? = nil, onMessage: MessageHandler? = nil) {
        onLoop { $0.start(onEvent: onEvent, onMessage: onMessage) }
    }

    /// Leaves all peers (what was sent is still delivered, for as long as `timings.linger` allows), takes everything
    /// down, and returns when that is done. Nothing is called back afterwards; sequences end.
    public func close() async {
        await withCheckedContinuation { continuation in
            close { continuation.resume() }
        }
    }

    /// The same without waiting: `whenDone` is called on the loop when nothing will be called back any more.
    public func close(whenDone: @escaping @Sendable () -> Void) { onLoop { $0.close(whenDone: whenDone) } }

    /// Is found or not, whatever the role: switched off, say, when a game begins. Conversations are not touched.
    public func setAdvertising(_ isOn: Bool) { onLoop { $0.setAdvertising(isOn) } }

    /// Looks for peers or not, whatever the role. Switched off, peers that are not connected become unavailable.
    public func setBrowsing(_ isOn: Bool) { onLoop { $0.setBrowsing(isOn) } }

    /// Changes what is advertised, while it is.
    public func update(info: DiscoveryInfo) {
        onLoop { driver in
            var advertisement = driver.advertisement
            advertisement.info = info
            driver.update(advertisement)
        }
    }

    // MARK: Peers

    /// Asks a peer for a conversation. Connected (also when it is already), `whenDone` gets its PeerID; otherwise why not.
    /// It is called on the loop, once.
    ///
    /// - Parameters:
    ///   - context: what the peer's program is told with the invitation; at most `limits.invitationContext` bytes.
    ///   - timeout: for all of it: dialling, and waiting for the answer.
    public func invite(
        _ peer: PeerID, context: [UInt8] = [], timeout: Duration = .seconds(30),
        whenDone: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        invite(peer, context: context, timeout: timeout, token: newToken(), whenDone: whenDone)
    }

    /// Asks whoever answers at `address` for a conversation, without discovery.
    public func invite(
        at address: TransportAddress, context: [UInt8] = [], timeout: Duration = .seconds(30),
        whenDone: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        invite(at: address, context: context, timeout: timeout, token: newToken(), whenDone: whenDone)
    }

    /// Asks a peer for a conversation and waits until it is connected. Cancelling the task takes the invitation back.
    public func invite(_ peer: PeerID, context: [UInt8] = [], timeout: Duration = .seconds(30))
        async throws(NighError)
    {
        let token = newToken()
        _ = try await outcome(of: token) { whenDone in
            invite(peer, context: context, timeout: timeout, token: token, whenDone: whenDone)
        }
    }

    /// Asks whoever answers at `address` for a conversation and waits until it is connected; returns who it is.
    /// Cancelling the task takes the invitation back.
    public func invite(
        at address: TransportAddress, context: [UInt8] = [], timeout: Duration = .seconds(30)
    ) async throws(NighError) -> PeerID {
        let token = newToken()
        return try await outcome(of: token) { whenDone in
            invite(at: address, context: context, timeout: timeout, token: token, whenDone: whenDone)
        }
    }

    private func invite(
        _ peer: PeerID, context: [UInt8], timeout: Duration, token: CallToken,
        whenDone: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        onLoop { driver in
            driver.begin(token, whenDone) { machine, now in
                machine.invite(peer, context: context, timeout: timeout, token: token, now: now)
            }
        }
    }

    private func invite(
        at address: TransportAddress, context: [UInt8], timeout: Duration, token: CallToken,
        whenDone: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        onLoop { driver in
            driver.begin(token, whenDone) { machine, now in
                machine.call(address, context: context, timeout: timeout, token: token, now: now)
            }
        }
    }

    func newToken() -> CallToken {
        CallToken(number: tokens.wrappingAdd(1, ordering: .relaxed).newValue)
    }

    /// Waits for the outcome of what `begin` begins under `token`, or takes that back when the task is cancelled.
    private func outcome(
        of token: CallToken, _ begin: (@escaping @Sendable (Result<PeerID, NighError>) -> Void) -> Void
    ) async throws(NighError) -> PeerID {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                begin { continuation.resume(returning: $0) }
                if Task.isCancelled { cancel(token) }
            }
        } onCancel: {
            cancel(token)
        }
        return try result.get()
    }

    /// Waits for what the call that `begin` makes comes to; cancelling the task changes nothing.
    func result<Value: Sendable>(
        of begin: (@escaping @Sendable (Result<Value, NighError>) -> Void) -> Void
    ) async throws(NighError) -> Value {
        let result = await withCheckedContinuation { continuation in
            begin { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    private func cancel(_ token: CallToken) {
        onLoop { driver in driver.inTurn { driver.machine.cancel(token, now: driver.loop.now) } }
    }

    /// Takes an invitation of this session's back, if it is not answered yet.
    public func cancelInvitation(of peer: PeerID) {
        onLoop { driver in driver.inTurn { driver.machine.cancelInvitation(of: peer, now: driver.loop.now) } }
    }

    /// Says yes to an invitation. When it has ended meanwhile nothing happens: an `invitationEnded` was told.
    public func accept(_ invitation: Invitation) {
        onLoop { driver in
            driver.inTurn {
                driver.machine.accept(invitation, now: driver.loop.now)
            }
        }
    }

    /// Says no, with words for the person over there and, if wanted, how long not to ask again.
    public func decline(_ invitation: Invitation, words: String = "", retryAfter: Duration = .zero) {
        onLoop { driver in
            driver.inTurn {
                driver.machine.decline(invitation, words: words, retryAfter: retryAfter)
            }
        }
    }

    /// Ends the conversation with a peer in good order: what was sent is still delivered, for as long as
    /// `timings.linger` allows; from now on nothing more can be sent. `whenDone` gets an error if something may not have
    /// arrived. Also takes back an invitation, and declines one.
    public func disconnect(
        _ peer: PeerID, whenDone: @escaping @Sendable (Result<PeerID, NighError>) -> Void = { _ in }
    ) {
        let token = newToken()
        onLoop { driver in
            driver.begin(token, whenDone) { machine, now in machine.leave(peer, token: token, now: now) }
        }
    }

    /// Ends the conversation with a peer in good order, and waits for it.
    public func disconnect(_ peer: PeerID) async throws(NighError) {
        _ = try await result { disconnect(peer, whenDone: $0) }
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

    /// Measures the round trip to a connected peer, which answers by itself; small, so that it overtakes what waits.
    public func ping(
        _ peer: PeerID, payload: [UInt8] = [],
        whenDone: @escaping @Sendable (Result<Duration, NighError>) -> Void
    ) {
        let token = newToken()
        onLoop { $0.ping(peer, payload: payload, token: token, whenDone) }
    }

    /// Measures the round trip to a connected peer.
    public func ping(_ peer: PeerID, payload: [UInt8] = []) async throws(NighError) -> Duration {
        try await result { ping(peer, payload: payload, whenDone: $0) }
    }

    /// Everybody known now, by PeerID. Called on the loop `whenDone` runs at once, else soon and there.
    public func peers(whenDone: @escaping @Sendable ([Peer]) -> Void) {
        onLoop { driver in whenDone(driver.machine.sortedPeers.map(driver.machine.snapshot)) }
    }

    /// Everybody known now, by PeerID.
    public func peers() async -> [Peer] {
        await withCheckedContinuation { continuation in peers { continuation.resume(returning: $0) } }
    }

    /// The PeerIDs of those one can send to now.
    public var connectedPeers: [PeerID] { directory.peers }

    /// What has happened so far, by cause. Called on the loop `whenDone` runs at once, else soon and there.
    public func statistics(whenDone: @escaping @Sendable (SessionStatistics) -> Void) {
        onLoop { whenDone($0.statistics()) }
    }

    /// What has happened so far, by cause.
    public func statistics() async -> SessionStatistics {
        await withCheckedContinuation { continuation in statistics { continuation.resume(returning: $0) } }
    }
}
