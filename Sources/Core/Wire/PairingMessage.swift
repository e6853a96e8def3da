/// A message between two sides that are being paired: the payload of one `pair` frame.
package enum PairingMessage: Equatable {
    /// The asking side's first message: the commitment to its nonce.
    case commitment(PairingValue)
    /// The asked side's nonce.
    case nonce(PairingValue)
    /// The asking side's nonce, to which it has committed.
    case reveal(PairingValue)
    /// The sender's person says that the digits are the same.
    case confirmed
    /// The sender refuses the pairing.
    case refused(PairingRefusal)
    /// A kind of message from a later version, whose content is unknown.
    case unknown(kind: UInt8)

    /// The first byte of the payload.
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

    /// Reads a payload, which must contain exactly one message. For an unknown kind,
    /// the rest of the payload is ignored.
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

    /// The name of the message in errors.
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

/// The 32 bytes of a commitment or a nonce, sent during pairing.
package struct PairingValue: Hashable {
    static let byteCount = 32

    package let bytes: [UInt8]

    /// Creates a value from exactly 32 bytes. Returns nil for any other number of bytes.
    init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = Array(bytes)
    }

    fileprivate init(reading reader: inout FieldReader, _ what: String) throws(WireError) {
        bytes = Array(try reader.take(Self.byteCount, what))
    }
}
