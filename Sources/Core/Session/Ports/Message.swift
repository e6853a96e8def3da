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

/// A received message: bytes that came whole.
public struct Message: Sendable {
    /// Where it came from, and how it was sent.
    public let origin: MessageOrigin
    /// The payload. It shares memory with the received bytes; use `payload.copy()` to store a small one for long.
    public let payload: ByteSlice

    package init(origin: MessageOrigin, payload: ByteSlice) {
        self.origin = origin
        self.payload = payload
    }

    /// The peer that sent it.
    public var sender: PeerID { origin.peer }
    /// Whether it was sent reliably.
    public var isReliable: Bool { origin.isReliable }
    /// The number of bytes.
    public var count: Int { payload.count }
    /// The payload, copied into an array.
    public var bytes: [UInt8] { payload.bytes }

    /// Calls `body` with the payload in place, without a copy.
    @inlinable
    public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try payload.withUnsafeBytes { bytes throws(Failure) in try body(bytes.bytes) }
    }
}

/// A handler for received messages, called on the session's loop. Each message is passed in place: the span is valid
/// during the call, and nothing is copied. The handler must not block. It may call the session, also to send.
public typealias MessageHandler = @Sendable (_ bytes: RawSpan, _ origin: MessageOrigin) -> Void

/// A handler for events, called on the session's loop. It must not block. It may call the session.
public typealias EventHandler = @Sendable (SessionEvent) -> Void
