/// Where a message came from, and how it was sent.
public struct MessageOrigin: Hashable, Sendable {
    /// The peer that sent it.
    public let peer: PeerID
    /// The lane on which it came; unreliable messages count as `.main`.
    public let lane: Lane
    /// Whether it was sent reliably.
    public let isReliable: Bool

    /// Creates an origin.
    public init(peer: PeerID, lane: Lane, isReliable: Bool) {
        self.peer = peer
        self.lane = lane
        self.isReliable = isReliable
    }
}

/// A message that was received and kept.
public struct Message: Sendable {
    /// Where it came from, and how it was sent.
    public let origin: MessageOrigin
    /// The payload. It shares memory with what was received; use `payload.copy()` to store a small one for long.
    public let payload: ByteSlice

    package init(origin: MessageOrigin, payload: ByteSlice) {
        self.origin = origin
        self.payload = payload
    }

    /// The peer that sent it.
    public var peer: PeerID { origin.peer }
    /// The payload, copied into an array.
    public var bytes: [UInt8] { payload.bytes }
}

/// A handler for received messages, called on the session's loop. Each message is passed in place: the span is valid
/// during the call, and nothing is copied. The handler must not block. It may call the session, also to send.
public typealias MessageHandler = @Sendable (_ bytes: RawSpan, _ origin: MessageOrigin) -> Void

/// A handler for events, called on the session's loop. It must not block. It may call the session.
public typealias EventHandler = @Sendable (SessionEvent) -> Void
