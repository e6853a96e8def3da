import Arguments
import JSONText
import NighLoop
import NighCore
import NighSystem
import SessionArguments

/// `nigh doctor`: checks everything in the order in which it can break, and reports for each check whether it passed
/// and what to do. With `--peer`, it also checks the path to one peer.
struct DoctorCommand: Subcommand {
    let commandName = "doctor"
    let output: OutputOptions
    /// The list of transports for `TransportRegistry.makeAll`; nil means all that reach beyond this program.
    let transports: String?
    let plugins: PluginChoice
    /// The identity file; nil means the user's own.
    let identity: IdentityFile?
    let peer: PeerChoice?
    let service: ServiceName
    let security: SessionSecurity
    let timeout: Duration
    /// A peer that is asked why there is no direct way to `peer`; nil for none.
    let through: PeerChoice?

    /// The display name that its advertisements and its dials use.
    static let name = DisplayName(fitting: "nigh doctor")

    static let description = Command<any Subcommand>(
        "doctor", "Finds what is wrong on this machine, and says what to do",
        text: """
            Checks everything that devices need to find each other, in the order in which it can break: your identity, the \
            event loop, the network or the Bluetooth adapter, the listener, the firewall, the advertisement. Each line is a \
            pass, a warn or a fail, with the one thing to do about it. For a few seconds it listens and advertises as a \
            program would, under a name that nobody looks for. It changes nothing.

            With --peer it also checks one other device: whether it is found, at which addresses, whether it answers, which \
            peer it is, and how fast. It connects as an unknown peer, and the program there does not notice.

            If there is no direct way to that device, --through asks another one that is connected to it. The doctor then says \
            over what the two are connected, whether this machine has the same, which addresses answer, and whether the other \
            device carries a connection. For that it joins their mesh, which the programs there notice.
            """,
        OutputOptions.options,
        Option(
            "transport", short: "t", .transports,
            "the transports to check, set up as for a session; by default all that reach beyond this program"
        ),
        PluginChoice.options,
        Option("identity", .identityFile, "the identity file; by default your own"),
        Option(
            "peer", short: "p", .peer, "the peer to check: a name, the beginning of a PeerID, or an address"),
        Option(
            "service", short: "s", .serviceName, default: SessionOptions.ownService,
            "the service that the peer's program offers"),
        Option(
            "security", .choice(of: SessionSecurity.self), default: .encrypted,
            "the security of the link to the peer; none if the peer uses none"),
        Option(
            "wait", .duration(in: .milliseconds(100)...(.seconds(600))), default: .seconds(15),
            "the time limit for finding the peer"
        ).formerly("timeout"),
        Option("through", .peer, "a peer to ask if there is no direct way to the one that --peer names"),
        examples: [
            Example("", "checks this machine"),
            Example("-t tcp:port=4000,interface=wlan0", "checks whether that port is free, on that network"),
            Example("--peer Puma -s fourinarow", "finds why the game does not see Puma"),
            Example("--peer tcp://192.168.1.7:4000", "checks each step of a connection to that address"),
            Example("--peer Hare --through Lynx", "finds why Hare is reached through Lynx only"),
        ]
    ) { output, transports, plugins, identity, peer, service, security, timeout, through in
        if case .some(nil) = identity {
            throw UsageError("a temporary identity has no file to check: leave --identity ephemeral out")
        }
        if through != nil {
            guard case .named? = peer else {
                throw UsageError("--through needs --peer with a name or a PeerID")
            }
        }
        return DoctorCommand(
            output: output, transports: transports, plugins: plugins, identity: identity ?? nil, peer: peer,
            service: service,
            security: security, timeout: timeout, through: through)
    }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let made = try plugins.makeAll(transports)
        return try await stopRequest.cancelling { try await check(made, results) }
    }

    private func check(_ made: [any Transport], _ results: Results) async throws -> ExitStatus {
        let reporter = FindingReporter(results)
        for finding in OwnFiles.identity(identity) { reporter.report(finding) }
        reporter.report(OwnFiles.trust())
        reporter.report(SystemCheck.descriptors())
        reporter.report(SystemCheck.loop())
        // Start all at once: while one transport waits for something, the others make progress.
        let checks = try made.map {
            try TransportCheck.begin($0, isNamedByUser: transports != nil)
        }
        let outcome: (works: Int, path: PeerPath?)
        do {
            outcome = try await runChecks(checks, reporter)
        } catch {
            for check in checks { await check.runner.end() }
            throw error
        }
        for check in checks { await check.runner.end() }
        if outcome.path == nil, let through, let peer {
            let options = SessionOptions(
                transports: transports, plugins: plugins, service: service, name: Self.name,
                identity: .delegate,
                security: security, relays: .everyone, isVerbose: false)
            try await ThroughCheck(
                wanted: peer, through: through, options: options, schemes: made.map(\.scheme),
                timeout: timeout
            ).report(to: reporter, results)
        }
        summarize(outcome.works, of: checks.count, outcome.path, reporter, results)
        if outcome.works == 0 { return .unavailable }
        return reporter.count(.fail) == 0 ? .success : .failed
    }

    private func runChecks(_ checks: [TransportCheck], _ reporter: FindingReporter) async throws -> (
        works: Int, path: PeerPath?
    ) {
        var working: [TransportRunner] = []
        for check in checks where try await check.report(to: reporter) {
            working.append(check.runner)
        }
        guard let peer else { return (working.count, nil) }
        let search = PeerCheck(
            choice: peer, service: service, security: security, timeout: timeout,
            runners: peer.isAddress ? checks.map(\.runner) : working)
        let path = try await search.report(to: reporter)
        for check in checks { await check.reportSearch(to: reporter) }
        if let path, let warning = OwnFiles.warning(about: path) { reporter.report(warning) }
        return (working.count, path)
    }

    private func summarize(
        _ works: Int, of count: Int, _ path: PeerPath?, _ reporter: FindingReporter, _ results: Results
    ) {
        let failed = reporter.count(.fail)
        let warned = reporter.count(.warn)
        let warnings = warned == 1 ? "1 warning" : "\(warned) warnings"
        let line: Line =
            if failed > 0 {
                Line("\(failed) failed", .bad) + "; start with the first one"
            } else if warned > 0 {
                Line("Nothing failed", .good) + Line(", \(warnings) to check if something does not work")
            } else {
                Line("Every check passed.", .good)
            }
        results.summarize(
            [
                .init("passed", .integer(reporter.count(.pass))), .init("warned", .integer(warned)),
                .init("failed", .integer(failed)), .init("works", .integer(works)),
                .init("exists", .integer(count)), .init("path", path?.json ?? .null),
            ], lines: ["", line])
    }
}

extension PeerChoice {
    fileprivate var isAddress: Bool { if case .address = self { true } else { false } }
}
