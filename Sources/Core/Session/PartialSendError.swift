/// A message to several peers was not sent to all of them.
public struct PartialSendError: Error, CustomStringConvertible {
    /// The peers to which it was not sent, with the reasons. It was sent to all others.
    public let failures: [PeerID: NighError]

    package init(failures: [PeerID: NighError]) { self.failures = failures }

    /// All reasons, in one line.
    public var description: String {
        failures.sorted { $0.key < $1.key }.map(\.value.description).joined(separator: "; ")
    }
}
