import Testing

@testable import nigh

/// Tests how a firewall's rules are understood.
@Suite(.callsPrograms) struct FirewallTests {
    private func rules(_ lines: String..., policy: String = "accept", hook: String = "input") -> FirewallRules
    {
        FirewallRules(
            """
            table inet lab {
            \tcounter marked {
            \t\tpackets 0 bytes 0
            \t}

            \tchain in {
            \t\ttype filter hook \(hook) priority filter; policy \(policy);
            \t\t\(lines.joined(separator: "\n\t\t"))
            \t}
            }
            """)
    }

    @Test func `A rule that names the port decides, by number, in a set and in a range`() {
        for rule in ["tcp dport 4000 drop", "tcp dport { 22, 4000 } drop", "tcp dport 3990-4010 reject"] {
            #expect(rules(rule).outcome(of: "tcp", port: 4_000) == .blocked(rule))
            #expect(rules(rule).outcome(of: "tcp", port: 4_011) == .allowedByDefault)
            #expect(rules(rule).outcome(of: "udp", port: 4_000) == .allowedByDefault)
        }
        let open = "tcp dport 4000 accept"
        #expect(rules(open, "tcp dport 4000 drop").outcome(of: "tcp", port: 4_000) == .allowed(open))
        #expect(rules("tcp dport 4000 counter").outcome(of: "tcp", port: 4_000) == .allowedByDefault)
    }

    @Test func `A rule for a whole protocol decides for each of its ports`() {
        for rule in ["meta l4proto udp drop", "ip protocol udp drop"] {
            #expect(rules(rule).outcome(of: "udp", port: 4_000) == .blocked(rule))
            #expect(rules(rule).outcome(of: "tcp", port: 4_000) == .allowedByDefault)
            #expect(Firewall.blocked(by: rules(rule), port: 4_000)?.verdict == .warn)
        }
        let named = "meta l4proto udp udp dport 4000 drop"
        #expect(rules(named).outcome(of: "udp", port: 4_000) == .blocked(named))
        #expect(rules(named).outcome(of: "udp", port: 4_001) == .allowedByDefault)
        let someone = "ip protocol udp ip saddr 10.0.0.5 drop"
        #expect(rules(someone).outcome(of: "udp", port: 4_000) == .allowedByDefault)
        let exception = rules("udp dport 4000 accept", "meta l4proto udp drop")
        #expect(Firewall.blocked(by: exception, port: 4_000) == nil)
        #expect(Firewall.blocked(by: rules(policy: "drop"), port: 4_000) == nil)
    }

    @Test func `A chain that drops by default blocks every port that no rule names`() {
        let closed = rules("tcp dport 22 accept", policy: "drop")
        #expect(closed.outcome(of: "tcp", port: 4_000) == .blockedByDefault)
        #expect(closed.outcome(of: "tcp", port: 22) == .allowed("tcp dport 22 accept"))
    }

    @Test func `Chains that do not filter input, and an empty ruleset, do not block`() {
        #expect(rules("tcp dport 4000 drop", hook: "output").outcome(of: "tcp", port: 4_000) == .unfiltered)
        #expect(FirewallRules("").outcome(of: "tcp", port: 4_000) == .unfiltered)
    }

    @Test func `If the rules cannot be read, the finding says so, and names the program that manages them`() {
        let nothing = Firewall.finding(nil, port: 4_000, signs: [])
        #expect(nothing.verdict == .pass && nothing.finding.contains("nft list ruleset"))
        let managed = Firewall.finding(nil, port: 4_000, signs: ["ufw is enabled"])
        #expect(managed.verdict == .warn)
        #expect(managed.advice == "`sudo ufw allow 4000/tcp` and `sudo ufw allow 5353/udp`")
    }
}

/// Tests the check of a Wi-Fi that keeps its devices apart.
@Suite struct WebCheckTests {
    private func finding(_ neighbours: [[String]], on interface: String = "wlan0") -> String? {
        let rows = neighbours.map { [$0[0], "0x1", $0[1], "00:11:22:33:44:55", "*", interface] }
        let routes = [[interface, "00000000", "0101A8C0", "0003"]]
        return WebCheck.isolation(neighbours: rows, routes: routes) { $0 == "wlan0" }?.finding
    }

    @Test func `It says how many others are seen, and warns of nobody but the router, except on a wire`() {
        let router = ["192.168.1.1", "0x2"]
        #expect(finding([])?.contains("client isolation") == true)
        #expect(finding([router, ["192.168.1.9", "0x0"]])?.contains("client isolation") == true)
        #expect(finding([router, ["192.168.1.7", "0x2"]]) == "1 seen on wlan0")
        #expect(finding([], on: "eth0") == nil)
    }
}
