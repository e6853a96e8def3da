import NighCore

extension NATSConnection {
    /// A packet of the layer above has at most this many bytes; a server that takes less makes them shorter.
    private static let wantedPacket = 72 << 10
    /// How many refused subjects are named.
    private static let namedRefusals = 3

    package func diagnose() -> [Diagnosis] {
        guard let libraryVersion else {
            // Nothing else is tried before the library is loaded.
            return [
                Diagnosis(
                    "library", .fail, problem?.cause.description ?? "not loaded yet", advice: problem?.advice,
                    isPending: problem == nil)
            ]
        }
        let library = Diagnosis("library", .pass, "libnats \(libraryVersion)")
        guard let facts else { return [library, missingServer] }
        measureRoundTrip()
        return [library, server(facts), encryption(facts), permissions, payload(facts)]
    }

    private var missingServer: Diagnosis {
        guard let problem else {
            let names = options.servers.map(\.description).joined(separator: ", ")
            return Diagnosis("server", .fail, "not reached yet: \(names)", isPending: true)
        }
        let problems = problem.attempts.isEmpty ? [problem] : problem.attempts
        return Diagnosis(
            "server", .fail, problems.map(Self.finding).joined(separator: "; "),
            advice: problem.advice ?? problems.last?.advice)
    }

    private static func finding(_ error: NighError) -> String {
        (error.peer.map { "\($0): " } ?? "") + error.cause.description
    }

    private func server(_ facts: ServerFacts) -> Diagnosis {
        let time = roundTrip.map { "round trip \($0)" } ?? "round trip not measured yet"
        let finding = "\(facts.server), version \(facts.version), \(time)"
        guard Self.hasKnownHoles(facts.version) else {
            return Diagnosis("server", .pass, finding, isPending: roundTrip == nil)
        }
        return Diagnosis(
            "server", .warn,
            "\(finding); strangers can stop this version through its ports for leaf nodes, WebSockets and monitoring",
            advice: "use a newer nats-server, or let only this network reach these ports",
            isPending: roundTrip == nil)
    }

    /// Returns whether a server of this version gets no fixes any more: 2.9, as in Debian 12, or older.
    static func hasKnownHoles(_ version: String) -> Bool {
        let numbers = version.split(separator: ".").prefix(2).map { Int($0) ?? 0 }
        guard numbers.count == 2 else { return false }
        return (numbers[0], numbers[1]) < (2, 10)
    }

    private func encryption(_ facts: ServerFacts) -> Diagnosis {
        if facts.isEncrypted {
            return Diagnosis("tls", .pass, "encrypted, with a certificate for \(facts.server.expectedName)")
        }
        if facts.server.isOfThisMachine {
            return Diagnosis("tls", .pass, "not encrypted, and not needed: the server is on this machine")
        }
        return Diagnosis(
            "tls", .warn,
            "not encrypted: what peers send is encrypted from end to end anyway, but others on the way see who "
                + "talks to whom" + (options.credentials == nil ? "" : ", and the credentials"),
            advice: "give the server a certificate, and write tls:// instead of nats://")
    }

    private var permissions: Diagnosis {
        guard !refusals.isEmpty else {
            return Diagnosis("permitted", .pass, "the server has refused nothing")
        }
        let named = refusals.prefix(Self.namedRefusals).map(\.what).joined(separator: ", ")
        let more = refusals.count - Self.namedRefusals
        return Diagnosis(
            "permitted", .fail,
            "the server does not let this user \(named)" + (more > 0 ? " and \(more) more" : ""),
            advice: NATSProblem.Refusal.advice)
    }

    private func payload(_ facts: ServerFacts) -> Diagnosis {
        let finding = "packets of up to \(facts.longestPacket) bytes"
        guard facts.longestPacket < Self.wantedPacket else { return Diagnosis("payload", .pass, finding) }
        return Diagnosis(
            "payload", .warn, finding,
            advice: "raise max_payload in the server's configuration to \(Self.wantedPacket) for full speed")
    }
}
