/// The types of records that are needed to find a service.
package enum RecordType: UInt16, Hashable, Sendable {
    case address4 = 1
    case pointer = 12
    case text = 16
    case address6 = 28
    case service = 33
}

/// A question to the network: all records of a type under a name.
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

    /// Nil unless the data name a host and a port that can be dialled. A service whose host is the root does not exist.
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

/// An IPv4 or IPv6 address of a host.
public struct HostAddress: Hashable, Sendable {
    /// The address in network byte order: 4 bytes for IPv4, 16 for IPv6.
    public let bytes: [UInt8]
    /// For an IPv6 link-local address, the index of the interface on which it is valid; else 0.
    public let scope: UInt32

    /// Nil for addresses that no host can have: unspecified, multicast and broadcast addresses, and IPv4 addresses
    /// mapped to IPv6.
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

    /// Whether the address leads back to the host that dials it.
    package var isLoopback: Bool {
        bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
    }
}

extension HostAddress: CustomStringConvertible {
    /// The address in the usual notation; IPv6 is not abbreviated.
    public var description: String {
        guard bytes.count == 16 else { return bytes.map(String.init).joined(separator: ".") }
        let groups = stride(from: 0, to: 16, by: 2).map {
            String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16)
        }
        return groups.joined(separator: ":") + (scope == 0 ? "" : "%\(scope)")
    }
}
