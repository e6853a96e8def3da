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

/// What became of a message of a kind that a layer wanted to send without waiting.
package enum KindMessageSending: Sendable {
    case sent
    /// There is no room now.
    case full
    /// The peer takes no messages of kinds, or has left.
    case unsupported
}

/// A handler for messages of kinds, which are for layers above the session and not for the program. Called as a
/// `MessageHandler` is. A message for which it names a place is kept there until the program reads it, and counts as
/// unread until then; any other counts as read.
package typealias KindMessageHandler =
    @Sendable (_ kind: MessageKind, _ bytes: RawSpan, _ origin: MessageOrigin) -> KindMessagePlace?

/// Where a message of a kind is kept for the program.
package struct KindMessagePlace: Sendable {
    let messages: MessageSequence
    /// How many bytes at its beginning are for the layer only.
    let layerByteCount: Int

    package init(in messages: MessageSequence, without layerByteCount: Int) {
        self.messages = messages
        self.layerByteCount = layerByteCount
    }
}

/// A handler for events, called on the session's loop. It must not block. It may call the session.
public typealias EventHandler = @Sendable (SessionEvent) -> Void
