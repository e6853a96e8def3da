import Arguments
import Nigh

/// Whom a command is about, as somebody writes it: an address, a name, or a PeerID or how one begins.
enum PeerChoice: Hashable, Sendable {
    case address(TransportAddress)
    case named(String)

    /// How many characters of a PeerID are enough to mean it.
    private static let fewestCharacters = 4

    /// Whether `peer` is meant.
    func means(_ peer: Peer) -> Bool {
        switch self {
        case .address(let address): peer.routes.contains { $0.address == address }
        case .named(let text): Self.means(text, peer.id, peer.name)
        }
    }

    /// Whether `text` means the peer of that PeerID and name.
    static func means(_ text: String, _ id: PeerID, _ name: DisplayName) -> Bool {
        name.description == text || text.utf8.count >= fewestCharacters && id.description.hasPrefix(text)
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
    /// Who is meant.
    static var peer: Notation {
        Notation("PEER") { text in
            if text.contains("://") {
                guard let address = TransportAddress(text) else {
                    throw Misuse("an address is written as in tcp://192.168.1.7:4000, unlike \"\(text)\"")
                }
                return .address(address)
            }
            return .named(text)
        }
    }
}
