/// A DNS name: labels of 1 to 63 bytes, at most 255 bytes in wire format. Names that differ only in ASCII case are
/// equal.
///
/// Avahi passes names in two forms. In record data they are in wire format, with a length byte before each label. In
/// its calls they are text, with dots between labels and a backslash before unusual characters. This type accepts both,
/// and rejects anything else.
package struct DomainName: Hashable, Sendable, CustomStringConvertible {
    package static let maximumByteCount = 255
    package static let maximumLabel = 63

    /// From the most specific label (an instance's) to the most general (`local`); never empty.
    package let labels: [[UInt8]]
    private let folded: [[UInt8]]

    /// Nil unless the labels make a name that Avahi can be asked for: valid UTF-8, no zero bytes, within the limits.
    package init?(labels: [[UInt8]]) {
        var count = 1
        for label in labels {
            guard (1...Self.maximumLabel).contains(label.count), !label.contains(0),
                String(validating: label, as: UTF8.self) != nil
            else { return nil }
            count += label.count + 1
        }
        guard !labels.isEmpty, count <= Self.maximumByteCount else { return nil }
        self.labels = labels
        folded = labels.map { $0.map(Self.lowercase) }
    }

    /// Creates a name that is written in this module's source: plain words with dots between them.
    package init(literal text: String) {
        guard let name = DomainName(escaped: text) else {
            preconditionFailure("\"\(text)\" is not a domain name")
        }
        self = name
    }

    /// Reads the name that fills `wire` from its first byte to its last. Compression is not allowed in separate record
    /// data.
    package init?(wire: some Collection<UInt8>) {
        var labels: [[UInt8]] = []
        var rest = wire[...]
        while true {
            guard let length = rest.popFirst().map(Int.init) else { return nil }
            guard length > 0 else { break }
            guard length <= Self.maximumLabel, rest.count >= length else { return nil }
            labels.append(Array(rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        guard rest.isEmpty else { return nil }
        self.init(labels: labels)
    }

    /// Parses the name that Avahi writes as `text`: `\.` stands for a dot, `\\` for a backslash, `\123` for a byte in
    /// decimal.
    package init?(escaped text: String) {
        var labels: [[UInt8]] = []
        var label: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: ".") where rest.isEmpty:
                // A dot at the end only stands for the root.
                break
            case UInt8(ascii: "."):
                labels.append(label)
                label = []
            case UInt8(ascii: "\\"):
                guard let escaped = Self.takeEscaped(from: &rest) else { return nil }
                label.append(escaped)
            default:
                label.append(byte)
            }
        }
        labels.append(label)
        self.init(labels: labels)
    }

    private static func takeEscaped(from rest: inout Substring.UTF8View) -> UInt8? {
        guard let first = rest.popFirst() else { return nil }
        if first == UInt8(ascii: ".") || first == UInt8(ascii: "\\") { return first }
        guard let second = rest.popFirst(), let third = rest.popFirst() else { return nil }
        var number = 0
        for digit in [first, second, third] {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            number = number * 10 + Int(digit - UInt8(ascii: "0"))
        }
        return UInt8(exactly: number)
    }

    /// The name in wire format.
    package var wire: [UInt8] {
        var bytes: [UInt8] = []
        for label in labels {
            bytes.append(UInt8(label.count))
            bytes += label
        }
        bytes.append(0)
        return bytes
    }

    /// The name as text for Avahi's calls.
    package var escaped: String {
        labels.map(Self.escape).joined(separator: ".")
    }

    /// The name for display.
    package var description: String {
        labels.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ".")
    }

    /// Returns this name below `parent`; nil if the result would be too long.
    package func below(_ parent: DomainName) -> DomainName? { DomainName(labels: labels + parent.labels) }

    /// Returns the first label if the other labels are `parent`.
    package func label(below parent: DomainName) -> [UInt8]? {
        guard folded.count == parent.folded.count + 1, folded.dropFirst().elementsEqual(parent.folded) else {
            return nil
        }
        return labels[0]
    }

    package static func == (left: DomainName, right: DomainName) -> Bool { left.folded == right.folded }

    package func hash(into hasher: inout Hasher) { hasher.combine(folded) }

    private static func lowercase(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 32 : byte
    }

    private static func escape(_ label: [UInt8]) -> String {
        var text = ""
        for byte in label {
            switch byte {
            case UInt8(ascii: "."), UInt8(ascii: "\\"):
                text += "\\"
                text.unicodeScalars.append(Unicode.Scalar(byte))
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte)
                text += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
            }
        }
        return text
    }
}
