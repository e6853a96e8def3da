/// A value in the format of Bluetooth's service discovery (SDP): a byte with type and size, then the content.
///
/// This type alone parses bytes of other devices. It fails, and does not trap, on bytes that are not a value.
package enum DataElement: Hashable, Sendable {
    case unsigned(UInt64)
    /// A UUID of 16, 32 or 128 bits, extended to 128.
    case uuid(BluetoothUUID)
    case text([UInt8])
    case boolean(Bool)
    /// A sequence, or a list of alternatives; nothing here needs to distinguish them.
    case sequence([DataElement])
    /// Anything else.
    case other

    /// Values nested deeper than this are not read.
    private static let deepest = 8

    /// Reads the value at the front of `bytes` and removes it; nil if there is none.
    package init?(from bytes: inout ArraySlice<UInt8>) {
        self.init(from: &bytes, depth: 0)
    }

    private init?(from bytes: inout ArraySlice<UInt8>, depth: Int) {
        guard depth < Self.deepest, let head = bytes.popFirst(),
            let count = Self.contentCount(head, &bytes), bytes.count >= count
        else { return nil }
        var content = bytes.prefix(count)
        bytes = bytes.dropFirst(count)
        switch head >> 3 {
        case 1 where count <= 8: self = .unsigned(content.reduce(0) { $0 << 8 | UInt64($1) })
        case 3:
            guard let uuid = BluetoothUUID(content) else { return nil }
            self = .uuid(uuid)
        case 4: self = .text(Array(content))
        case 5 where count == 1: self = .boolean(content.first != 0)
        case 6, 7:
            var elements: [DataElement] = []
            while !content.isEmpty {
                guard let element = DataElement(from: &content, depth: depth + 1) else { return nil }
                elements.append(element)
            }
            self = .sequence(elements)
        default: self = .other
        }
    }

    /// Reads the number of content bytes, which the head says or the bytes after it.
    private static func contentCount(_ head: UInt8, _ bytes: inout ArraySlice<UInt8>) -> Int? {
        let size = Int(head & 7)
        // The nil type has no content; every other type has at least one byte.
        guard head >> 3 != 0 else { return size == 0 ? 0 : nil }
        guard size > 4 else { return 1 << size }
        let width = 1 << (size - 5)
        guard bytes.count >= width else { return nil }
        defer { bytes = bytes.dropFirst(width) }
        return bytes.prefix(width).reduce(0) { $0 << 8 | Int($1) }
    }

    package var unsigned: UInt64? { if case .unsigned(let number) = self { number } else { nil } }
    package var text: [UInt8]? { if case .text(let text) = self { text } else { nil } }
    package var sequence: [DataElement]? { if case .sequence(let elements) = self { elements } else { nil } }
}
