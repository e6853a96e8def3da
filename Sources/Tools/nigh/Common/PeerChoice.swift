import Arguments
import NighLoop
import SessionArguments

/// The peer that a command is about: as the user writes it, by an address, a name, or a PeerID or its beginning; or the
/// one that announces the number of a one-time code.
enum PeerChoice: Hashable, Sendable {
    case address(TransportAddress)
    case named(String)
    case code(Int)

    /// Returns those of `peers` that the choice names.
    func matching(_ peers: some Sequence<Peer>) -> [Peer] {
        switch self {
        case .address(let address): return peers.filter { $0.routes.contains { $0.address == address } }
        case .named(let text):
            let name = PeerName(text)
            let found = name.matching(peers) { ($0.id, $0.displayName) }
            return found + peers.filter { name.matches($0.identity, nil) && !found.contains($0) }
        case .code(let number): return peers.filter { InvitationPurpose.codeNumber(of: $0) == number }
        }
    }

    /// Returns those of `peers` whose name is the chosen one with a number, such as "Puma #2".
    func matchingNumbered(_ peers: some Sequence<Peer>) -> [Peer] {
        switch self {
        case .address, .code: []
        case .named(let text): PeerName(text).matchingNumbered(peers) { ($0.id, $0.displayName) }
        }
    }
}

extension PeerChoice: CustomStringConvertible {
    var description: String {
        switch self {
        case .address(let address): address.description
        case .named(let text): text
        case .code(let number): "the device that shows code \(number)"
        }
    }
}

extension Notation where Value == PeerChoice {
    /// A peer on the command line.
    static var peer: Notation {
        Notation("PEER", candidates: .lines(of: CompleteCommand.line(for: .peers))) { text in
            try TransportAddress.typed(text).map(PeerChoice.address) ?? .named(text)
        }
    }
}
