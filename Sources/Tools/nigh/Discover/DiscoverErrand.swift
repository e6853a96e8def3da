import Arguments
import JSONText
import NighLoop
import NighCore

/// `nigh discover`: shows the peers nearby, live or once.
struct DiscoverErrand: Errand {
    let command = "discover"
    let output: OutputOptions
    var session: SessionOptions
    /// Whether the command reports only the peers that are seen at the end, instead of every change.
    let isOnce: Bool
    /// How long the command looks for peers. Nil means until it is interrupted or, with `isOnce`, `defaultTimeout`.
    let patience: Duration?

    private static let defaultTimeout = Duration.seconds(3)

    static let description = Command<any Errand>(
        "discover", "Shows the peers that offer a service, as they come and go",
        text: """
            Nothing is advertised, and no peer is called but at an address that a transport is given, such as `tcp:host=`: all \
            others do not notice. SERVICE is the one that programs agree on, such as fourinarow; without it, other `nigh` programs are \
            looked for. Whether a peer's key is known is what its PeerID says; that it really has that key is proven when a link is made.
            """,
        OutputOptions.options, SessionOptions.options,
        Option(flag: "once", short: "1", "shows who was found after the time given, and ends"),
        Option(
            "timeout", .duration(),
            "ends after so long, as in 10s; with --once 3s without it, else it goes on until Ctrl-C"),
        Operand(optional: "SERVICE", .serviceName, "what they offer; the same as --service"),
        examples: [
            Example("", "who runs nigh host, receive or chat near here"),
            Example("fourinarow", "who plays Four in a Row"),
            Example("fourinarow --once --json", "the same for a script"),
        ]
    ) { output, session, isOnce, patience, service in
        var session = session
        if let service { session.service = service }
        return DiscoverErrand(output: output, session: session, isOnce: isOnce, patience: patience)
    }

    static let eventKind = Results.Kind("event", plural: "events")

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        var options = session
        options.identity = options.identity ?? .anybody
        let mine = try CommandSession(options, role: .client, results: results)
        let watch = DiscoveryWatch(mine, results, tellsChanges: !isOnce)
        let outcome = await watch.run(
            for: patience ?? (isOnce ? Self.defaultTimeout : nil), interruption)
        await mine.close()
        let peers = outcome.peers
        if !outcome.hasSeenAnybody, let fault = outcome.fault { throw fault }
        if !outcome.hasSeenAnybody {
            results.remark(
                "nobody who offers \(options.service) was seen; `nigh doctor` tells whether something is wrong here"
            )
        }
        var words: [Line] = []
        if isOnce, !peers.isEmpty { words = outcome.table }
        if !isOnce, outcome.hasSeenAnybody { words = [Line("\(peers.count) at the end", .faint)] }
        results.sumUp(
            [
                .init("service", .text(options.service.description)),
                .init(
                    "peers",
                    .list(
                        peers.map {
                            .object(PeerTelling.members(of: $0.peer) + [.init("seen_s", .integer($0.age))])
                        })),
            ], words: words)
        return peers.isEmpty && (isOnce || !outcome.hasSeenAnybody) ? .failed : .well
    }
}
