/// The kinds of records that finding a service takes.
package enum RecordType: UInt16, Hashable, Sendable {
    case address4 = 1
    case pointer = 12
    case text = 16
    case address6 = 28
    case service = 33
}

/// What is asked of the network: all records of a type under a name.
package struct Question: Hashable, Sendable {
    package var name: DomainName
    package var type: RecordType

    package init(name: DomainName, type: RecordType) {
        self.name = name
        self.type = type
    }
}

/// Where a service listens: the data of an SRV record.
package struct ServiceRecord: Hashable, Sendable {
    package var priority: UInt16 = 0
    package var weight: UInt16 = 0
    package var port: UInt16
    package var host: DomainName

    package init(port: UInt16, host: DomainName) {
        self.port = port
        self.host = host
    }

    /// Nil for anything but a host and a port that can be dialled; a service at the root is one that does not exist.
    package init?(data: [UInt8]) {
        guard data.count > 6, let host = DomainName(wire: data[6...]) else { return nil }
        func number(_ position: Int) -> UInt16 { UInt16(data[position]) << 8 | UInt16(data[position + 1]) }
        guard number(4) != 0 else { return nil }
        priority = number(0)
        weight = number(2)
        port = number(4)
        self.host = host
    }

    package var data: [UInt8] {
        [priority, weight, port].flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] } + host.wire
    }
}

/// One pair of what a service says about itself.
public struct TextEntry: Hashable, Sendable {
    /// Printable ASCII without `=`. Upper and lower case are the same.
    public let key: String
    /// Any bytes; nil where the key stands alone, without `=`.
    public let value: [UInt8]?

    /// Nil unless the key is 1 or more characters of printable ASCII without `=`, and both fit into 255 bytes.
    public init?(key: String, value: [UInt8]?) {
        guard !key.isEmpty, key.utf8.allSatisfy(Self.isAllowed),
            key.utf8.count + 1 + (value?.count ?? 0) <= 255
        else { return nil }
        self.key = key
        self.value = value
    }

    /// The same with text as the value.
    public init?(key: String, value: String) {
        self.init(key: key, value: Array(value.utf8))
    }

    fileprivate init?(piece: ArraySlice<UInt8>) {
        let key = piece.prefix { $0 != UInt8(ascii: "=") }
        guard key.allSatisfy(Self.isAllowed) else { return nil }
        let value = piece.count > key.count ? Array(piece.dropFirst(key.count + 1)) : nil
        self.init(key: String(decoding: key, as: UTF8.self), value: value)
    }

    fileprivate var piece: [UInt8] {
        Array(key.utf8) + (value.map { [UInt8(ascii: "=")] + $0 } ?? [])
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "=")
    }
}

/// What a service says about itself: the data of a TXT record.
package struct TextRecord: Hashable, Sendable {
    /// The most bytes of a TXT record that are looked at. RFC 6763 asks for under 1,300.
    package static let maximumByteCount = 2_048

    package let entries: [TextEntry]

    /// `entries` as they are, but for keys that came before.
    package init(entries: [TextEntry]) {
        var seen: Set<String> = []
        self.entries = entries.filter { seen.insert($0.key.lowercased()).inserted }
    }

    /// Nil when lengths do not add up or it is too long. As RFC 6763 wants it, of a key that comes twice the first counts,
    /// and pieces without a proper key are skipped.
    package init?(data: [UInt8]) {
        guard data.count <= Self.maximumByteCount else { return nil }
        var entries: [TextEntry] = []
        var rest = data[...]
        while let length = rest.popFirst().map(Int.init) {
            guard rest.count >= length else { return nil }
            if let entry = TextEntry(piece: rest.prefix(length)) { entries.append(entry) }
            rest = rest.dropFirst(length)
        }
        self.init(entries: entries)
    }

    /// Never empty: without entries it is one empty piece.
    package var data: [UInt8] {
        entries.isEmpty ? [0] : entries.flatMap { [UInt8($0.piece.count)] + $0.piece }
    }
}

/// An IPv4 or IPv6 address as an announcement carries it.
public struct HostAddress: Hashable, Sendable {
    /// In network order: 4 bytes are IPv4, 16 are IPv6.
    public let bytes: [UInt8]
    /// For an IPv6 link-local address the index of the interface it is valid on, else 0.
    public let scope: UInt32

    /// Nil for what no host can have: unspecified, multicast and broadcast addresses, and IPv4 dressed as IPv6.
    package init?(bytes: [UInt8], interface: Int32) {
        switch bytes.count {
        case 4:
            guard bytes[0] != 0, bytes[0] < 224 else { return nil }
        case 16:
            let isMapped = bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
            guard bytes.contains(where: { $0 != 0 }), bytes[0] != 0xFF, !isMapped else { return nil }
        default:
            return nil
        }
        self.bytes = bytes
        let isLinkLocal = bytes.count == 16 && bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
        scope = isLinkLocal ? UInt32(clamping: interface) : 0
    }

    /// Whether it leads back to the host that dials it.
    package var isLoopback: Bool {
        bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
    }
}

extension HostAddress: CustomStringConvertible {
    /// In the usual notation, IPv6 not abbreviated.
    public var description: String {
        guard bytes.count == 16 else { return bytes.map(String.init).joined(separator: ".") }
        let groups = stride(from: 0, to: 16, by: 2).map {
            String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16)
        }
        return groups.joined(separator: ":") + (scope == 0 ? "" : "%\(scope)")
    }
}
