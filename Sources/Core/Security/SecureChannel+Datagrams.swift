extension SecureChannel {
    /// Returns the ciphers for datagrams: one protects this side's packets, one opens those of the other side. Nil
    /// before the handshake has ended.
    ///
    /// - Parameters:
    ///   - side: the side of this channel.
    ///   - ours, theirs: the offers of both sides. Their connections keep the secrets of two paths of one link apart.
    func datagramCiphers(
        of side: LinkSide, ours: DatagramOffer, theirs: DatagramOffer
    ) -> (sealing: DatagramCipher, opening: DatagramCipher)? {
        guard datagramProtection != .checksum else {
            return (
                DatagramCipher(.checksum, secret: nil, isSealing: true),
                DatagramCipher(.checksum, secret: nil, isSealing: false)
            )
        }
        let (dialling, accepting) = side == .dialling ? (ours, theirs) : (theirs, ours)
        var writer = FieldWriter()
        writer.write(dialling.connection)
        writer.write(accepting.connection)
        guard
            let material = keyingMaterial(
                label: DatagramCipher.exporterLabel, context: writer.bytes,
                count: 2 * DatagramCipher.secretByteCount)
        else { return nil }
        let (first, second) = material.halves
        let (own, other) = side == .dialling ? (first, second) : (second, first)
        return (
            DatagramCipher(datagramProtection, secret: own, isSealing: true),
            DatagramCipher(datagramProtection, secret: other, isSealing: false)
        )
    }
}
