/// The outcome when a layer tries to send a message of a kind without waiting.
package enum KindMessageSending: Sendable {
    case sent
    /// There is no room now.
    case full
    /// The peer takes no messages of kinds, or has left.
    case unsupported
}

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
