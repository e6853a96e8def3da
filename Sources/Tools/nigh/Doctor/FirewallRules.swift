/// Reads the fate of incoming packets for a port from the text of `nft list ruleset`. It understands plain rules, also
/// those for a whole protocol, and sets and ranges of ports. It does not judge rules in other chains that are reached
/// by jumps.
struct FirewallRules {
    /// The effect of the rules on packets for a port.
    enum Outcome: Equatable {
        /// No rule filters the packets.
        case unfiltered
        /// This rule lets the packets in.
        case allowed(String)
        /// This rule keeps the packets out.
        case blocked(String)
        /// No rule names the port, and packets that no rule lets in are dropped.
        case blockedByDefault
        /// No rule names the port, and packets that no rule keeps out come in.
        case allowedByDefault
    }

    /// The rules of each chain at the hook `input`, and whether the chain drops all other packets.
    private var chains: [(rules: [String], drops: Bool)] = []

    init(_ ruleset: String) {
        var current: (rules: [String], drops: Bool)?
        var isInput = false
        for line in ruleset.split(separator: "\n") {
            let words = line.split { $0 == " " || $0 == "\t" }.joined(separator: " ")
            if words.hasPrefix("chain ") {
                current = ([], false)
                isInput = false
            } else if words == "}" {
                if let current, isInput { chains.append(current) }
                current = nil
            } else if words.hasPrefix("type ") {
                isInput = words.hasPrefix("type filter hook input ")
                current?.drops = words.contains("policy drop")
            } else {
                current?.rules.append(words)
            }
        }
    }

    /// Returns the effect on packets of `protocolName`, `tcp` or `udp`, for `port`.
    func outcome(of protocolName: String, port: UInt16) -> Outcome {
        guard !chains.isEmpty else { return .unfiltered }
        var allowing: String?
        for chain in chains {
            let naming = chain.rules.first {
                Self.names($0, protocolName, port) && Self.verdict(of: $0) != nil
            }
            guard let naming else {
                if chain.drops { return .blockedByDefault }
                continue
            }
            guard Self.verdict(of: naming) == true else { return .blocked(naming) }
            allowing = naming
        }
        return allowing.map(Outcome.allowed) ?? .allowedByDefault
    }

    private static let verdicts: Set<Substring> = ["accept", "drop", "reject"]

    /// Returns true if the rule lets packets in, false if it keeps them out, and nil if it does neither.
    private static func verdict(of rule: String) -> Bool? {
        let words = rule.split(separator: " ")
        if words.contains("drop") || words.contains("reject") { return false }
        return words.contains("accept") ? true : nil
    }

    /// Returns whether a rule names the port, or the protocol as a whole.
    private static func names(_ rule: String, _ protocolName: String, _ port: UInt16) -> Bool {
        for mark in ["meta l4proto \(protocolName) ", "ip protocol \(protocolName) "]
        where rule.hasPrefix(mark) {
            let rest = rule.dropFirst(mark.count).split(separator: " ")
            if rest.first.map({ verdicts.contains($0) || $0 == "counter" }) ?? false { return true }
        }
        let mark = "\(protocolName) dport "
        guard let place = rule.firstRange(of: mark) else { return false }
        let rest = rule[place.upperBound...]
        let ports = rest.hasPrefix("{") ? rest.dropFirst().prefix { $0 != "}" } : rest.prefix { $0 != " " }
        return ports.split { $0 == "," || $0 == " " }.contains { entry in
            let ends = entry.split(separator: "-").compactMap { UInt16($0) }
            guard let first = ends.first, let last = ends.last else { return false }
            return first <= last && (first...last).contains(port)
        }
    }
}
