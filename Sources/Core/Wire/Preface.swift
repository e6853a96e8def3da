/// The first eight bytes of a pipe, both ways: that this is Nigh, and which kinds of security the sender would accept.
package struct Preface: Equatable {
    package static let byteCount = 8
    static let magic: [UInt8] = Array("NIGH".utf8)
    /// The layout of these eight bytes; it is not the protocol version, which the hellos settle.
    static let layout: UInt8 = 1

    /// The kinds of security, the stronger the higher the bit.
    package struct Security: OptionSet {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let plaintext = Security(rawValue: 1)
        package static let tls13 = Security(rawValue: 2)

        /// The strongest kind both sides accept.
        func strongestCommon(with other: Security) -> Security? {
            let common = intersection(other)
            if common.contains(.tls13) { return .tls13 }
            return common.contains(.plaintext) ? .plaintext : nil
        }
    }

    package var security: Security

    var bytes: [UInt8] { Self.magic + [Self.layout, security.rawValue, 0, 0] }

    init(security: Security) { self.security = security }

    /// Reads eight bytes. Bits and bytes without a meaning yet are ignored, so that they can get one.
    package init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        guard bytes.count == Self.byteCount, bytes.prefix(4).elementsEqual(Self.magic) else {
            throw .malformed("the other side does not speak Nigh")
        }
        guard bytes[4] == Self.layout else { throw .malformed("unknown preface layout \(bytes[4])") }
        security = Security(rawValue: bytes[5])
    }
}
