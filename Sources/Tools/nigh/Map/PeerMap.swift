import NighCore
import NighIntroductions
import NighRelays

/// Peers, their connections, and the paths of these, as far as one session knows. A value; `PeerMapText` and
/// `PeerMapPicture` show it.
struct PeerMap: Equatable, Sendable {
    /// A peer on the map.
    struct Node: Equatable, Sendable {
        let id: PeerID
        var name: String
        /// Whether it is this session.
        var isOwn = false
        /// Whether it is known to be in the mesh, where everybody should be connected to everybody.
        var isMember = false
        var isFull = false

        /// The name and the beginning of the PeerID.
        var label: String { "\(name) (\(id.short))" }
    }

    /// Two peers, the one with the smaller PeerID first.
    struct Pair: Hashable, Comparable, Sendable {
        let first: PeerID
        let second: PeerID

        init(_ a: PeerID, _ b: PeerID) { (first, second) = (min(a, b), max(a, b)) }

        static func < (left: Pair, right: Pair) -> Bool {
            (left.first, left.second) < (right.first, right.second)
        }
    }

    /// The conversation of two peers.
    struct Edge: Equatable, Sendable {
        /// The path; nil if nobody has reported it.
        var path: ConversationPath?
        /// The ends that report the conversation: one or both.
        var reporters: [PeerID]

        /// The peer that passes everything on, if one does.
        var carrier: PeerID? { if case .over(_, let carrier)? = path { carrier } else { nil } }

        /// The path as one word: a scheme, `interrupted` or `unknown`.
        var kind: String {
            switch path {
            case .over(let scheme, _)?: scheme
            case .interrupted?: "interrupted"
            case nil: "unknown"
            }
        }
    }

    /// All peers: this session first, then by name.
    private(set) var nodes: [Node] = []
    private(set) var edges: [Pair: Edge] = [:]
    private var places: [PeerID: Int] = [:]

    /// Adds a peer, or updates it.
    mutating func add(_ node: Node) {
        guard let place = places[node.id] else {
            places[node.id] = nodes.count
            return nodes.append(node)
        }
        nodes[place].isMember = nodes[place].isMember || node.isMember
        nodes[place].isFull = nodes[place].isFull || node.isFull
    }

    /// Adds one end's report of its conversation with another peer. If both ends report a path, the first report
    /// counts.
    mutating func add(_ path: ConversationPath?, of reporter: PeerID, with other: PeerID) {
        let pair = Pair(reporter, other)
        var edge = edges[pair] ?? Edge(path: nil, reporters: [])
        edge.path = edge.path ?? path
        if !edge.reporters.contains(reporter) { edge.reporters.append(reporter) }
        edges[pair] = edge
    }

    /// Puts this session first, and the others in the order of their names.
    mutating func sort() {
        nodes.sort { ($0.isOwn ? 0 : 1, $0.name, $0.id) < ($1.isOwn ? 0 : 1, $1.name, $1.id) }
        places = Dictionary(uniqueKeysWithValues: nodes.enumerated().map { ($0.element.id, $0.offset) })
    }

    /// Returns the node of a peer.
    func node(_ id: PeerID) -> Node? { places[id].map { nodes[$0] } }

    /// Returns name and short PeerID, or the latter alone for a peer that is not on the map.
    func label(of id: PeerID) -> String { node(id)?.label ?? id.short }

    /// The pairs of members of the mesh that are not connected.
    var missing: [Pair] {
        let members = nodes.filter(\.isMember).map(\.id).sorted()
        var missing: [Pair] = []
        for (index, first) in members.enumerated() {
            for second in members[(index + 1)...] where edges[Pair(first, second)] == nil {
                missing.append(Pair(first, second))
            }
        }
        return missing
    }

    /// The number of conversations over each kind of path, the most frequent first.
    var kinds: [(kind: String, count: Int)] {
        Dictionary(grouping: edges.values, by: \.kind).map { ($0.key, $0.value.count) }
            .sorted { (-$0.1, $0.0) < (-$1.1, $1.0) }
    }
}

/// A change from one map to the next.
struct PeerMapChange: Equatable, Sendable {
    enum Kind: String, Sendable {
        case connected
        case moved
        case ended
    }

    let kind: Kind
    let pair: PeerMap.Pair
    /// The conversation as it is now; as it was, if it has ended.
    let edge: PeerMap.Edge

    /// Returns the changes, in the order of the pairs.
    static func all(from old: PeerMap, to new: PeerMap) -> [PeerMapChange] {
        Set(old.edges.keys).union(new.edges.keys).sorted().compactMap { pair in
            switch (old.edges[pair], new.edges[pair]) {
            case (nil, let edge?): PeerMapChange(kind: .connected, pair: pair, edge: edge)
            case (let edge?, nil): PeerMapChange(kind: .ended, pair: pair, edge: edge)
            case (let before?, let now?) where before.path != now.path:
                PeerMapChange(kind: .moved, pair: pair, edge: now)
            default: nil
            }
        }
    }
}
