import COpenSSL
import NighCore

/// A UUID of 128 bits, by which Bluetooth names services and protocols.
package struct BluetoothUUID: Hashable, Sendable, CustomStringConvertible {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The UUID for one of Bluetooth's own assigned numbers.
    package init(short: UInt32) {
        self.init(high: UInt64(short) << 32 | 0x0000_1000, low: 0x8000_0080_5F9B_34FB)
    }

    /// The UUID in 2, 4 or 16 bytes; nil for any other count.
    package init?(_ bytes: some Collection<UInt8>) {
        func number(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        switch bytes.count {
        case 2, 4: self.init(short: UInt32(number(bytes)))
        case 16: self.init(high: number(bytes.prefix(8)), low: number(bytes.dropFirst(8)))
        default: return nil
        }
    }

    /// The namespace from which the UUIDs of all services are derived. Part of the protocol.
    package static let namespace = BluetoothUUID(high: 0x1A0F_6D2C_53B7_4E0E, low: 0x9C41_6E69_6768_0001)

    /// The UUID of a service: version 5 of RFC 4122, derived from the service's name. So every program that knows the
    /// name knows the UUID.
    package init(of service: ServiceName) {
        let named = Self.namespace.bytes + Array(service.description.utf8)
        let hash = [UInt8](unsafeUninitializedCapacity: 20) { hash, count in
            let done = EVP_Digest(named, named.count, hash.baseAddress, nil, EVP_sha1(), nil)
            precondition(done == 1, "libcrypto has no SHA-1")
            count = 20
        }
        self.init(random: hash.prefix(16), version: 5)
    }

    /// A random UUID, which nobody else has.
    package static func random() -> BluetoothUUID {
        BluetoothUUID(random: (0..<16).map { _ in UInt8.random(in: .min ... .max) }[...], version: 4)
    }

    private init(random bytes: ArraySlice<UInt8>, version: UInt64) {
        let high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        let low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
        self.init(
            high: high & 0xFFFF_FFFF_FFFF_0FFF | version << 12,
            low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }

    /// The 16 bytes, most significant first.
    package var bytes: [UInt8] {
        [high, low].flatMap { half in
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: half >> UInt64($0)) }
        }
    }

    /// The UUID in lower-case hexadecimal, with hyphens.
    package var description: String {
        let digits = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
        return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { digits[$0].joined() }.joined(separator: "-")
    }
}
