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

    /// Sends to each of these recipients in turn. Throws the failures, except those that are passed over.
    package nonisolated(nonsending) static func gather<Recipient>(
        _ recipients: some Sequence<Recipient>, id: (Recipient) -> PeerID,
        passingOver isPassedOver: (NighError) -> Bool,
        _ send: nonisolated(nonsending) (Recipient) async throws(NighError) -> Void
    ) async throws(PartialSendError) {
        var failures: [PeerID: NighError] = [:]
        for recipient in recipients {
            do throws(NighError) {
                try await send(recipient)
            } catch {
                if !isPassedOver(error) { failures[id(recipient)] = error }
            }
        }
        if !failures.isEmpty { throw PartialSendError(failures: failures) }
    }

    /// All reasons, in one line.
    public var description: String {
        if let reason { return reason.description }
        return failures.sorted { $0.key < $1.key }.map(\.value.description).joined(separator: "; ")
    }
}
