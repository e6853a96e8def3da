/// The kind of a message that is not the program's own: a number that a layer above the session has chosen. The session
/// gives such a message to its layers, and never to the program.
package struct MessageKind: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt8

    /// Creates a kind. Returns nil for 0, which would be a message of no kind.
    package init?(rawValue: UInt8) {
        guard rawValue != 0 else { return nil }
        self.rawValue = rawValue
    }

    /// How many bytes the kind adds to a message.
    static let byteCount = 1
}

extension MessageKind {
    /// Reads the kind at the beginning of a whole message of a kind.
    init(ofMessage bytes: UnsafeRawBufferPointer) throws(WireError) {
        guard let first = bytes.first, let kind = MessageKind(rawValue: first) else {
            throw .malformed("a message of a kind without one")
        }
        self = kind
    }

    /// Reads a frame that announces a message in pieces: the size of the message, and its kind if it has one.
    static func beginning(
        reading bytes: UnsafeRawBufferPointer
    ) throws(WireError) -> (size: Int, kind: MessageKind?) {
        var reader = FieldReader(bytes)
        let size = Int(clamping: try reader.number(UInt32.self, "a message's size"))
        guard reader.remaining > 0 else { return (size, nil) }
        guard let kind = MessageKind(rawValue: try reader.number(UInt8.self, "a message's kind")) else {
            throw .malformed("the beginning of a message of a kind without one")
        }
        try reader.finish("a message's beginning")
        return (size, kind)
    }
}

extension Optional<MessageKind> {
    /// How many bytes the kind adds to a message, if the message has one.
    var byteCount: Int { self == nil ? 0 : MessageKind.byteCount }
}
