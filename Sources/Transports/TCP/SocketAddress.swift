import CUV
import Glibc

/// An IP address with a port, and for link-local addresses the interface that they belong to.
package struct SocketAddress: Hashable, Sendable {
    /// The address without the port.
    package enum Host: Hashable, Sendable {
        /// Four bytes, the first one in the highest bits.
        case v4(UInt32)
        /// Sixteen bytes in two halves, and the interface's index, which is 0 if any interface will do.
        case v6(high: UInt64, low: UInt64, scope: UInt32)
    }

    package var host: Host
    package var port: UInt16

    package init(_ host: Host, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Parses a numeric address, as people write it: `192.168.1.5`, `fe80::1%eth0`, `fe80::1%2`. Returns nil for
    /// anything else, also if the named interface does not exist.
    package init?(numeric text: String, port: UInt16) {
        // The system's functions would take a zero byte as the end of the text.
        guard !text.hasByte(0) else { return nil }
        var v4 = in_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            self.init(.v4(UInt32(bigEndian: v4.s_addr)), port: port)
            return
        }
        let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        var v6 = in6_addr()
        guard inet_pton(AF_INET6, String(parts[0]), &v6) == 1 else { return nil }
        var scope: UInt32 = 0
        if parts.count == 2 {
            scope = if_nametoindex(String(parts[1]))
            if scope == 0 { scope = UInt32(digits: parts[1]) ?? 0 }
            guard scope != 0 else { return nil }
        }
        self.init(v6, scope: scope, port: port)
    }

    /// Parses an IPv4 address and a port, `192.168.1.5:4000`, in one pass. Returns nil for anything else, and for
    /// numbers that are written in another way than usual; then the system's functions decide.
    package init?(dotted text: String) {
        var (bits, number): (UInt32, UInt32) = (0, 0)
        var (part, digits) = (0, 0)
        let isDotted = text.utf8.withContiguousStorageIfAvailable { bytes in
            for byte in bytes {
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"):
                    // Zeros in front mean an octal number to some.
                    guard digits < 5, digits == 0 || number > 0 else { return false }
                    digits += 1
                    number = number * 10 + UInt32(byte - UInt8(ascii: "0"))
                case UInt8(ascii: ".") where part < 3, UInt8(ascii: ":") where part == 3:
                    guard digits > 0, number <= 0xFF else { return false }
                    bits = bits << 8 | number
                    (part, digits, number) = (part + 1, 0, 0)
                default: return false
                }
            }
            return part == 4 && digits > 0
        }
        guard isDotted ?? false, let port = UInt16(exactly: number) else { return nil }
        self.init(.v4(bits), port: port)
    }

    /// Creates an address from sixteen bytes. An IPv4 address in IPv6 form (`::ffff:1.2.3.4`) becomes IPv4.
    package init(_ address: in6_addr, scope: UInt32, port: UInt16) {
        let (high, low) = withUnsafeBytes(of: address) { bytes in
            (
                UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
        if high == 0, low >> 32 == 0xFFFF {
            self.init(.v4(UInt32(truncatingIfNeeded: low)), port: port)
        } else {
            self.init(.v6(high: high, low: low, scope: scope), port: port)
        }
    }

    /// Creates an address from one of the system's. Returns nil if its family is not IP.
    package init?(_ address: UnsafePointer<sockaddr>) {
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            self = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                SocketAddress(
                    .v4(UInt32(bigEndian: $0.pointee.sin_addr.s_addr)),
                    port: UInt16(bigEndian: $0.pointee.sin_port))
            }
        case AF_INET6:
            self = address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                SocketAddress(
                    $0.pointee.sin6_addr, scope: $0.pointee.sin6_scope_id,
                    port: UInt16(bigEndian: $0.pointee.sin6_port))
            }
        default: return nil
        }
    }

    /// Calls `body` with the address in the system's form.
    package func withSockaddr<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        switch host {
        case .v4(let bits):
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = bits.bigEndian
            return Self.lend(&address, body)
        case .v6(let high, let low, let scope):
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_scope_id = scope
            withUnsafeMutableBytes(of: &address.sin6_addr) {
                $0.storeBytes(of: high.bigEndian, as: UInt64.self)
                $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            return Self.lend(&address, body)
        }
    }

    private static func lend<Address, Result>(
        _ address: inout Address, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }

    /// The address family, as the system numbers it.
    package var family: Int32 { if case .v4 = host { AF_INET } else { AF_INET6 } }

    package var isIPv6: Bool { family == AF_INET6 }

    /// Whether packets to it never leave the machine.
    package var isLoopback: Bool {
        switch host {
        case .v4(let bits): bits >> 24 == 127
        case .v6(let high, let low, _): high == 0 && low == 1
        }
    }

    /// Whether it is valid on one link only.
    package var isLinkLocal: Bool {
        switch host {
        case .v4(let bits): bits >> 16 == 0xA9FE
        case .v6(let high, _, _): high >> 54 == 0xFE80 >> 6
        }
    }

    /// Whether it is the wildcard address, which stands for all addresses.
    package var isAny: Bool {
        switch host {
        case .v4(let bits): bits == 0
        case .v6(let high, let low, _): high == 0 && low == 0
        }
    }

    /// Whether it can be the address of one host: it is neither unspecified nor for many.
    package var isUnicast: Bool {
        switch host {
        case .v4(let bits): (1..<224).contains(bits >> 24)
        case .v6(let high, _, _): !isAny && high >> 56 != 0xFF
        }
    }

    /// Whether it names an interface of this machine.
    package var hasScope: Bool {
        if case .v6(_, _, let scope) = host { scope != 0 } else { false }
    }

    /// Whether it is a link-local IPv6 address that does not say on which link.
    package var lacksScope: Bool {
        if case .v6(_, _, let scope) = host { isLinkLocal && scope == 0 } else { false }
    }
}

extension SocketAddress: CustomStringConvertible {
    /// The form `192.168.1.5:4000` or `[fe80::1%eth0]:4000`.
    package var description: String {
        if case .v4(let bits) = host { return Self.dotted(bits, port: port) }
        return "[\(hostDescription)]:\(port)"
    }

    /// Returns four bytes with dots between them, and the port behind them if there is one, in one pass: each
    /// connection needs the texts of its two ends, and interpolation costs several times as much.
    private static func dotted(_ bits: UInt32, port: UInt16? = nil) -> String {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(INET_ADDRSTRLEN) + 6) { text in
            var count = 0
            func write(_ character: UInt8) {
                text.initializeElement(at: count, to: character)
                count += 1
            }
            func write(number: UInt32) {
                var unit: UInt32 = 1
                while number / unit >= 10 { unit *= 10 }
                while unit > 0 {
                    write(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / unit % 10))
                    unit /= 10
                }
            }
            for index in 0..<4 {
                if index > 0 { write(UInt8(ascii: ".")) }
                write(number: bits >> UInt32(24 - 8 * index) & 0xFF)
            }
            if let port {
                write(UInt8(ascii: ":"))
                write(number: UInt32(port))
            }
            return String(decoding: text[..<count], as: UTF8.self)
        }
    }

    /// The address without the port, as text.
    package var hostDescription: String {
        switch host {
        case .v4(let bits): return Self.dotted(bits)
        case .v6(_, _, let scope):
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            withSockaddr { address, _ in
                _ = address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                    withUnsafePointer(to: $0.pointee.sin6_addr) {
                        inet_ntop(AF_INET6, $0, &text, socklen_t(INET6_ADDRSTRLEN))
                    }
                }
            }
            guard scope != 0 else { return Self.string(text) }
            return "\(Self.string(text))%\(Self.interfaceName(scope))"
        }
    }

    /// Returns the name of the interface with that index, or the index if the interface has no name any more.
    package static func interfaceName(_ index: UInt32) -> String {
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard if_indextoname(index, &name) != nil else { return "\(index)" }
        return string(name)
    }

    static func string(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

extension String {
    /// Whether `byte` is among the bytes of the text. Looks at them where they lie, if they lie in one piece.
    func hasByte(_ byte: UInt8) -> Bool {
        utf8.withContiguousStorageIfAvailable { $0.contains(byte) } ?? utf8.contains(byte)
    }
}

extension FixedWidthInteger {
    /// Parses a number as people write ports and interfaces: digits only, no sign.
    init?(digits text: some StringProtocol) {
        guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        self.init(text)
    }
}
