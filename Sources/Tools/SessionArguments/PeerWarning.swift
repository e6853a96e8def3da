import NighLoop

/// A warning about a peer that may pretend to be a known one: it has the name of one and another key, or was announced
/// as one and is not. A person has to know this before they decide anything about the peer.
public struct PeerWarning: Hashable, Sendable {
    /// The identity of the peer that the warning is about.
    public let peer: PeerID
    /// The name of the peer and of the known devices.
    public let name: String
    /// The known peers that it may pretend to be, the paired ones first.
    public let known: [PeerID]
    /// Whether the peer has proven that its announcement was false.
    public let isRefuted: Bool

    /// Creates the warning about a peer, or returns nil if there is nothing to warn of.
    public init?(_ peer: PeerID, name: String, trust: PeerTrust?) {
        switch trust {
        case .newWithKnownName(let known)?:
            self.known = known
            isRefuted = false
        case .falselyAnnounced(let identity)?:
            known = [identity]
            isRefuted = true
        case .paired?, .known?, .new?, .guest?, nil: return nil
        }
        self.peer = peer
        self.name = name
    }

    /// Creates the warning about a peer, or returns nil if there is nothing to warn of.
    public init?(_ peer: Peer) { self.init(peer.identity, name: peer.name, trust: peer.trust) }

    /// The warning as one sentence without its full stop, for a place where `name` is shown.
    public var sentence: String {
        let shown = known.prefix(2).map(\.short).joined(separator: ", ")
        if isRefuted { return "it was announced as a session of \(shown), and is not: SOMEBODY PRETENDS" }
        let more = known.count > 2 ? " and \(known.count - 2) more" : ""
        return "you know \(name) with another key (\(shown)\(more)): this may be somebody else"
    }

    /// The advice for every warning.
    public static let advice = "compare the PeerIDs on both screens, or pair the two with `nigh pair`"

}

extension PeerWarning: CustomStringConvertible {
    /// The warning as one sentence that names the peer and gives advice.
    public var description: String { "\(name) (\(peer.short)): \(sentence); \(Self.advice)" }
}
