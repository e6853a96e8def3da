import NighCore

/// A received message: bytes that came whole.
public struct Message: Sendable {
    @usableFromInline let low: NighCore.Message

    @usableFromInline
    init(_ low: NighCore.Message) { self.low = low }

    /// The peer that sent the message; see ``Session/peer(_:)``.
    @inlinable public var sender: PeerID { low.peer }

    /// Whether the message was sent reliably.
    @inlinable public var isReliable: Bool { low.origin.isReliable }

    /// The number of bytes.
    @inlinable public var count: Int { low.payload.count }

    /// The content, copied into an array.
    public var bytes: [UInt8] { low.bytes }

    /// Calls `body` with the content in place, without a copy.
    @inlinable
    public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try low.payload.withUnsafeBytes { bytes throws(Failure) in try body(bytes.bytes) }
    }
}

/// A received value and its sender.
public struct TypedMessage<Content: Sendable>: Sendable {
    /// The peer that sent the value.
    public let sender: Peer
    /// The value.
    public let content: Content
}
