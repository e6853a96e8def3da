/// An identity's statement that a session with a key of its own acts for it. It is a field of the hello.
///
/// It has no end date, because devices may have no clock: it holds for one session, by its key and its incarnation. The
/// bytes prove nothing by themselves; `Hello.provenIdentity` checks them.
package struct Delegation: Equatable, Sendable {
    /// The public key of the identity.
    package let publicKey: [UInt8]
    /// The identity's signature over the session's PeerID, service and incarnation.
    package let signature: [UInt8]

    private static let publicKeyByteCount = 32
    private static let signatureByteCount = 64
    /// The length of the field.
    static let byteCount = publicKeyByteCount + signatureByteCount

    package init(publicKey: [UInt8], signature: [UInt8]) {
        precondition(publicKey.count == Self.publicKeyByteCount, "a key of \(publicKey.count) bytes")
        precondition(signature.count == Self.signatureByteCount, "a signature of \(signature.count) bytes")
        self.publicKey = publicKey
        self.signature = signature
    }

    init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        publicKey = Array(try reader.take(Self.publicKeyByteCount, "the key of the hello's delegation"))
        signature = Array(try reader.take(Self.signatureByteCount, "the signature of the hello's delegation"))
        try reader.finish("the hello's delegation")
    }

    func write(to writer: inout PayloadWriter) {
        writer.write(raw: publicKey)
        writer.write(raw: signature)
    }
}
