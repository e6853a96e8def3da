import Glibc
import Measuring
import NighCore

/// A map of peers as a picture: an SVG file, which loads nothing and has no script.
///
/// The peers stand on a circle, and a line joins two that are connected. Where most conversations are alike, as in a
/// large mesh, their lines are drawn thin and pale, so that the others stand out.
struct PeerMapPicture {
    let map: PeerMap
    /// The time at which the map was made, for the reader.
    let madeAt: String

    /// The room for a name outside of the circle.
    private static let nameRoom = 170.0
    private static let headRoom = 64.0
    /// The length of the circle for each peer.
    private static let pitch = 26.0
    private static let leastRadius = 160.0
    private static let legendRow = 22.0
    /// From this number of conversations of one kind, their lines are pale.
    private static let many = 16
    /// The most pairs without a conversation that are drawn. With more of them, the rest of the picture could not be
    /// seen.
    private static let mostMissing = 200
    /// The most characters of a name.
    private static let longestName = 22
    /// The CSS classes of kinds, in the order of their frequency.
    private static let colours = ["a", "b", "c", "d", "e"]

    private var radius: Double {
        max(Self.leastRadius, Double(map.nodes.count) * Self.pitch / (2 * Double.pi))
    }
    private var centre: (x: Double, y: Double) {
        let reach = radius + Self.nameRoom
        return (reach, Self.headRoom + reach)
    }

    /// The whole file.
    var svg: String {
        let kinds = map.kinds
        let missing = map.missing
        let drawsMissing = !missing.isEmpty && missing.count <= Self.mostMissing
        let rows = kinds.count + (missing.isEmpty ? 0 : 1)
        let width = 2 * (radius + Self.nameRoom)
        let height = Self.headRoom + width + Double(rows) * Self.legendRow + 16
        let title = "Who is connected to whom"
        let markup: Markup = """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(number(width)) \(number(height))" \
            width="\(number(width))" height="\(number(height))" role="img" aria-label="\(title)">
            <title>\(title)</title>
            <style>\(Self.style)</style>
            <rect class="ground" width="100%" height="100%"/>
            <text class="head" x="24" y="32">\(title)</text>
            <text class="faint" x="24" y="54">\(PeerMapText(map: map).summary). \(madeAt)</text>
            \(edges(kinds))\(drawsMissing ? missingLines(missing) : "")\(nodes)\(legend(kinds, missing.count, drawsMissing, top: Self.headRoom + width))
            </svg>

            """
        return markup.description
    }

    // MARK: Peers

    /// Where a peer stands, and in which direction from the centre.
    private func place(_ index: Int) -> (x: Double, y: Double, angle: Double) {
        let angle = 2 * Double.pi * Double(index) / Double(max(map.nodes.count, 1)) - Double.pi / 2
        return (centre.x + radius * cos(angle), centre.y + radius * sin(angle), angle)
    }

    private var places: [PeerID: (x: Double, y: Double)] {
        var places: [PeerID: (x: Double, y: Double)] = [:]
        for (index, node) in map.nodes.enumerated() {
            let place = place(index)
            places[node.id] = (place.x, place.y)
        }
        return places
    }

    private var nodes: [Markup] {
        map.nodes.enumerated().map { index, node in
            let place = place(index)
            let degrees = place.angle * 180 / Double.pi
            // Names on the left are turned, so that none is upside down.
            let isLeft = cos(place.angle) < -1e-9
            let turned = isLeft ? degrees + 180 : degrees
            let anchor = isLeft ? "end" : "start"
            let shift = isLeft ? -12.0 : 12.0
            let cssClass = node.isOwn ? "own" : node.isFull ? "full" : "peer"
            let name =
                node.name.count > Self.longestName
                ? node.name.prefix(Self.longestName - 1) + "…" : node.name[...]
            return """
                <g transform="translate(\(number(place.x)) \(number(place.y)))" class="\(cssClass)" data-peer="\(node.id.short)">\
                <title>\(node.label)\(node.isOwn ? ", this session" : "")\(node.isFull ? ", full" : "")</title><circle r="5"/>\
                <text transform="rotate(\(number(turned)))" x="\(number(shift))" y="4" text-anchor="\(anchor)">\(name)</text></g>

                """
        }
    }

    // MARK: Conversations

    private func edges(_ kinds: [(kind: String, count: Int)]) -> [Markup] {
        let places = places
        // The most frequent kind lies at the bottom.
        return kinds.map { kind, count in
            let lines = map.edges.filter { $0.value.kind == kind }.sorted { $0.key < $1.key }.compactMap {
                line($0.key, $0.value, places)
            }
            let isPale = count >= Self.many && kind == kinds.first?.kind
            return """
                <g class="line \(cssClass(of: kind, in: kinds))\(isPale ? " pale" : "")" data-kind="\(kind)" data-count="\(count)">
                \(lines)</g>

                """
        }
    }

    private func line(
        _ pair: PeerMap.Pair, _ edge: PeerMap.Edge, _ places: [PeerID: (x: Double, y: Double)]
    ) -> Markup? {
        guard let first = places[pair.first], let second = places[pair.second] else { return nil }
        let words = PeerMapText.words(for: pair, edge, in: map)
        // A conversation that another peer carries bends towards that peer.
        let bend = edge.carrier.flatMap { places[$0] }
        let path: Markup =
            if let bend {
                """
                M\(number(first.x)) \(number(first.y)) Q\(number(bend.x)) \(number(bend.y)) \
                \(number(second.x)) \(number(second.y))
                """
            } else {
                "M\(number(first.x)) \(number(first.y)) L\(number(second.x)) \(number(second.y))"
            }
        return "<path d=\"\(path)\"><title>\(words)</title></path>\n"
    }

    private func missingLines(_ missing: [PeerMap.Pair]) -> Markup {
        let places = places
        let lines = missing.compactMap { pair -> Markup? in
            guard let first = places[pair.first], let second = places[pair.second] else { return nil }
            let words = "\(map.label(of: pair.first)) and \(map.label(of: pair.second)): not connected"
            return """
                <path d="M\(number(first.x)) \(number(first.y)) L\(number(second.x)) \(number(second.y))"><title>\(words)</title></path>

                """
        }
        return
            "<g class=\"line missing\" data-kind=\"missing\" data-count=\"\(missing.count)\">\n\(lines)</g>\n"
    }

    private func cssClass(of kind: String, in kinds: [(kind: String, count: Int)]) -> String {
        switch kind {
        case "via": return "via"
        case "interrupted": return "interrupted"
        case "unknown": return "unknown"
        default:
            let schemes = kinds.map(\.kind).filter { !["via", "interrupted", "unknown"].contains($0) }
            let place = schemes.firstIndex(of: kind) ?? 0
            return Self.colours[min(place, Self.colours.count - 1)]
        }
    }

    // MARK: The legend

    private func legend(
        _ kinds: [(kind: String, count: Int)], _ missing: Int, _ drawsMissing: Bool, top: Double
    ) -> [Markup] {
        var rows: [(cssClass: String, words: String)] = kinds.map { kind, count in
            let words = PeerMapText.words(for: kind) + (kind == "via" ? ", towards which the line bends" : "")
            return (cssClass(of: kind, in: kinds), "\(count) \(words)")
        }
        if missing > 0 {
            rows.append(
                (
                    "missing",
                    "\(missing) pairs of the mesh are not connected\(drawsMissing ? "" : " (not drawn)")"
                ))
        }
        return rows.enumerated().map { index, row in
            let height = top + Double(index) * Self.legendRow
            return """
                <g class="line \(row.cssClass)"><path d="M24 \(number(height)) L64 \(number(height))"/></g>\
                <text x="74" y="\(number(height + 4))">\(row.words)</text>

                """
        }
    }

    private func number(_ value: Double) -> String { Figures.fixed(value, decimals: 1) }

    /// The style sheet: light and dark, on a screen and on paper.
    private static let style: Markup = """
        svg { --ground: #ffffff; --ink: #1b1f24; --faint: #59636e; --own: #1a7f52; --bad: #c0392b;
            --a: #2f6fbf; --b: #c06a1f; --c: #6d4bb3; --d: #2a8a8a; --e: #8a6d3b; }
        @media (prefers-color-scheme: dark) {
            svg { --ground: #14171b; --ink: #e8ebef; --faint: #9aa4af; --own: #59c794; --bad: #ff7b6b;
                --a: #86bcff; --b: #ffb374; --c: #b79cf2; --d: #6fd0d0; --e: #d8bb86; }
        }
        .ground { fill: var(--ground); }
        text { font: 13px system-ui, sans-serif; fill: var(--ink); }
        .head { font-size: 20px; font-weight: 600; }
        .faint { fill: var(--faint); }
        circle { fill: var(--ink); stroke: var(--ground); stroke-width: 2; }
        .own circle { fill: var(--own); } .own text { fill: var(--own); font-weight: 600; }
        .full circle { fill: var(--ground); stroke: var(--ink); }
        .line path { fill: none; stroke-width: 1.6; }
        .line.pale path { stroke-width: 0.6; stroke-opacity: 0.25; }
        .line.a path { stroke: var(--a); } .line.b path { stroke: var(--b); } .line.c path { stroke: var(--c); }
        .line.d path { stroke: var(--d); } .line.e path { stroke: var(--e); }
        .line.via path { stroke: var(--own); stroke-width: 2; stroke-dasharray: 7 4; }
        .line.unknown path { stroke: var(--faint); }
        .line.interrupted path { stroke: var(--faint); stroke-width: 2; stroke-dasharray: 2 4; }
        .line.missing path { stroke: var(--bad); stroke-width: 1.4; stroke-dasharray: 2 5; }
        """
}
