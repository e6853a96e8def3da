import Arguments
import JSONText
import NighLoop
import NighCore
import SessionArguments

/// `nigh doctor`: checks everything in the order in which it can break, and reports for each check whether it passed
/// and what to do. With `--peer`, it also checks the path to one peer.
struct DoctorErrand: Errand {
    let command = "doctor"
    let output: OutputOptions
    /// The list of transports for `TransportRegistry.makeAll`; nil means all that reach beyond this program.
    let transports: String?
    let plugins: PluginChoice
    /// The identity file; nil means the user's own.
    let identity: IdentityFile?
    let peer: PeerChoice?
    let service: ServiceName
    let security: SessionSecurity
    let patience: Duration

    /// The display name that its advertisements and its dials use.
    static let name = DisplayName(fitting: "nigh doctor")

    static let description = Command<any Errand>(
        "doctor", "Says what is wrong here, and what to do about it",
        text: """
            Looks at everything that has to be well before devices find each other, in the order in which it can break: your identity, \
            the event loop, the network or the Bluetooth adapter, the listener, the firewall, the announcement. Each line is a pass, a \
            warn or a fail, with the one thing to do about it. For a few seconds it listens and announces itself as a program would, \
            under a name that nobody looks for. It changes nothing.

            With --peer it goes on to one other device: is it found, at which addresses, does it answer, who is it, how fast. It calls \
            as a stranger, and the program there does not notice.
            """,
        OutputOptions.options,
        Option(
            "transport", short: "t", .transports,
            "what is looked at, set up as it would be for a session; all that reach beyond this program without it"
        ),
        PluginChoice.options,
        Option("identity", .identityFile, "the file that holds the identity; your own without it"),
        Option("peer", short: "p", .peer, "whom to go on to: a name, how a PeerID begins, or an address"),
        Option(
            "service", short: "s", .serviceName, default: SessionOptions.ownService,
            "what the peer offers, as its program has it"),
        Option(
            "security", .choice(of: SessionSecurity.self), default: .encrypted,
            "how the peer is called; none for one that was started so"),
        Option(
            "timeout", .duration(in: .milliseconds(100)...(.seconds(600))), default: .seconds(15),
            "for how long the peer is looked for"),
        examples: [
            Example("", "all that can be wrong here"),
            Example("-t tcp:port=4000,interface=wlan0", "whether that port can be had, on that network"),
            Example("--peer Puma -s fourinarow", "why the game does not see Puma"),
            Example("--peer tcp://192.168.1.7:4000", "how far one gets with that address"),
        ]
    ) { output, transports, plugins, identity, peer, service, security, timeout in
        DoctorErrand(
            output: output, transports: transports, plugins: plugins, identity: identity ?? nil, peer: peer,
            service: service,
            security: security, patience: timeout)
    }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        let made = try plugins.makeAll(transports)
        return try await interruption.cancels { try await examine(made, results) }
    }

    private func examine(_ made: [any Transport], _ results: Results) async throws -> ExitStatus {
        let findings = Findings(results)
        for finding in OwnFiles.identity(identity) { findings.tell(finding) }
        findings.tell(OwnFiles.trust())
        findings.tell(Machine.descriptors())
        findings.tell(Machine.loop())
        // Start all at once: while one transport waits for something, the others make progress.
        let examinations = try made.map {
            try TransportExamination.begin($0, isAskedFor: transports != nil)
        }
        let outcome: (works: Int, path: PeerPath?)
        do {
            outcome = try await goThrough(examinations, findings)
        } catch {
            for examination in examinations { await examination.trial.end() }
            throw error
        }
        for examination in examinations { await examination.trial.end() }
        sumUp(outcome.works, of: examinations.count, outcome.path, findings, results)
        if outcome.works == 0 { return .unavailable }
        return findings.count(.fail) == 0 ? .well : .failed
    }

    private func goThrough(_ examinations: [TransportExamination], _ findings: Findings) async throws -> (
        works: Int, path: PeerPath?
    ) {
        var working: [TransportTrial] = []
        for examination in examinations where try await examination.tell(findings) {
            working.append(examination.trial)
        }
        guard let peer else { return (working.count, nil) }
        let search = PeerExamination(
            choice: peer, service: service, security: security, patience: patience,
            trials: peer.isAddress ? examinations.map(\.trial) : working)
        let path = try await search.tell(findings)
        if let path, let warning = OwnFiles.warning(about: path) { findings.tell(warning) }
        return (working.count, path)
    }

    private func sumUp(
        _ works: Int, of count: Int, _ path: PeerPath?, _ findings: Findings, _ results: Results
    ) {
        let failed = findings.count(.fail)
        let warned = findings.count(.warn)
        let words: Line =
            if failed > 0 {
                Line("\(failed) failed", .bad) + "; begin with the first of them"
            } else if warned > 0 {
                Line("Nothing failed", .good) + Line(", \(warned) to look at if something does not work")
            } else {
                Line("All is as it should be.", .good)
            }
        results.sumUp(
            [
                .init("passed", .integer(findings.count(.pass))), .init("warned", .integer(warned)),
                .init("failed", .integer(failed)), .init("works", .integer(works)),
                .init("exists", .integer(count)), .init("path", path?.json ?? .null),
            ], words: ["", words])
    }
}

extension PeerChoice {
    fileprivate var isAddress: Bool { if case .address = self { true } else { false } }
}
