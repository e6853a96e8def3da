import NighCore

extension PeerID {
    /// A PeerID that nobody has, a different one for each number.
    package static func numbered(_ number: Int) -> PeerID {
        guard
            let id = PeerID(
                bytes: (0..<PeerID.byteCount).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 4))) })
        else { preconditionFailure("a PeerID has \(PeerID.byteCount) bytes") }
        return id
    }
}
