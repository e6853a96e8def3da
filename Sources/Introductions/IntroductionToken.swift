import NighCore

/// A common peer's signature that it introduces a guest to a host. The guest shows it when it invites the host.
/// It is valid once, for this guest and host only, while the introducer's conversation with the host lasts.
package struct IntroductionToken: Equatable {
    /// The introducer's public key. The introducer's PeerID is the hash of it.
    package let publicKey: [UInt8]
    /// The random number that the host has chosen for its conversation with the introducer.
    package let nonce: UInt64
    /// The number of this token among those that the introducer has signed for guests of the host.
    package let number: UInt64
    package let signature: [UInt8]

    /// Signs that `guest` is introduced to `host`.
    package init(by introducer: Identity, guest: PeerID, host: PeerID, nonce: UInt64, number: UInt64) {
        publicKey = introducer.publicKey
        self.nonce = nonce
        self.number = number
        signature = introducer.signature(of: Self.message(guest, host, nonce, number))
    }

    /// The introducer; nil if `publicKey` is not a valid key.
    package var introducer: PeerID? { PeerID(publicKey: publicKey) }

    /// Whether the introducer has signed that `guest` is introduced to `host`.
    package func introduces(_ guest: PeerID, to host: PeerID) -> Bool {
        Signature.isValid(signature, of: Self.message(guest, host, nonce, number), by: publicKey)
    }

    private static func message(
        _ guest: PeerID, _ host: PeerID, _ nonce: UInt64, _ number: UInt64
    ) -> [UInt8] {
        var fields = FieldWriter()
        fields.write(short: "nigh introduction 1")
        fields.write(raw: guest.bytes)
        fields.write(raw: host.bytes)
        fields.write(nonce)
        fields.write(number)
        return fields.bytes
    }

    /// The token as it is sent.
    package var bytes: [UInt8] {
        var fields = FieldWriter()
        fields.write(raw: publicKey)
        fields.write(nonce)
        fields.write(number)
        fields.write(raw: signature)
        return fields.bytes
    }

    /// Reads a token. It may be forged: `introduces` checks the signature.
    package init(reading bytes: [UInt8]) throws(WireError) {
        self = try ByteSlice(bytes).withUnsafeBytes { bytes throws(WireError) in try Self(bytes) }
    }

    private init(_ bytes: UnsafeRawBufferPointer) throws(WireError) {
        var fields = FieldReader(bytes)
        publicKey = Array(try fields.take(Signature.publicKeyByteCount, "the key of a token"))
        nonce = try fields.number(UInt64.self, "the nonce of a token")
        number = try fields.number(UInt64.self, "the number of a token")
        signature = Array(try fields.take(Signature.byteCount, "the signature of a token"))
        try fields.finish("a token")
    }
}
