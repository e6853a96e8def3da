/// The first eight bytes in each direction of a pipe. They identify Nigh and name the kinds
/// of security that the sender accepts.
package struct Preface: Equatable {
    package static let byteCount = 8
    static let magic: [UInt8] = Array("NIGH".utf8)
    /// The version of the preface's layout. The protocol version is another number, which the hellos agree on.
    static let layout: UInt8 = 1

    /// Kinds of security. A higher bit is a stronger kind.
    package struct Security: OptionSet {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let plaintext = Security(rawValue: 1)
        package static let tls13 = Security(rawValue: 2)

        /// Returns the strongest kind that both sides accept, or nil if there is none.
        func strongestCommon(with other: Security) -> Security? {
            let common = intersection(other)
            if common.contains(.tls13) { return .tls13 }
            return common.contains(.plaintext) ? .plaintext : nil
        }
    }

    package var security: Security

    var bytes: [UInt8] { Self.magic + [Self.layout, security.rawValue, 0, 0] }

    init(security: Security) { self.security = security }

    /// Reads the eight bytes. Ignores bits and bytes that have no meaning yet, so
    /// that a later version can give them one.
    package init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        guard bytes.count == Self.byteCount, bytes.prefix(4).elementsEqual(Self.magic) else {
            throw .malformed("the other side does not speak Nigh")
        }
        guard bytes[4] == Self.layout else { throw .malformed("unknown preface layout \(bytes[4])") }
        security = Security(rawValue: bytes[5])
    }
}
