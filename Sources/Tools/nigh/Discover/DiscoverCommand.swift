import Arguments
import JSONText
import NighLoop
import NighCore

/// `nigh discover`: shows the peers nearby, live or once.
struct DiscoverCommand: Subcommand {
    let commandName = "discover"
    let output: OutputOptions
    var session: SessionOptions
    /// Whether the command reports only the peers that are seen at the end, instead of every change.
    let isOnce: Bool
    /// How long the command looks for peers. Nil means until it is interrupted or, with `isOnce`, `defaultTimeout`.
    let timeout: Duration?
    /// Whether the session joins the mesh of the peer that `--through` names.
    let isMesh: Bool

    private static let defaultTimeout = Duration.seconds(3)

    static let description = Command<any Subcommand>(
        "discover", "Shows the peers that offer a service, as they come and go",
        text: """
            It advertises nothing, and calls no peer except at an address that an option of a transport names, such as \
            `tcp:host=`: other peers do not notice. SERVICE is the name that programs agree on, such as fourinarow; without \
            it, the command looks for other `nigh` programs. Whether a key is known is judged by the PeerID that the peer \
            advertises; only a link proves that the peer really has that key.

            With --through it connects to that peer, and also shows the peers to which that one carries connections \
            (see --relays), and says through whom each is reached. With --mesh it joins the mesh of that peer, and shows its \
            members; those notice.
            """,
        OutputOptions.options, SessionOptions.options,
        Option(flag: "once", short: "1", "shows the peers that are seen at the end, and ends after 3s"),
        Option(
            "duration", short: "d", .duration(),
            "ends after this time, as in 10s; by default after 3s with --once, else at Ctrl-C"
        ).formerly("timeout"),
        Option(flag: "mesh", "joins the mesh of the peer that --through names, and also shows its members"),
        Operand(optional: "SERVICE", .serviceName, "the service to look for; the same as --service"),
        examples: [
            Example("", "shows the peers nearby that run nigh host, receive or chat"),
            Example("fourinarow", "shows who plays Four in a Row"),
            Example("fourinarow --once --json", "prints the same for a script"),
            Example("--through Lynx --relays everyone", "also shows whom Lynx carries connections to"),
        ]
    ) { output, session, isOnce, timeout, isMesh, service in
        var session = session
        try session.take(service)
        if isMesh, session.through == nil { throw UsageError("--mesh needs --through") }
        return DiscoverCommand(
            output: output, session: session, isOnce: isOnce, timeout: timeout, isMesh: isMesh)
    }

    static let eventKind = Results.Kind("event", plural: "events")

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        var options = session
        options.identity = options.identity ?? .delegate
        // A member of a mesh has to be reachable, or the others dial it without success.
        let commandSession = try CommandSession(
            options, role: isMesh ? .peer : .client, isMesh: isMesh, results: results)
        let watch = DiscoveryWatch(commandSession, results, reportsChanges: !isOnce)
        let outcome = await watch.run(
            for: timeout ?? (isOnce ? Self.defaultTimeout : nil), stopRequest)
        await commandSession.close()
        let peers = outcome.peers
        if !outcome.hasSeenAnybody, let fault = outcome.fault { throw fault }
        if !outcome.hasSeenAnybody {
            results.remark(
                "no peer that offers \(options.service) was seen; run `nigh doctor` to check this machine; "
                    + "`nigh help N51` says what to check on the other device")
        }
        var lines: [Line] = []
        if isOnce, !peers.isEmpty { lines = outcome.table }
        if !isOnce, outcome.hasSeenAnybody { lines = [Line("seen at the end: \(peers.count)", .faint)] }
        results.summarize(
            [
                .init("service", .text(options.service.description)),
                .init(
                    "peers",
                    .list(
                        peers.map {
                            .object($0.members + [.init("seen_s", .integer($0.age))])
                        })),
            ], lines: lines)
        return peers.isEmpty && (isOnce || !outcome.hasSeenAnybody) ? .failed : .success
    }
}
