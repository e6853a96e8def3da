/// A message to several peers was not sent to all of them.
public struct PartialSendError: Error, CustomStringConvertible {
    /// The peers to which it was not sent, with the reasons. It was sent to all others.
    public let failures: [PeerID: NighError]
    /// Why it was sent to nobody, if that has nothing to do with the single peers: the session is closed.
    public let reason: NighError?

    package init(failures: [PeerID: NighError]) {
        self.failures = failures
        reason = nil
    }

    /// Creates the error of a message that is sent to none of these peers.
    package init(_ reason: NighError, peers: [PeerID]) {
        failures = Dictionary(peers.map { ($0, reason) }, uniquingKeysWith: { first, _ in first })
        self.reason = reason
    }

    /// All reasons, in one line.
    public var description: String {
        if let reason { return reason.description }
        return failures.sorted { $0.key < $1.key }.map(\.value.description).joined(separator: "; ")
    }
}
