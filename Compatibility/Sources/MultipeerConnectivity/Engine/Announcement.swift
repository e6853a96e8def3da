import NighCore

/// The advertisement of an engine: whether an advertiser is started, the peer's name, and the pairs of its
/// `discoveryInfo`.
struct Announcement {
    enum Content {
        /// The engine listens for members of sessions only.
        case hidden
        case visible([String: String]?)
    }

    /// The pair that this module adds. It says whether there is an advertiser, and whether it has a `discoveryInfo`.
    private static let key = "~"
    /// The peer's own name. The one that it is advertised under has a number if another peer has the same name.
    private static let nameKey = "~n"
    private static let withoutInfo = "a"
    private static let withInfo = "i"

    let isVisible: Bool
    let pairs: [String: String]?
    let name: String?

    /// Reads the advertisement of a peer.
    init(_ advertised: [String: String]) {
        name = advertised[Self.nameKey]
        isVisible = [Self.withoutInfo, Self.withInfo].contains(advertised[Self.key])
        guard advertised[Self.key] == Self.withInfo else {
            pairs = nil
            return
        }
        var pairs: [String: String] = [:]
        for (key, value) in advertised where key != Self.key && key != Self.nameKey {
            pairs[key.hasPrefix(Self.key) ? String(key.dropFirst()) : key] = value
        }
        self.pairs = pairs
    }

    /// Returns the pairs to advertise. Nigh keeps the keys "v" and "id" for itself, so these get a mark in front.
    ///
    /// The name is left out if there is no room for it.
    static func pairs(_ content: Content, name: String) -> [String: String] {
        var pairs = pairs(content)
        guard !pairs.isEmpty else { return pairs }
        pairs[nameKey] = name
        if (try? DiscoveryInfo(pairs)) == nil { pairs[nameKey] = nil }
        return pairs
    }

    private static func pairs(_ content: Content) -> [String: String] {
        guard case .visible(let info) = content else { return [:] }
        guard let info else { return [key: withoutInfo] }
        var pairs = [key: withInfo]
        for (name, value) in info {
            let isReserved = ["v", "id"].contains(name.lowercased()) || name.hasPrefix(key)
            pairs[isReserved ? key + name : name] = value
        }
        return pairs
    }
}
