/// A value as Bluetooth's service discovery (SDP) writes it: a byte with type and size, then the content.
///
/// What comes from other devices is read by this and by nothing else; it fails, rather than traps, on whatever is no value.
package enum DataElement: Hashable, Sendable {
    case unsigned(UInt64)
    /// A UUID of 16, 32 or 128 bits, written out to 128.
    case uuid(BluetoothUUID)
    case text([UInt8])
    case boolean(Bool)
    /// Also a choice between several, which nobody here needs to tell apart.
    case sequence([DataElement])
    /// Anything else.
    case other

    /// Deeper than this nothing is looked at.
    private static let deepest = 8

    /// Reads the value at the front of `bytes` and takes it away; nil when there is none.
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

    /// How many bytes of content stand behind the head, and behind the bytes that say so.
    private static func contentCount(_ head: UInt8, _ bytes: inout ArraySlice<UInt8>) -> Int? {
        let size = Int(head & 7)
        // Nothing at all has no content; every other type has at least a byte.
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
