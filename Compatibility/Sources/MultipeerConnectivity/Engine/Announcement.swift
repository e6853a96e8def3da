/// What an engine advertises: whether an advertiser is started, and the pairs of its `discoveryInfo`.
struct Announcement {
    enum Content {
        /// The engine listens for members of sessions only.
        case hidden
        case visible([String: String]?)
    }

    /// The pair that this module adds. It says whether there is an advertiser, and whether it has a `discoveryInfo`.
    private static let key = "~"
    private static let withoutInfo = "a"
    private static let withInfo = "i"

    let isVisible: Bool
    let pairs: [String: String]?

    /// Reads what a peer advertises.
    init(_ advertised: [String: String]) {
        isVisible = [Self.withoutInfo, Self.withInfo].contains(advertised[Self.key])
        guard advertised[Self.key] == Self.withInfo else {
            pairs = nil
            return
        }
        var pairs: [String: String] = [:]
        for (key, value) in advertised where key != Self.key {
            pairs[key.hasPrefix(Self.key) ? String(key.dropFirst()) : key] = value
        }
        self.pairs = pairs
    }

    /// What is advertised. Nigh keeps the keys "v" and "id" for itself, so these get a mark in front.
    static func pairs(_ content: Content) -> [String: String] {
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
