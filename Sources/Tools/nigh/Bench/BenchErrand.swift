import Arguments
import JSONText
import Measuring
import NighLoop
import NighCore

/// `nigh bench`: measures the throughput between two `nigh` programs, and the round trip under that load.
struct BenchErrand: Errand {
    let command = "bench"
    let output: OutputOptions
    let session: SessionOptions
    let choice: PeerChoice
    let plan: BenchPlan
    let patience: Duration

    static let description = Command<any Errand>(
        "bench", "Measures throughput to a `nigh host`, and the round trip meanwhile",
        text: """
            PEER is a name, how its PeerID begins, or an address, of somebody who runs `nigh host`. Messages of one size go \
            one way as fast as they are taken, reliably and in order, and both ends count: what counts is what has come, \
            between a mark and an end that travel with the messages.

            Up is from here to there. Pings go out meanwhile, ten a second: how much longer they take than without load is what \
            a full link does to everybody else on it. A full link has all buffers on the way full, so a slow one with large \
            buffers needs some seconds more than it was asked for.
            """,
        OutputOptions.options, SessionOptions.options, BenchErrand.planOptions, BenchErrand.reportOptions,
        Option(
            "wait", .duration(in: .milliseconds(100) ... .seconds(86_400)), default: .seconds(20),
            "for how long the peer is looked for, called again while it is not reached, and its answer waited for"
        ),
        Operand("PEER", .peer, "who is at the other end"),
        examples: [
            Example("Puma", "up, down, and both at once, five seconds each"),
            Example(
                "Puma --direction up --size 64,1k,16k,64k,1m --seconds 2",
                "how it depends on the size of messages"),
            Example(
                "tcp://192.168.1.7:4000 --min-rate 100M",
                "whether it is as fast as a Fast Ethernet; status 4 where not"),
            Example("Puma --report link.html", "with plots, as one page to keep or send on"),
        ]
    ) { output, session, plan, report, patience, choice in
        var plan = plan
        plan.report = report
        return BenchErrand(output: output, session: session, choice: choice, plan: plan, patience: patience)
    }

    private static let planOptions = OptionGroup(
        "Runs",
        Option(
            "direction", short: "d", .choice(of: BenchPlan.Directions.self), default: .each,
            "which way; each is up, then down, then both at once"),
        Option(
            "size", .list(of: .size("SIZES", in: Int(BenchLimits.smallestMessage)...(16 << 20)), atMost: 16),
            default: [16 << 10],
            "bytes of a message; several are measured one after the other, as in 64,1k,16k"),
        Option(
            "seconds", .seconds(in: .milliseconds(100) ... .seconds(590)), default: .seconds(5),
            "for how long a run is measured"),
        Option(
            "warm-up", .duration(in: .zero ... .seconds(10)), default: .seconds(1),
            "what goes before, and is not"),
        Option("min-rate", .rate(), "status 4 where any direction of any run carries less")
    ) { directions, sizes, measured, warmUp, leastRate in
        BenchPlan(
            directions: directions, sizes: sizes, measured: measured, warmUp: warmUp, leastBitRate: leastRate,
            report: nil)
    }

    private static let reportOptions = OptionGroup(
        "Report",
        Option("report", .file(), "writes a page with tables and plots, which needs nothing but a browser"),
        Option(flag: "force", "writes it even where that file is there already")
    ) { path, force in
        if force, path == nil { throw Misuse("--force is for --report") }
        return path.map { BenchPlan.Report(path: $0, overwrites: force) }
    }

    static let idle = Results.Kind("idle", plural: "idle")
    static let run = Results.Kind("run", plural: "runs")

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        try plan.report?.check()
        let mine = try CommandSession(session, role: .client, results: results)
        let client = LateClient()
        mine.start(
            onEvent: { client.value?.took($0) }, onMessage: { client.value?.take($0, $1) })
        var findings = BenchFindings(
            startedAt: WallClock.text("%Y-%m-%d %H:%M:%S UTC"), security: session.security,
            own: mine.session.configuration.name,
            ownID: mine.session.id)
        do {
            let choice = choice, patience = patience
            let peer = try await interruption.cancels {
                let peer = try await mine.connect(to: choice, for: .bench, .init(span: patience))
                await mine.onLoop { client.value = BenchClient($0, peer: peer, results: results) }
                return peer
            }
            findings.peer = peer
            guard let client = await mine.onLoop({ _ in client.value }) else { throw CancellationError() }
            (findings.limits, findings.software) = try await interruption.cancels { try await client.greet() }
            findings.idle = try await interruption.cancels { try await client.measureIdle() }
            reportStart(findings, results)
            for order in plan.orders {
                let run = try await interruption.cancels { try await client.measure(order) }
                findings.runs.append(run)
                results.tell(Self.run, run.json, words: [])
            }
        } catch {
            await mine.close()
            // The runs before the interruption are reported.
            guard interruption.isRequested, !findings.runs.isEmpty else {
                throw interruption.isRequested ? CancellationError() : error
            }
            findings.wasInterrupted = true
            return try sumUp(findings, results)
        }
        await mine.close()
        return try sumUp(findings, results)
    }

    private func reportStart(_ findings: BenchFindings, _ results: Results) {
        guard let peer = findings.peer else { return }
        let idle = findings.idle.percentileInWords(0.5) ?? "-"
        results.tell(
            Self.idle,
            [
                .init("peer", .object(PingErrand.members(of: peer))),
                .init("software", .text(findings.software)), .init("round_trip_ms", findings.idle.json),
            ],
            words: [
                Line("\(peer.name)", .strong)
                    + Line(
                        " (\(peer.id.short)) over \(peer.transport ?? "?"), \(session.security.rawValue); round trip without load \(idle)"
                    )
            ])
    }

    private func sumUp(_ findings: BenchFindings, _ results: Results) throws -> ExitStatus {
        results.live.end()
        try plan.report?.write(BenchReport(findings).page)
        var table = BenchRun.table
        for run in findings.runs { run.addRows(to: &table) }
        let missed = plan.missed(by: findings.runs)
        results.sumUp(
            [
                .init("peer", findings.peer.map { .object(PingErrand.members(of: $0)) } ?? .null),
                .init("security", .text(session.security.rawValue)),
                .init("interrupted", .bool(findings.wasInterrupted)),
                .init("report", JSON(plan.report?.path)), .init("missed", .list(missed.map(JSON.text))),
            ],
            words: table.lines + missed.map { Line("missed: ", .bad) + Line($0) })
        return missed.isEmpty ? .well : .missed
    }
}

/// Holds the client once it exists. `@unchecked Sendable`: used on the session's loop only.
private final class LateClient: @unchecked Sendable {
    var value: BenchClient?
}
