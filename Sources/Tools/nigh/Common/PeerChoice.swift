import Arguments
import NighLoop

/// The peer that a command is about, as the user writes it: an address, a name, or a PeerID or its beginning.
enum PeerChoice: Hashable, Sendable {
    case address(TransportAddress)
    case named(String)

    /// The number of characters of a PeerID that are enough to choose it.
    private static let minimumLength = 4

    /// Returns whether the choice names `peer`.
    func matches(_ peer: Peer) -> Bool {
        switch self {
        case .address(let address): peer.routes.contains { $0.address == address }
        case .named(let text): Self.matches(text, peer.id, peer.name)
        }
    }

    /// Returns whether `text` names the peer with that PeerID and, as far as it is known, that name. A whole PeerID
    /// names no other peer, because a stranger can take it as a name.
    static func matches(_ text: String, _ id: PeerID, _ name: DisplayName?) -> Bool {
        if let whole = PeerID(text) { return id == whole }
        return name?.description == text || text.utf8.count >= minimumLength && id.description.hasPrefix(text)
    }
}

extension PeerChoice: CustomStringConvertible {
    var description: String {
        switch self {
        case .address(let address): address.description
        case .named(let text): text
        }
    }
}

extension Notation where Value == PeerChoice {
    /// A peer on the command line.
    static var peer: Notation {
        Notation("PEER") { text in
            if text.contains("://") {
                guard let address = TransportAddress(text) else {
                    throw UsageError("\"\(text)\" is not an address such as tcp://192.168.1.7:4000")
                }
                return .address(address)
            }
            return .named(text)
        }
    }
}
