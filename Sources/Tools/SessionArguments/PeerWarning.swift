import Nigh

/// What a person must know about a peer before they decide anything about it: it has the name of a device they know, and
/// another key.
public struct PeerWarning: Hashable, Sendable {
    /// The peer the warning is about.
    public let peer: PeerID
    /// The name of both.
    public let name: String
    /// The devices that are known by that name, the paired ones first.
    public let known: [PeerID]

    /// Nil for a peer about which there is nothing to warn of.
    public init?(_ peer: PeerID, name: String, trust: PeerTrust?) {
        guard case .newWithKnownName(let known)? = trust else { return nil }
        self.peer = peer
        self.name = name
        self.known = known
    }

    /// Nil for a peer about which there is nothing to warn of.
    public init?(_ peer: Peer) { self.init(peer.id, name: peer.name.description, trust: peer.trust) }

    /// One sentence, without its full stop, for a place where `name` is shown.
    public var sentence: String {
        let shown = known.prefix(2).map(\.short).joined(separator: ", ")
        let more = known.count > 2 ? " and \(known.count - 2) more" : ""
        return "you know \(name) with another key (\(shown)\(more)): this may be somebody else"
    }

    /// What a person can do about it.
    public static let advice = "compare the PeerIDs on both screens, or pair the two with `nigh pair`"

}

extension PeerWarning: CustomStringConvertible {
    /// One sentence that says who is meant, and what a person can do.
    public var description: String { "\(name) (\(peer.short)): \(sentence); \(Self.advice)" }
}
