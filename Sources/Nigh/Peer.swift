import FoundationEssentials
import NighCore

/// Another session of the same service, as this session last saw it.
///
/// A peer is a snapshot: its properties do not change. Its methods act on the peer as it is now.
public struct Peer: Identifiable, Sendable {
    /// The hash of the session's public key. No two sessions have the same.
    public let id: PeerID
    /// The identity that the peer acts for, which stays the same when the peer restarts or changes its name. It differs
    /// from ``id`` if a person runs several programs of one service: all of them act for one identity, and are trusted
    /// as that identity is. Of a peer that was only seen so far it is what the peer announces; a connection fails if
    /// the peer does not prove it.
    public let identity: PeerID
    /// The name that the peer shows to people. Two peers may have the same name.
    public let name: String
    /// What the peer advertises about itself.
    public let info: [String: String]
    /// Whether the peer advertises that it accepts no more peers, because it has as many as its `limits.peers` allows.
    /// An invitation would be refused. It says nothing about a conversation that this session has with the peer.
    public let isFull: Bool
    /// Whether the peer can be reached, is being connected, or is connected.
    public let state: PeerState
    /// The transport that carries the conversation now, for example "tcp"; nil if there is none.
    public let transport: String?
    /// Whether unreliable messages travel beside the link now, as packets that nothing delays.
    public let hasDatagrams: Bool
    /// The trust in the peer's identity, from this user's trust store; nil in a session without encryption.
    public let trust: PeerTrust?

    let session: SessionCore

    init(_ peer: NighCore.Peer, in session: SessionCore) {
        id = peer.id
        identity = peer.identity
        name = peer.name.description
        info = peer.info.pairs
        isFull = peer.isFull
        state = peer.state
        transport = peer.transport
        hasDatagrams = peer.hasDatagrams
        trust = peer.trust
        self.session = session
    }

    /// A peer of which only others tell.
    init(_ told: Advertisement, _ trust: PeerTrust?, in session: SessionCore) {
        id = told.peer
        identity = told.identity ?? told.peer
        name = told.name.description
        info = told.info.pairs
        isFull = told.isFull
        state = .unavailable
        transport = nil
        hasDatagrams = false
        self.trust = trust
        self.session = session
    }

    /// A peer that the session knows nothing about any more.
    init(forgotten id: PeerID, in session: SessionCore) {
        self.id = id
        identity = id
        name = id.short
        info = [:]
        isFull = false
        state = .unavailable
        transport = nil
        hasDatagrams = false
        trust = nil
        self.session = session
    }

    /// Whether messages can be sent to the peer now. During a reconnection they wait until there is a link again.
    public var isConnected: Bool { state == .connected || state == .reconnecting }

    /// Invites the peer and waits until it is connected. Returns at once if it already is. If the task is cancelled,
    /// the invitation is withdrawn.
    ///
    /// - Parameters:
    ///   - context: Bytes that the peer gets with the invitation.
    ///   - timeout: The time for the whole call, which includes the person's answer.
    public nonisolated(nonsending) func invite(
        context: [UInt8] = [], timeout: Duration = .seconds(30)
    ) async throws(NighError) {
        try await naming { () async throws(NighError) in
            try await session.low.invite(id, context: context, timeout: timeout)
        }
    }

    /// Sends a value as JSON. Waits while the peer's send buffer is full. Returns when the session has accepted the
    /// message, which is before it arrives. If the task is cancelled, the call fails and nothing was sent.
    public nonisolated(nonsending) func send(_ value: some Encodable) async throws(NighError) {
        try await send(bytes: MessageCoding.encode(value, to: self))
    }

    /// Sends bytes as they are. Waits while the peer's send buffer is full. If the task is cancelled, the call fails
    /// and nothing was sent.
    public nonisolated(nonsending) func send(bytes: some Collection<UInt8>) async throws(NighError) {
        try await naming { () async throws(NighError) in try await session.low.send(bytes, to: id) }
    }

    /// Sends bytes as they are, to arrive soon or not at all: they never wait behind other messages and are never
    /// repeated. For values of which only the newest counts, such as positions.
    ///
    /// - Parameter key: a number from 0 to 253, if the program sends several such values, for instance one for each
    ///   player. A message then replaces an earlier one with its key that has not left yet, and no message with another
    ///   key.
    public func sendUnreliably(bytes: some Collection<UInt8>, replacing key: UInt8? = nil) throws(NighError) {
        do throws(NighError) {
            try session.low.trySend(ByteSlice(bytes), to: id, key.map { .newest(key: $0) } ?? .unreliable)
        } catch {
            throw named(error)
        }
    }

    /// Opens a stream of bytes to the peer, whose program finds it in ``Session/streams``. Fails if the peer is not
    /// connected, accepts no more streams from this session, or has none because it is of an earlier version. The call
    /// waits for nobody, so cancelling its task changes nothing.
    ///
    /// - Parameter name: The name that the peer's program sees: at most 255 bytes. Several streams may have the
    ///   same name.
    public nonisolated(nonsending) func openStream(named name: String) async throws(NighError) -> ByteStream {
        try await naming { () async throws(NighError) in try await session.low.openStream(named: name, to: id)
        }
    }

    /// Ends the conversation after everything that was sent has arrived. Throws if something may not have arrived. If
    /// the task is cancelled, the call fails at once, and the conversation still ends in good order.
    public nonisolated(nonsending) func disconnect() async throws(NighError) {
        session.inviter.programLeaves(id)
        try await naming { () async throws(NighError) in try await session.low.disconnect(id) }
    }

    /// Measures the round trip to a connected peer. The peer's session answers, not its program. If the task is
    /// cancelled, the call fails at once.
    public nonisolated(nonsending) func ping() async throws(NighError) -> Duration {
        try await naming { () async throws(NighError) in try await session.low.ping(id) }
    }

    /// Pairs with the peer: both people compare six digits, which arrive as ``SessionEvent/pairingCode(_:_:)``. Returns
    /// when both have confirmed them with ``confirmPairing(digitsAgree:)``. If the task is cancelled, the pairing is
    /// withdrawn, also when its digits are shown.
    public nonisolated(nonsending) func pair() async throws(NighError) {
        try await naming { () async throws(NighError) in try await session.low.pair(id) }
    }

    /// Reports whether the other screen shows the same six digits.
    public func confirmPairing(digitsAgree: Bool) {
        session.low.confirmPairing(with: id, digitsAgree: digitsAgree)
    }

    /// Removes the pairing with the peer from the trust store.
    public func unpair() { session.low.unpair(id) }
}

extension Peer {
    /// Has the errors of `call` name the peer also where the low-level session knows only its ID.
    private nonisolated(nonsending) func naming<Result>(
        _ call: nonisolated(nonsending) () async throws(NighError) -> Result
    ) async throws(NighError) -> Result {
        do throws(NighError) { return try await call() } catch { throw named(error) }
    }

    /// The error with the peer's name.
    func named(_ error: NighError) -> NighError {
        guard error.peer == nil || error.peer == id.short else { return error }
        var error = error
        error.peer = label
        return error
    }
}

extension Peer: Hashable {
    /// Whether two snapshots of peers are equal in all their properties.
    public static func == (left: Peer, right: Peer) -> Bool {
        left.id == right.id && left.identity == right.identity && left.name == right.name
            && left.info == right.info
            && left.isFull == right.isFull && left.state == right.state
            && left.transport == right.transport && left.hasDatagrams == right.hasDatagrams
            && left.trust == right.trust
    }

    /// Hashes the ID.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
