/// What two sides that are being paired say to each other: the payload of one frame.
package enum PairingMessage: Equatable {
    /// The asking side's first word: what it cannot take back.
    case commitment(PairingValue)
    /// The asked side's nonce.
    case nonce(PairingValue)
    /// The asking side's nonce, which it has committed to.
    case reveal(PairingValue)
    /// The person over there says that the digits are the same.
    case confirmed
    /// There will be no pairing.
    case refused(PairingRefusal)
    /// A kind of a later version; what it says is not known.
    case unknown(kind: UInt8)

    /// What stands before the fields.
    private enum Kind: UInt8 {
        case commitment = 1
        case nonce = 2
        case reveal = 3
        case confirmed = 4
        case refused = 5
    }

    package var payload: [UInt8] {
        switch self {
        case .commitment(let value): [Kind.commitment.rawValue] + value.bytes
        case .nonce(let value): [Kind.nonce.rawValue] + value.bytes
        case .reveal(let value): [Kind.reveal.rawValue] + value.bytes
        case .confirmed: [Kind.confirmed.rawValue]
        case .refused(let reason): [Kind.refused.rawValue, reason.rawValue]
        case .unknown(let kind): [kind]
        }
    }

    /// Reads a whole payload, neither less nor more; of an unknown kind, whatever follows it.
    package init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        let number = try reader.number(UInt8.self, "a pairing message's kind")
        switch Kind(rawValue: number) {
        case .commitment: self = .commitment(try PairingValue(reading: &reader, "a pairing commitment"))
        case .nonce: self = .nonce(try PairingValue(reading: &reader, "a pairing nonce"))
        case .reveal: self = .reveal(try PairingValue(reading: &reader, "a revealed pairing nonce"))
        case .confirmed: self = .confirmed
        case .refused:
            let code = try reader.number(UInt8.self, "the reason of a refused pairing")
            self = .refused(PairingRefusal(rawValue: code) ?? .declined)
        case nil:
            self = .unknown(kind: number)
            return
        }
        try reader.finish("a pairing message")
    }

    /// What errors call it.
    package var name: String {
        switch self {
        case .commitment: "commitment"
        case .nonce: "nonce"
        case .reveal: "reveal"
        case .confirmed: "confirmed"
        case .refused: "refused"
        case .unknown(let kind): "message of kind \(kind)"
        }
    }
}

/// 32 bytes that are sent while pairing: a commitment or a nonce.
package struct PairingValue: Hashable {
    static let byteCount = 32

    package let bytes: [UInt8]

    /// Nil for any other number of bytes.
    init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = Array(bytes)
    }

    fileprivate init(reading reader: inout FieldReader, _ what: String) throws(WireError) {
        bytes = Array(try reader.take(Self.byteCount, what))
    }
}
