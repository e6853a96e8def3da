/// Where a message came from, and how.
public struct MessageOrigin: Hashable, Sendable {
    /// Who sent it.
    public let peer: PeerID
    /// The lane it came by; unreliable messages count as `.main`.
    public let lane: Lane
    /// Whether it was sent reliably.
    public let isReliable: Bool

    /// An origin.
    public init(peer: PeerID, lane: Lane, isReliable: Bool) {
        self.peer = peer
        self.lane = lane
        self.isReliable = isReliable
    }
}

/// A message that was received and kept.
public struct Message: Sendable {
    /// Where it came from, and how.
    public let origin: MessageOrigin
    /// What it says, sharing memory with what was received. Take `payload.copy()` to store a small one for long.
    public let payload: ByteSlice

    /// Who sent it.
    public var peer: PeerID { origin.peer }
    /// What it says, copied into an array.
    public var bytes: [UInt8] { payload.bytes }
}

/// Called on the session's loop with each message, in place: the span is valid for the time of the call, nothing is
/// copied. It must not block. It may call the session, also to send.
public typealias MessageHandler = @Sendable (_ bytes: RawSpan, _ origin: MessageOrigin) -> Void

/// Called on the session's loop with each event. It must not block. It may call the session.
public typealias EventHandler = @Sendable (SessionEvent) -> Void
