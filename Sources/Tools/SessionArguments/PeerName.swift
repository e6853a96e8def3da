import Arguments
import NighCore
import NighLoop

/// A peer as a user names it: its display name in upper or lower case, its PeerID, or the beginning of that.
public struct PeerName: Hashable, Sendable {
    /// The text as it was typed.
    public let text: String

    /// The number of characters of a PeerID that are enough to name it.
    private static let minimumLength = 4

    /// Creates a name from typed text.
    public init(_ text: String) { self.text = text }

    /// Returns whether this names the peer with that PeerID and, as far as it is known, that display name. A whole
    /// PeerID names no other peer, because a stranger can take it as a name.
    public func matches(_ id: PeerID, _ name: DisplayName?) -> Bool {
        if let whole = PeerID(text.lowercased()) { return id == whole }
        return name?.description.lowercased() == text.lowercased() || begins(id)
    }

    private func begins(_ id: PeerID) -> Bool {
        text.utf8.count >= Self.minimumLength && id.description.hasPrefix(text.lowercased())
    }

    /// Returns the peers that this names. If several have the name in one case or another, those with exactly the typed
    /// letters are meant, unless the text also begins a PeerID.
    public func matching<Peers: Sequence>(
        _ peers: Peers, _ parts: (Peers.Element) -> (id: PeerID, name: DisplayName?)
    ) -> [Peers.Element] {
        let all = peers.filter { matches(parts($0).id, parts($0).name) }
        let exact = all.filter { parts($0).name?.description == text }
        return exact.isEmpty || all.contains { begins(parts($0).id) } ? all : exact
    }

    /// Returns the peers whose name is this one with a number, such as "Puma #2": a session whose name is taken on the
    /// network is announced so.
    public func matchingNumbered<Peers: Sequence>(
        _ peers: Peers, _ parts: (Peers.Element) -> (id: PeerID, name: DisplayName?)
    ) -> [Peers.Element] {
        guard PeerID(text.lowercased()) == nil else { return [] }
        return peers.filter { peer in
            guard let name = parts(peer).name.map({ NumberedName($0.description) }) else { return false }
            return name.number > 1 && name.stem.lowercased() == text.lowercased()
        }
    }

    /// Returns the one of these display names that was probably meant; nil if there is none.
    public func suggestion(among names: some Sequence<DisplayName>) -> String? {
        SpellingSuggestion.closest(to: text, among: Set(names.map(\.description)).sorted())
    }
}
