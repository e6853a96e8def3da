import Arguments
import JSONText
import Measuring
import NighCore
import NighLoop

/// `nigh map`: shows which peers nearby are connected to each other, and over what.
struct MapCommand: Subcommand {
    let commandName = "map"
    let output: OutputOptions
    let session: SessionOptions
    let plan: MapPlan

    static let description = Command<any Subcommand>(
        "map", "Shows who is connected to whom nearby, and over what",
        text: """
            The command joins the mesh of the peers nearby: it calls a peer that it sees, or the one that --through names, \
            and asks everybody what their conversations run over. Their programs see it come and go. Peers that are in no mesh \
            tell nothing of others, and peers of an earlier version do not say over what they are connected.
            """,
        OutputOptions.options, MapPlan.options, SessionOptions.options,
        examples: [
            Example("", "shows who is connected to whom, until Ctrl-C"),
            Example(
                "--once --svg mesh.svg -s whiteboard",
                "draws the mesh of the programs that offer whiteboard"),
        ]
    ) { MapCommand(output: $0, session: $2, plan: $1) }

    static let change = Results.Kind("change", plural: "changes")
    var kinds: [Results.Kind] { [Self.change] }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        try plan.picture?.check()
        let commandSession = try CommandSession(
            session, role: .peer, acceptsAllInvitations: true, isMesh: true, asksForPaths: true,
            results: results)
        let watch = MapWatch(commandSession, results, plan)
        let outcome = await watch.run(stopRequest)
        await commandSession.close()
        let text = PeerMapText(map: outcome.map)
        if !outcome.hasMetAnybody, let fault = outcome.fault { throw fault }
        var picture: ReportFile?
        var failure: (any Error)?
        if !outcome.hasMetAnybody {
            for line in outcome.refusals { results.remark(line) }
            results.remark(
                "no peer of the service \(session.service) let this session in; `nigh discover \(session.service)` "
                    + "shows who is there")
        } else {
            let svg = PeerMapPicture(map: outcome.map, madeAt: WallClock.text("%Y-%m-%d %H:%M:%S UTC")).svg
            do {
                try plan.picture?.write(svg)
                picture = plan.picture
            } catch {
                failure = error
            }
        }
        results.summarize(
            [.init("service", .text(session.service.description))] + text.members
                + [.init("svg", JSON(picture?.path))]
                + (failure.map { [.init("error", Results.json(of: $0))] } ?? []),
            lines: outcome.hasMetAnybody ? text.lines : [])
        if let failure { results.remark("\(failure)") }
        return outcome.hasMetAnybody && failure == nil ? .success : .failed
    }
}

/// The settings of `nigh map` beyond its session.
struct MapPlan: Sendable {
    /// Whether the command ends once the map has not changed for a while.
    var isOnce: Bool
    /// When the command ends at the latest; nil if only Ctrl-C ends it.
    var timeout: Duration?
    /// The file for a picture of the map.
    var picture: ReportFile?

    static let options = OptionGroup(
        "Map",
        Option(flag: "once", short: "1", "ends when the map has not changed for 2s, or after --duration"),
        Option(
            "duration", short: "d", .duration(in: .milliseconds(100) ... .seconds(86_400)),
            "ends after this time; by default after 15s with --once, else at Ctrl-C"
        ).formerly("timeout"),
        Option("svg", .file(), "writes the map at the end as a picture, which any browser shows"),
        Option(flag: "force", "replaces the picture's file if it exists")
    ) { isOnce, timeout, path, force in
        if force, path == nil { throw UsageError("--force needs --svg") }
        return MapPlan(
            isOnce: isOnce, timeout: timeout ?? (isOnce ? defaultTimeout : nil),
            picture: path.map { ReportFile($0, option: "--svg", overwrites: force) })
    }

    private static let defaultTimeout = Duration.seconds(15)
}
