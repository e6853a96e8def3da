import NighCore

/// A received value and its sender.
public struct TypedMessage<Content: Sendable>: Sendable {
    /// The peer that sent the value.
    public let sender: Peer
    /// The value.
    public let content: Content
}

extension TypedMessage: CustomStringConvertible {
    /// The name of the sender, and the value.
    public var description: String { "\(sender.label): \(content)" }
}
