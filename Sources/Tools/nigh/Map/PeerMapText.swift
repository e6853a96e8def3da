import JSONText
import NighCore
import Terminal

/// A map of peers as lines for a person, and as JSON.
struct PeerMapText {
    let map: PeerMap

    /// The columns of a name.
    private static let nameWidth = 20
    /// The most pairs of each sort that are listed.
    private static let mostListed = 20
    /// The columns of the matrix between two gaps.
    private static let group = 10

    // MARK: For a person

    /// The table with a column for each peer, the meaning of its letters, and anything out of the ordinary.
    var lines: [Line] {
        let letters = letters
        let count = map.nodes.count
        let places = String(count).count
        var lines: [Line] = []
        let indent = String(repeating: " ", count: places + 2 + nameWidth + 2 + 8 + 2)
        if count > 9 {
            lines.append(Line(indent + row { $0 % 10 == 0 ? String($0 / 10 % 10) : " " }, .faint))
        }
        lines.append(
            Line(" ".repeated(places) + "  ") + Line("NAME", .faint).padded(to: nameWidth) + "  "
                + Line("PEER", .faint).padded(to: 8) + "  " + Line(row { String($0 % 10) }, .faint))
        for (index, node) in map.nodes.enumerated() {
            let number = Line(String(index + 1), .faint).padded(to: places, atStart: true)
            let name = Line(node.name, .strong).fitting(nameWidth).padded(to: nameWidth)
            let cells = row { column in
                let other = map.nodes[column - 1]
                guard other.id != node.id else { return "\\" }
                return map.edges[PeerMap.Pair(node.id, other.id)].map { letters[$0.kind] ?? "?" } ?? "."
            }
            let mark = node.isOwn ? "  this session" : node.isFull ? "  full" : ""
            lines.append(
                number + "  " + name + "  " + Line(node.id.short).padded(to: 8) + "  " + Line(cells)
                    + Line(mark, .faint))
        }
        let meanings = map.kinds.map { "\(letters[$0.kind] ?? "?") \(Self.words(for: $0.kind))" }
        lines += ["", Line((meanings + [". not connected"]).joined(separator: "   "), .faint), Line(summary)]
        return lines + exceptions
    }

    private var nameWidth: Int {
        max(4, min(Self.nameWidth, map.nodes.map { Line($0.name).columns }.max() ?? 0))
    }

    /// The cells of a row, with a gap behind each group of columns.
    private func row(_ cell: (Int) -> String) -> String {
        map.nodes.indices.map { index in
            (index > 0 && index % Self.group == 0 ? " " : "") + cell(index + 1)
        }.joined()
    }

    /// A letter for each kind of conversation: the first of its name that is free.
    private var letters: [String: String] {
        var letters = ["unknown": "?", "interrupted": "x"]
        for kind in map.kinds.map(\.kind).sorted() where letters[kind] == nil {
            let free = (kind + "abcdefghijklmnopqrstuwyz").first { letter in
                !letters.values.contains(String(letter))
            }
            letters[kind] = free.map(String.init) ?? "+"
        }
        return letters
    }

    /// Returns words for the path of conversations of a kind.
    static func words(for kind: String) -> String {
        switch kind {
        case "via": "through another peer"
        case "interrupted": "without a link now"
        case "unknown": "over an unknown transport"
        default: "over \(kind)"
        }
    }

    /// The number of peers, and of conversations over each kind of path.
    var summary: String {
        let counts = map.kinds.map { "\($0.count) \(Self.words(for: $0.kind))" }
        let peers = map.nodes.count == 1 ? "1 peer" : "\(map.nodes.count) peers"
        let conversations =
            map.edges.count == 1 ? "1 conversation" : "\(map.edges.count) conversations"
        return "\(peers), \(conversations)" + (counts.isEmpty ? "" : ": " + counts.joined(separator: ", "))
    }

    /// The relayed conversations, those without a link, and the members of the mesh that are not connected.
    private var exceptions: [Line] {
        let carried = map.edges.filter { $0.value.carrier != nil || $0.value.kind == "via" }.sorted {
            $0.key < $1.key
        }.map { Line(Self.words(for: $0.key, $0.value, in: map)) }
        let broken = map.edges.filter { $0.value.path == .interrupted }.keys.sorted().map {
            Line("\(name($0)): without a link now", .warning)
        }
        let missing = map.missing.map { Line("\(name($0)): both in the mesh, and not connected", .warning) }
        return [carried, broken, missing].flatMap { lines in
            lines.count > Self.mostListed
                ? lines.prefix(Self.mostListed) + [Line("and \(lines.count - Self.mostListed) more", .faint)]
                : lines
        }
    }

    private func name(_ pair: PeerMap.Pair) -> String { Self.names(pair, in: map) }

    private static func names(_ pair: PeerMap.Pair, in map: PeerMap) -> String {
        "\(map.label(of: pair.first)) and \(map.label(of: pair.second))"
    }

    /// Two peers and the path of their conversation.
    static func words(for pair: PeerMap.Pair, _ edge: PeerMap.Edge, in map: PeerMap) -> String {
        let path = edge.carrier.map { "through \(map.label(of: $0))" } ?? words(for: edge.kind)
        return "\(names(pair, in: map)): \(path)"
    }

    /// A line that reports a change.
    static func line(for change: PeerMapChange, in map: PeerMap) -> Line {
        let words = words(for: change.pair, change.edge, in: map)
        return switch change.kind {
        case .connected: Line("+ ", .good) + Line(words)
        case .moved: Line("~ ", .warning) + Line(words)
        case .ended: Line("- ", .bad) + Line(names(change.pair, in: map) + ": ended")
        }
    }

    // MARK: For programs

    /// The peers and their conversations, as members of a JSON object.
    var members: [JSON.Member] {
        [
            .init(
                "map",
                .list(
                    map.nodes.map { node in
                        [
                            "id": .text("\(node.id)"), "short_id": .text(node.id.short),
                            "name": .text(node.name), "own": .bool(node.isOwn), "mesh": .bool(node.isMember),
                            "full": .bool(node.isFull),
                        ]
                    })),
            .init(
                "conversations",
                .list(map.edges.sorted { $0.key < $1.key }.map { .object(Self.members($0.key, $0.value)) })),
            .init(
                "missing", .list(map.missing.map { .list([.text("\($0.first)"), .text("\($0.second)")]) })),
        ]
    }

    /// A conversation, as members of a JSON object.
    static func members(_ pair: PeerMap.Pair, _ edge: PeerMap.Edge) -> [JSON.Member] {
        let scheme: String? = if case .over(let scheme, _)? = edge.path { scheme } else { nil }
        return [
            .init("peers", .list([.text("\(pair.first)"), .text("\(pair.second)")])),
            .init("transport", JSON(scheme)), .init("through", JSON(edge.carrier.map { "\($0)" })),
            .init("interrupted", .bool(edge.path == .interrupted)),
            .init("told_by", .list(edge.reporters.sorted().map { .text("\($0)") })),
        ]
    }
}

extension String {
    fileprivate func repeated(_ count: Int) -> String { String(repeating: self, count: count) }
}
