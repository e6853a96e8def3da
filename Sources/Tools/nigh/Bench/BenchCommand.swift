import Arguments
import JSONText
import Measuring
import NighLoop
import NighCore

/// `nigh bench`: measures the throughput between two `nigh` programs, and the round trip under that load.
struct BenchCommand: Subcommand {
    let commandName = "bench"
    let output: OutputOptions
    let session: SessionOptions
    let choice: PeerChoice
    let plan: BenchPlan
    let timeout: Duration

    static let description = Command<any Subcommand>(
        "bench", "Measures throughput, and round trips under load",
        text: """
            PEER is a name, the beginning of a PeerID, or an address of a peer that runs `nigh host`. The sender sends messages \
            of one size as fast as its session takes them, reliably and in order. Both ends count: the result is what was \
            received between a mark and an end that travel with the messages.

            Up is from here to PEER. Meanwhile ten pings per second are sent: how much longer they take than without load shows \
            what a full link does to all other traffic on it. On a full link all buffers on the path are full, so a slow link \
            with large buffers needs some seconds more than --duration.

            With --datagrams, 50 packets of 200 bytes a second also travel beside the link, as a program's unreliable messages do. \
            A table shows their loss, order, jitter and round trips, without load and in each run, beside those of the link.
            """,
        OutputOptions.options, SessionOptions.options, BenchCommand.planOptions, BenchCommand.reportOptions,
        Option(
            "wait", .duration(in: .milliseconds(100) ... .seconds(86_400)), default: .seconds(20),
            "the time limit for finding the peer, reaching it and getting its answer"),
        Operand("PEER", .peer, "the peer that runs `nigh host`"),
        examples: [
            Example("Puma", "measures up, down, and both at once, five seconds each"),
            Example(
                "Puma --direction up --size 64,1k,16k,64k,1m --duration 2s",
                "shows how the throughput depends on the message size"),
            Example(
                "tcp://192.168.1.7:4000 --min-rate 100M",
                "checks that the link is at least as fast as Fast Ethernet; exit status 4 if not"),
            Example(
                "Puma --direction up --datagrams",
                "shows how much sooner unreliable messages arrive while the link is full"),
            Example("Puma --report link.html", "writes a report with plots, as one page to keep or send on"),
        ]
    ) { output, session, plan, report, timeout, choice in
        var plan = plan
        plan.report = report
        return BenchCommand(output: output, session: session, choice: choice, plan: plan, timeout: timeout)
    }

    private static let planOptions = OptionGroup(
        "Runs",
        Option(
            "direction", .choice(of: BenchPlan.Directions.self), default: .each,
            "the direction; each measures up, then down, then both at once"
        ).formerly("d"),
        Option(
            "size", .list(of: .size("SIZES", in: Int(BenchLimits.smallestMessage)...(16 << 20)), atMost: 16),
            default: [16 << 10],
            "the message size in bytes; several sizes are measured one after the other, as in 64,1k,16k"),
        Option(
            "duration", .duration(in: .milliseconds(100) ... .seconds(590)), default: .seconds(5),
            "how long each run is measured"
        ).formerly("seconds"),
        Option(
            "warm-up", .duration(in: .zero ... .seconds(10)), default: .seconds(1),
            "how long each run sends before it is measured"),
        Option(flag: "datagrams", "also measures packets beside the link"),
        Option("min-rate", .rate(), "exit status 4 if any direction of any run is slower")
    ) { directions, sizes, measured, warmUp, datagrams, leastRate in
        BenchPlan(
            directions: directions, sizes: sizes, measured: measured, warmUp: warmUp, leastBitRate: leastRate,
            hasPackets: datagrams, report: nil)
    }

    private static let reportOptions = OptionGroup(
        "Report",
        Option(
            "report", .file(),
            "writes a report with tables and plots, as one page that needs only a browser"),
        Option(flag: "force", "replaces the report's file if it exists")
    ) { path, force in
        if force, path == nil { throw UsageError("--force needs --report") }
        return path.map { ReportFile($0, option: "--report", overwrites: force) }
    }

    static let idle = Results.Kind("idle", plural: "idle")
    static let run = Results.Kind("run", plural: "runs")

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        try plan.report?.check()
        let commandSession = try CommandSession(session, role: .client, results: results) {
            // A lost packet counts as a ping under way for 5 s.
            $0.limits.pendingPings = 192
        }
        let client = ClientBox()
        commandSession.start(
            onEvent: { client.value?.handle($0) }, onMessage: { client.value?.receive($0, $1) })
        var findings = BenchFindings(
            startedAt: WallClock.text("%Y-%m-%d %H:%M:%S UTC"), security: session.security,
            own: commandSession.session.configuration.name,
            ownID: commandSession.session.id)
        do {
            let choice = choice, timeout = timeout
            let peer = try await stopRequest.cancelling {
                let peer = try await commandSession.connect(
                    to: choice, for: .bench, .init(timeLimit: timeout))
                await commandSession.onLoop { client.value = BenchClient($0, peer: peer, results: results) }
                return peer
            }
            findings.peer = peer
            guard let client = await commandSession.onLoop({ _ in client.value }) else {
                throw CancellationError()
            }
            (findings.limits, findings.software) = try await stopRequest.cancelling {
                try await client.sendHello()
            }
            findings.idle = try await stopRequest.cancelling { try await client.measureIdle() }
            if plan.hasPackets {
                findings.idlePackets = try await stopRequest.cancelling {
                    try await client.measureIdlePackets()
                }
            }
            reportStart(findings, results)
            for order in plan.orders {
                let run = try await stopRequest.cancelling {
                    try await client.measure(order, withPackets: plan.hasPackets)
                }
                findings.runs.append(run)
                results.report(Self.run, run.json, lines: [])
            }
        } catch {
            await commandSession.close()
            findings.wasInterrupted = stopRequest.isRequested
            // The runs before are reported.
            guard !findings.runs.isEmpty else { throw stopRequest.isRequested ? CancellationError() : error }
            return summarize(findings, results, endedBy: stopRequest.isRequested ? nil : error)
        }
        await commandSession.close()
        return summarize(findings, results)
    }

    private func reportStart(_ findings: BenchFindings, _ results: Results) {
        guard let peer = findings.peer else { return }
        let idle = findings.idle.percentileInWords(0.5) ?? "-"
        results.report(
            Self.idle,
            [
                .init("peer", .object(PingCommand.members(of: peer))),
                .init("software", .text(findings.software)), .init("round_trip_ms", findings.idle.json),
                .init("packets", findings.idlePackets?.json ?? .null),
            ],
            lines: [
                Line("\(peer.name)", .strong)
                    + Line(
                        " (\(peer.identity.short)) over \(peer.transport ?? "?"), \(session.security.rawValue); round trip without load \(idle)"
                    )
            ])
    }

    /// Reports everything, even if an error ended the measurement or the report cannot be written.
    private func summarize(
        _ findings: BenchFindings, _ results: Results, endedBy error: (any Error)? = nil
    ) -> ExitStatus {
        results.live.end()
        var errors = error.map { [$0] } ?? []
        var report = plan.report
        do { try report?.write(BenchReport(findings).page) } catch {
            errors.append(error)
            report = nil
        }
        var table = BenchRun.table
        for run in findings.runs { run.addRows(to: &table) }
        let missed = plan.missed(by: findings.runs)
        results.summarize(
            [
                .init("peer", findings.peer.map { .object(PingCommand.members(of: $0)) } ?? .null),
                .init("security", .text(session.security.rawValue)),
                .init("interrupted", .bool(findings.wasInterrupted)),
                .init("report", JSON(report?.path)), .init("missed", .list(missed.map(JSON.text))),
            ] + (errors.first.map { [.init("error", Results.json(of: $0))] } ?? []),
            lines: table.lines + packetLines(findings) + missed.map { Line("missed: ", .bad) + Line($0) })
        for error in errors { results.remark(error) }
        guard errors.isEmpty else { return .failed }
        return missed.isEmpty ? .success : .missed
    }
}

extension BenchCommand {
    /// The table about packets, if any were sent.
    private func packetLines(_ findings: BenchFindings) -> [Line] {
        guard findings.idlePackets != nil else { return [] }
        var table = PacketTrips.table
        for row in findings.packetRows(absent: "-") {
            table.add(row.enumerated().map { Line($0.element, $0.offset == 6 ? .strong : .plain) })
        }
        return ["", "Packets beside the link, and pings on it:"] + table.lines
    }
}

/// Holds the client once it exists. `@unchecked Sendable`: used on the session's loop only.
private final class ClientBox: @unchecked Sendable {
    var value: BenchClient?
}
