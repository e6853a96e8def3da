/// A view of a session for programs that count nanoseconds, or run several sessions on one event loop. Its calls never
/// wait, and pass their outcomes to handlers on the loop. It keeps nothing but the session, as `utf8` keeps nothing but
/// its string.
///
/// Every call works from any thread or task, also from the session's own handlers, unless it says otherwise. Handlers
/// must not block the loop.
@frozen
public struct LowLevelSession: Sendable {
    /// The session itself.
    public let session: Session

    /// Creates the view of a session.
    @inlinable
    public init(_ session: Session) { self.session = session }

    /// Creates a session that uses `transports` and calls back on `loop`. Nothing happens before `start`.
    ///
    /// The layers of the configuration may bring further transports. From here on all transports belong to the session,
    /// which shuts them down when it closes. Two transports of one scheme, two layers for one thing, or limits with
    /// impossible values (see `SessionLimits`), are programming errors and stop the program. So does a libssl without
    /// TLS 1.3.
    ///
    /// - Parameter identity: the key pair; the hash of its public key is this session's PeerID. Load it from an
    ///   `IdentityFile` to be the same peer at every start.
    /// - Parameter trust: the trust store, which remembers peers' keys. `TrustStore.standard()` is the store of all
    ///   programs of this user. The default store is forgotten with the session.
    public init(
        _ configuration: SessionConfiguration, identity: Identity, trust: TrustStore = .ephemeral(),
        transports: [any Transport], loop: any EventLoop
    ) {
        session = Session(
            configuration, identity: identity, trust: trust, transports: transports, loop: loop)
    }

    /// The PeerID of the session.
    public var id: PeerID { session.id }
    /// The settings that the session was made with, except its layers.
    public var configuration: SessionConfiguration { session.configuration }
    /// The trust store, which remembers peers' identities.
    public var trust: TrustStore { session.trust }
    /// The event loop on which everything happens.
    public var loop: any EventLoop { session.loop }

    // MARK: Start and close

    /// Starts the transports and, depending on the role, advertises and browses. Without a handler for them, messages
    /// wait in `messages`. A second call does nothing.
    public func start(onEvent: EventHandler? = nil, onMessage: MessageHandler? = nil) {
        session.start(onEvent: onEvent, onMessage: onMessage)
    }

    /// Starts the session for a program that reads `messages` with `poll`, on whatever thread and whenever it is ready.
    /// A peer whose messages it does not read is slowed down.
    ///
    /// - Parameter onWaitingMessages: called on the loop after messages have come, and after the events that came
    ///   before them. One call may stand for several messages.
    public func start(onEvent: EventHandler? = nil, onWaitingMessages: @escaping @Sendable () -> Void) {
        session.start(onEvent: onEvent, onWaitingMessages: onWaitingMessages)
    }

    /// Closes the session without waiting. Calls `completion` on the loop, after everything else that is called back.
    public func close(completion: @escaping @Sendable () -> Void) { session.close(completion: completion) }

    /// Replaces the discovery info of this session, also while it is advertised.
    public func update(info: DiscoveryInfo) { session.update(info: info) }

    // MARK: Peers

    /// The PeerIDs of the peers to which messages can be sent now.
    public var connectedPeerIDs: [PeerID] { session.connectedPeerIDs }

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
        session.invite(peer, context: context, timeout: timeout, completion: completion)
    }

    /// Invites the peer that answers at `address`, without discovery.
    public func invite(
        at address: TransportAddress, context: [UInt8] = [], timeout: Duration = .seconds(30),
        completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        session.invite(at: address, context: context, timeout: timeout, completion: completion)
    }

    /// Invites the peer that answers at `address`, waits until it is connected, and returns its PeerID. Cancelling the
    /// task withdraws the invitation.
    public nonisolated(nonsending) func invite(
        at address: TransportAddress, context: [UInt8] = [], timeout: Duration = .seconds(30)
    ) async throws(NighError) -> PeerID {
        try await session.invite(at: address, context: context, timeout: timeout)
    }

    /// Withdraws an invitation of this session, if it is not answered yet.
    public func cancelInvitation(of peer: PeerID) { session.cancelInvitation(of: peer) }

    /// Ends the conversation with a peer in good order. Messages sent before are still delivered, within
    /// `timings.linger`; from now on nothing more can be sent. `completion` gets an error if something may not have
    /// arrived. Also withdraws an invitation to the peer, and declines one from it.
    public func disconnect(
        _ peer: PeerID, completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void = { _ in }
    ) {
        session.disconnect(peer, completion: completion)
    }

    /// Ends all conversations in good order.
    public func disconnectAll() { session.disconnectAll() }

    /// Measures the round trip to a connected peer, whose session answers without its program. A ping is small and
    /// overtakes waiting messages.
    ///
    /// - Parameter path: whether it travels on the link, or as a datagram like unreliable messages. As a datagram it is
    ///   lost if one of its two packets is, and then fails after 5 s. When another link takes over, it is sent again
    ///   there.
    public func ping(
        _ peer: PeerID, over path: PingPath = .link, payload: [UInt8] = [],
        completion: @escaping @Sendable (Result<Duration, NighError>) -> Void
    ) {
        session.ping(peer, over: path, payload: payload, completion: completion)
    }

    /// Measures the round trip to a connected peer. If the task is cancelled, the call fails at once. Its ping still
    /// counts against `limits.pendingPings` until it is answered.
    public nonisolated(nonsending) func ping(
        _ peer: PeerID, over path: PingPath = .link, payload: [UInt8] = []
    ) async throws(NighError) -> Duration {
        try await session.ping(peer, over: path, payload: payload)
    }

    /// Passes the counts so far, by cause, to `completion`: at once if called on the loop, otherwise soon, on the loop.
    public func statistics(completion: @escaping @Sendable (SessionStatistics) -> Void) {
        session.statistics(completion: completion)
    }

    /// Returns the counts so far, by cause. Waits for nothing but the loop, so cancelling changes nothing.
    public nonisolated(nonsending) func statistics() async -> SessionStatistics { await session.statistics() }

    // MARK: Sending without waiting

    /// Sends `bytes` to a connected peer, and copies them once. Never waits: fails with `bufferFull` if
    /// `limits.sendBuffer` is used up. Messages of one caller keep the order of the calls. Messages sent on the loop
    /// leave in one write with everything else of this turn.
    public func trySend(
        _ bytes: UnsafeRawBufferPointer, to peer: PeerID, _ reliability: Reliability = .reliable
    ) throws(NighError) {
        try session.trySend(bytes, to: peer, reliability)
    }

    /// Sends `bytes` to a connected peer, and copies them once. See the first `trySend`.
    public func trySend(
        _ bytes: [UInt8], to peer: PeerID, _ reliability: Reliability = .reliable
    ) throws(NighError) {
        try session.trySend(bytes, to: peer, reliability)
    }

    /// Sends a payload to a connected peer. A payload of 12 KiB or more is not copied but kept by reference until it
    /// has arrived, unless it is only a small part of the memory that the reference would keep.
    public func trySend(
        _ payload: ByteSlice, to peer: PeerID, _ reliability: Reliability = .reliable
    ) throws(NighError) {
        try session.trySend(payload, to: peer, reliability)
    }

    /// Sends a payload to several peers, to each one either whole or not at all. The error names the peers to which it
    /// was not sent.
    public func trySend(
        _ payload: ByteSlice, to peers: [PeerID], _ reliability: Reliability = .reliable
    ) throws(PartialSendError) {
        try session.trySend(payload, to: peers, reliability)
    }

    // MARK: Sending, waiting for room

    /// Sends a payload reliably to a connected peer, and waits while the lane's `limits.sendBuffer` is used up. Returns
    /// when the message is accepted, not when it has arrived. Waiting tasks are served in the order in which they came.
    /// If the call fails because its task was cancelled, the message was not sent.
    public nonisolated(nonsending) func send(
        _ payload: ByteSlice, to peer: PeerID, on lane: Lane = .main
    ) async throws(NighError) {
        try await session.send(payload, to: peer, on: lane)
    }

    /// Sends `bytes` reliably to a connected peer, and waits for room. See the first `send`. Contiguous bytes that find
    /// room are copied only once.
    public nonisolated(nonsending) func send(
        _ bytes: some Collection<UInt8>, to peer: PeerID, on lane: Lane = .main
    ) async throws(NighError) {
        try await session.send(bytes, to: peer, on: lane)
    }

    // MARK: Streams and messages

    /// Opens a stream to a connected peer, whose program gets it as an event, and passes it to `completion`: at once if
    /// called on the loop, otherwise soon, on the loop. Fails as `Peer.openStream(named:)` does.
    public func openStream(
        named name: String, to peer: PeerID,
        completion: @escaping @Sendable (Result<ByteStream, NighError>) -> Void
    ) {
        session.openStream(named: name, to: peer, completion: completion)
    }

    /// Gives the messages of a connected peer a sequence of their own, so that a program which is slow with one peer's
    /// messages holds up nobody else's. Returns nil if there is no conversation with the peer.
    ///
    /// Call it on the loop. Messages that come later are in this sequence, and neither in `messages` nor passed to the
    /// handler that was given to `start`. If the event handler calls it as soon as the peer is reported as connected,
    /// the sequence has every message of the conversation. It ends with the conversation, after everything that came
    /// has been read. A peer that connects again needs another sequence.
    ///
    /// A second call for the same conversation returns the same sequence.
    public func separateMessages(of peer: PeerID) -> MessageSequence? { session.separateMessages(of: peer) }

    // MARK: Pairing

    /// Asks a peer to be paired, so that two people can make sure that nobody is between their devices.
    ///
    /// Both sides get `SessionEvent.pairingCode` with six digits. `completion` is called on the loop: when both people
    /// have confirmed that their digits are the same, or with the reason why there is no pairing. This works with and
    /// without a conversation. A session asks for one pairing at a time, and for none while digits are shown.
    ///
    /// The other side must accept pairing: see `startAcceptingPairing`. The whole pairing has to finish within
    /// `timings.pairing`.
    public func pair(
        _ peer: PeerID, completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void = { _ in }
    ) {
        session.pair(peer, completion: completion)
    }
}
