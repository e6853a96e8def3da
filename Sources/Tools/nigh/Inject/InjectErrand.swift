import Arguments
import Glibc
import JSONText
import NighLoop
import NighCore
import NighMemory
import ProgramLife
import SessionArguments

/// `nigh inject`: stands between two programs and makes their link worse.
struct InjectErrand: Errand {
    let command = "inject"
    let output: OutputOptions
    let faults: FaultPlan
    /// The address to which connections are passed on.
    let target: TransportAddress
    /// Where to listen, and with which options.
    let listen: TransportSpec
    let service: ServiceName
    let plugins: PluginChoice

    static let description = Command<any Errand>(
        "inject", "Stands between two programs and makes their link worse", text: help,
        OutputOptions.options,
        Operand(
            "FAULTS", .faultsOrNone, "what is done, as in delay=200ms,cut=5%; none for what is typed later"),
        Option(
            required: "to", .transportAddress,
            "whom connections are passed on to, as in tcp://192.168.1.7:4000"),
        Option(
            "listen", .listener, default: TransportSpec(scheme: "tcp"),
            "where others connect, as in tcp:port=5000; a port that is free without it"),
        Option(
            "service", short: "s", .serviceName, default: SessionOptions.ownService,
            "what it offers where listening means that, as over Bluetooth"),
        PluginChoice.options,
        examples: [
            Example(
                "delay=200ms,jitter=50ms --to tcp://192.168.1.7:4000",
                "a slow way there, on a port that it names"),
            Example(
                "rate=64kbit --to tcp://127.0.0.1:4000 --listen tcp:port=5000",
                "a thin one, on port 5000"),
            Example("cut=5% --to tcp://127.0.0.1:4000", "one that breaks every twenty seconds or so"),
            Example("none --to tcp://127.0.0.1:4000", "a good one, until somebody types stall or cut"),
        ]
    ) { output, faults, target, listen, service, plugins in
        InjectErrand(
            output: output, faults: faults, target: target, listen: listen, service: service,
            plugins: plugins)
    }

    private static let help: String = {
        let keys = FaultPlan.guide.map { "  \(padded("\($0.key)=\($0.value)", 22))\($0.meaning)" }
        let commands = RelayCommand.guide.map { "  \(padded($0.0, 24))\($0.1)" }
        return """
            It listens, passes every connection on to --to ADDRESS, and does to the bytes on their way what FAULTS says. Point one \
            program at the address that it names: over the network, or on this machine. What is encrypted stays so, and both ends still \
            prove their keys to each other. For a fault at one end of a program of nigh itself, its option --inject takes the same FAULTS.

            FAULTS are written key=value, separated by commas:

            \(keys.joined(separator: "\n"))

            A TIME is a number with us, ms, s or m. BYTES are a number, with k or m for 1024 or 1024 x 1024. A RATE is bytes a second, \
            or bits as in 64kbit or 1mbit. ODDS are 1/100, 5%, 0.1% or all. Out is towards the target.

            While it runs, these can be typed, and hold at once:

            \(commands.joined(separator: "\n"))
            """
    }()

    private static func padded(_ text: String, _ count: Int) -> String {
        text + String(repeating: " ", count: max(count - text.count, 1))
    }

    static let connectionKind = Results.Kind("connection", plural: "connections")
    static let listeningKind = Results.Kind("listening", plural: "listening")
    static let replyKind = Results.Kind("reply", plural: "replies")
    static let kinds = [listeningKind, connectionKind, replyKind]

    /// What the command has to show or to do next.
    private enum Occurrence: Sendable {
        case relay(Relay.Event)
        case typed(String)
        case interrupted
    }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        let loop = try UVEventLoop.make()
        let registry = try plugins.registry(with: [listen.scheme, target.scheme], for: "--listen and --to")
        let listener = try registry.make(withoutDiscovery(listen))
        let dialler = FaultyTransport(try registry.make(wayToTarget), plan: faults)
        // Showing an event may block, and must not block the loop. If too many events wait, the oldest are dropped.
        let (occurrences, source) = AsyncStream.makeStream(
            of: Occurrence.self, bufferingPolicy: .bufferingNewest(4_096))
        let relay = Relay(from: listener, through: dialler, to: target, on: loop) { source.yield(.relay($0)) }
        loop.execute { [service] in relay.start(service: service) }
        interruption.onRequest { source.yield(.interrupted) }
        let typing = try TypedLines()
        try typing.start { line in if let line { source.yield(.typed(line)) } }
        defer { typing.stop() }
        var ledger = RelayLedger()
        var failure: (any Error)?
        for await occurrence in occurrences {
            switch occurrence {
            case .interrupted: source.finish()
            case .typed(let line):
                if await carryOut(line, on: relay, loop, results) { source.finish() }
            case .relay(.down(let error)):
                failure = TransportsUnavailable(errors: [error])
                source.finish()
            case .relay(.trouble(let error)):
                failure = error
                source.finish()
            case .relay(let event): show(event, &ledger, results)
            }
        }
        await stop(relay, loop, &ledger, results)
        if let failure { throw failure }
        results.sumUp(ledger.members + [.init("target", .text("\(target)"))], words: ledger.words)
        return .well
    }

    private func stop(_ relay: Relay, _ loop: UVEventLoop, _ ledger: inout RelayLedger, _ results: Results)
        async
    {
        let last = await withCheckedContinuation { (done: CheckedContinuation<[Relay.Toll], Never>) in
            loop.execute {
                let tolls = relay.open.map(\.toll)
                relay.stop()
                done.resume(returning: tolls)
            }
        }
        for toll in last { ledger.count(toll) }
        loop.shutdown()
    }

    private func withoutDiscovery(_ spec: TransportSpec) -> TransportSpec {
        guard spec.scheme == "tcp", spec.options["mdns"] == nil else { return spec }
        return TransportSpec(scheme: spec.scheme, options: spec.options.merging(["mdns": "off"]) { $1 })
    }

    /// The spec for dialling the target. If both use the same transport, it has the options of `listen` except the
    /// port: for example the same interface.
    private var wayToTarget: TransportSpec {
        guard listen.scheme == target.scheme else {
            return withoutDiscovery(TransportSpec(scheme: target.scheme))
        }
        return withoutDiscovery(
            TransportSpec(scheme: listen.scheme, options: listen.options.filter { $0.key != "port" }))
    }

    // MARK: Showing events

    private func show(_ event: Relay.Event, _ ledger: inout RelayLedger, _ results: Results) {
        ledger.count(event)
        switch event {
        case .listening(let addresses):
            guard !addresses.isEmpty else { return }
            let list = addresses.map(\.description)
            results.tell(
                Self.listeningKind, [.init("addresses", .list(list.map(JSON.text)))],
                words: [Line("listens at \(list.joined(separator: ", "))")])
        case .opened(let number, let origin):
            report(
                results, number, "opened", [.init("from", JSON(origin))],
                "comes from \(origin ?? "somewhere")")
        case .connected(let number): report(results, number, "connected", [], "is passed on to \(target)")
        case .failed(let number, let error):
            report(
                results, number, "failed", [.init("error", Results.json(of: error))],
                "could not be passed on: \(error)")
        case .closed(let number, let toll, let words):
            report(
                results, number, "closed",
                [
                    .init("bytes_out", .integer(toll.bytesOut)), .init("bytes_in", .integer(toll.bytesIn)),
                    .init("lasted_ms", .number(toll.lasted.milliseconds)), .init("cause", .text(words)),
                ],
                "is over after \(toll.lasted), \(toll.bytesOut) bytes out and \(toll.bytesIn) in: \(words)")
        case .turnedAway(let origin):
            results.remark(
                "turned away \(origin ?? "somebody"): there are \(Relay.connectionLimit) connections already")
        case .down, .trouble: break
        }
    }

    private func report(
        _ results: Results, _ number: Int, _ event: String, _ members: [JSON.Member], _ words: String
    ) {
        results.tell(
            Self.connectionKind,
            [.init("connection", .integer(number)), .init("event", .text(event))] + members,
            words: [Line("connection \(number) ", .strong) + Line(words)])
    }

    // MARK: Typed commands

    /// Carries out a typed command. Returns whether the command ends the program.
    private func carryOut(
        _ line: String, on relay: Relay, _ loop: UVEventLoop, _ results: Results
    ) async -> Bool {
        let command: RelayCommand
        do throws(Misuse) {
            guard let asked = try RelayCommand.parse(line) else { return false }
            command = asked
        } catch {
            reply(["\(error)"], to: line, isWell: false, results)
            return false
        }
        if command == .quit { return true }
        let lines = await withCheckedContinuation { (done: CheckedContinuation<[String]?, Never>) in
            loop.execute { done.resume(returning: Self.carryOut(command, on: relay)) }
        }
        reply(
            lines ?? ["there is no such connection; status tells which there are"], to: line,
            isWell: lines != nil, results)
        return false
    }

    private func reply(_ lines: [String], to line: String, isWell: Bool, _ results: Results) {
        results.tell(
            Self.replyKind,
            [
                .init("command", .text(line)), .init("is_done", .bool(isWell)),
                .init("lines", .list(lines.map(JSON.text))),
            ], words: lines.map { Line($0, isWell ? .plain : .bad) })
    }

    /// Loop only. Returns nil if the command names a connection that is not there.
    private static func carryOut(_ command: RelayCommand, on relay: Relay) -> [String]? {
        let control = relay.control
        switch command {
        case .cut(let number):
            guard let target = relay.target(of: number) else { return nil }
            control.cut(target)
            return ["cut"]
        case .stall(let direction, let number):
            guard let target = relay.target(of: number) else { return nil }
            control.stall(target, direction)
            return ["stalled"]
        case .release(let number):
            guard let target = relay.target(of: number) else { return nil }
            control.release(target)
            return ["released"]
        case .block(let direction, let dials):
            control.block(.all, direction, dials: dials)
            return ["blocked"]
        case .unblock:
            control.unblock()
            return ["unblocked"]
        case .faults(let plan):
            if let plan { control.plan = plan }
            return ["faults: \(control.plan == .none ? "none" : "\(control.plan)")"]
        case .status:
            let lines = relay.open.map { connection in
                "connection \(connection.number) from \(connection.from ?? "somewhere"), \(connection.toll.lasted): "
                    + "\(connection.toll.bytesOut) bytes out and \(connection.toll.bytesIn) in"
                    + (connection.isConnected ? "" : ", not passed on yet")
            }
            return lines.isEmpty ? ["no connections"] : lines
        case .help: return RelayCommand.guide.map { "\(padded($0.0, 26))\($0.1)" }
        case .quit: return []
        }
    }
}

extension Notation where Value == FaultPlan {
    /// Faults on the command line, or `none`.
    fileprivate static var faultsOrNone: Notation {
        Notation("FAULTS") { text in text == "none" ? FaultPlan.none : try FaultPlan(parsing: text) }
    }
}

extension Notation where Value == TransportSpec {
    /// One transport with its options, on the command line.
    fileprivate static var listener: Notation {
        Notation("TRANSPORT", write: { "\($0)" }) { text in try TransportSpec(parsing: text) }
    }
}
