/// A message to several peers did not go to all of them.
public struct PartialSendError: Error, CustomStringConvertible {
    /// To whom it did not go, and why. It went to all others.
    public let failures: [PeerID: NighError]

    /// All reasons, in one line.
    public var description: String {
        failures.sorted { $0.key < $1.key }.map(\.value.description).joined(separator: "; ")
    }
}
