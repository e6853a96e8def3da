import Arguments
import Glibc
import JSONText
import NighLoop
import NighCore
import NighMemory
import NighTCP
import ProgramSupport
import SessionArguments

/// `nigh inject`: stands between two programs and makes their link worse.
struct InjectCommand: Subcommand {
    let commandName = "inject"
    let output: OutputOptions
    let faults: FaultPlan
    /// The address to which connections are passed on.
    let target: TransportAddress
    /// Where to listen, and with which options.
    let listen: TransportSpec
    let service: ServiceName
    let plugins: PluginChoice

    static let description = Command<any Subcommand>(
        "inject", "Relays connections, and makes them slow or faulty", text: help,
        OutputOptions.options,
        Operand(
            "FAULTS", .faultsOrNone, "the faults, as in delay=200ms,cut=5%; none to begin without faults"),
        Option(
            required: "to", .transportAddress,
            "the address to pass connections on to, as in tcp://192.168.1.7:4000"),
        Option(
            "listen", .listener, default: TransportSpec(scheme: "tcp"),
            "where to listen, as in tcp:port=5000; without a port, on a free one; for a target on this machine, on loopback"
        ),
        Option(
            "service", short: "s", .serviceName, default: SessionOptions.ownService,
            "the service to offer where listening needs one, as over Bluetooth"),
        PluginChoice.options,
        examples: [
            Example(
                "delay=200ms,jitter=50ms --to tcp://192.168.1.7:4000",
                "a slow link, on a port that it prints"),
            Example(
                "rate=64kbit --to tcp://127.0.0.1:4000 --listen tcp:port=5000",
                "a link with little bandwidth, on port 5000"),
            Example("cut=5% --to tcp://127.0.0.1:4000", "a link that breaks about every twenty seconds"),
            Example("none --to tcp://127.0.0.1:4000", "a good link, until you type stall or cut"),
        ]
    ) { output, faults, target, listen, service, plugins in
        InjectCommand(
            output: output, faults: faults, target: target, listen: listen, service: service,
            plugins: plugins)
    }

    private static let help: String = {
        let keys = FaultPlan.guide.map { "  \(padded("\($0.key)=\($0.value)", 22))\($0.meaning)" }
        let commands = RelayCommand.guide.map { "  \(padded($0.0, 24))\($0.1)" }
        return """
            It listens, passes every connection on to --to ADDRESS, and applies FAULTS to the bytes and packets on their way. Connect one \
            program to the address that it prints, over the network or on this machine. Encrypted links stay encrypted, and both ends \
            still prove their keys to each other. To inject faults at one end of a `nigh` command, give that command --inject FAULTS.

            FAULTS are written key=value, separated by commas:

            \(keys.joined(separator: "\n"))

            A TIME is a number with us, ms, s or m. BYTES are a number, with k or m for 1024 or 1024 x 1024. A RATE is in bytes per \
            second, or in bits per second as in 64kbit or 1mbit. ODDS are written as 1/100, 5%, 0.1% or all. Out is towards the target.

            While it runs, you can type these commands, which take effect at once:

            \(commands.joined(separator: "\n"))
            """
    }()

    private static func padded(_ text: String, _ count: Int) -> String {
        text + String(repeating: " ", count: max(count - text.count, 1))
    }

    static let connectionKind = Results.Kind("connection", plural: "connections")
    static let listeningKind = Results.Kind("listening", plural: "listening")
    static let replyKind = Results.Kind("reply", plural: "replies")
    var kinds: [Results.Kind] { [Self.listeningKind, Self.connectionKind, Self.replyKind] }

    /// An event that the command has to show or to act on.
    private enum Occurrence: Sendable {
        case relay(Relay.Event)
        case typed(String)
        case interrupted
    }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let loop = try UVEventLoop.make()
        let registry = try plugins.registry(with: [listen.scheme, target.scheme], for: "--listen and --to")
        let listener = try registry.make(withoutDiscovery(listeningSpec))
        let dialler = FaultyTransport(try registry.make(targetSpec), plan: faults)
        // Showing an event may block, and must not block the loop. If too many events wait, the oldest are dropped.
        let (occurrences, source) = AsyncStream.makeStream(
            of: Occurrence.self, bufferingPolicy: .bufferingNewest(4_096))
        let relay = Relay(from: listener, through: dialler, to: target, on: loop) { source.yield(.relay($0)) }
        loop.execute { [service] in relay.start(service: service) }
        stopRequest.onRequest { source.yield(.interrupted) }
        let typing = try TypedLines()
        try typing.start { line in if let line { source.yield(.typed(line)) } }
        defer { typing.stop() }
        var totals = RelayTotals()
        var failure: (any Error)?
        // A transport that has listened may listen again.
        var hasListened = false
        for await occurrence in occurrences {
            switch occurrence {
            case .interrupted: source.finish()
            case .typed(let line):
                if await carryOut(line, on: relay, loop, results) { source.finish() }
            case .relay(.down(let error)) where hasListened,
                .relay(.advertisingFailed(let error)) where hasListened:
                results.remark("\(error)")
            case .relay(.down(let error)):
                failure = TransportsUnavailable(errors: [error])
                source.finish()
            case .relay(.advertisingFailed(let error)):
                failure = error
                source.finish()
            case .relay(let event):
                if case .listening(let addresses) = event, !addresses.isEmpty { hasListened = true }
                show(event, &totals, results)
            }
        }
        await stop(relay, loop, &totals, results)
        if let failure { throw failure }
        results.summarize(totals.members + [.init("target", .text("\(target)"))], lines: totals.lines)
        return .success
    }

    private func stop(_ relay: Relay, _ loop: UVEventLoop, _ totals: inout RelayTotals, _ results: Results)
        async
    {
        let last = await withCheckedContinuation { (done: CheckedContinuation<[Relay.Traffic], Never>) in
            loop.execute {
                let traffic = relay.open.map(\.traffic)
                relay.stop()
                done.resume(returning: traffic)
            }
        }
        for traffic in last { totals.count(traffic) }
        loop.shutdown()
    }

    /// Where to listen: at an address of this machine only, for a target that nobody else reaches, unless an interface
    /// is named.
    var listeningSpec: TransportSpec {
        guard listen.scheme == "tcp", listen.options["interface"] == nil,
            TCPDestination.isOfThisMachine(target)
        else { return listen }
        return TransportSpec(
            scheme: listen.scheme, options: listen.options.merging(["interface": "lo"]) { $1 })
    }

    private func withoutDiscovery(_ spec: TransportSpec) -> TransportSpec {
        guard spec.scheme == "tcp", spec.options["mdns"] == nil else { return spec }
        return TransportSpec(scheme: spec.scheme, options: spec.options.merging(["mdns": "off"]) { $1 })
    }

    /// The spec for dialling the target. If both use the same transport, it has the options of `listen` except the
    /// port: for example the same interface.
    private var targetSpec: TransportSpec {
        guard listen.scheme == target.scheme else {
            return withoutDiscovery(TransportSpec(scheme: target.scheme))
        }
        return withoutDiscovery(
            TransportSpec(scheme: listen.scheme, options: listen.options.filter { $0.key != "port" }))
    }

    // MARK: Showing events

    private func show(_ event: Relay.Event, _ totals: inout RelayTotals, _ results: Results) {
        totals.count(event)
        switch event {
        case .listening(let addresses):
            guard !addresses.isEmpty else { return }
            let list = addresses.map(\.description)
            results.report(
                Self.listeningKind, [.init("addresses", .list(list.map(JSON.text)))],
                lines: [Line("listens at \(list.joined(separator: ", "))")])
        case .opened(let number, let origin):
            report(
                results, number, "opened", [.init("from", JSON(origin))],
                "opened from \(origin ?? "an unknown address")")
        case .connected(let number): report(results, number, "connected", [], "connected to \(target)")
        case .failed(let number, let error):
            report(
                results, number, "failed", [.init("error", Results.json(of: error))],
                "could not be connected: \(error)")
        case .closed(let number, let traffic, let reason):
            report(
                results, number, "closed",
                traffic.members + [
                    .init("lasted_ms", .number(traffic.lasted.milliseconds)), .init("cause", .text(reason)),
                ],
                "ended after \(traffic.lasted), \(traffic.bytesOut) bytes out and \(traffic.bytesIn) in"
                    + (traffic.packetText.map { ", \($0)" } ?? "") + ": \(reason)")
        case .rejected(let origin):
            results.remark(
                "refused \(origin ?? "a caller"): there are \(Relay.connectionLimit) connections already")
        case .down, .advertisingFailed: break
        }
    }

    private func report(
        _ results: Results, _ number: Int, _ event: String, _ members: [JSON.Member], _ text: String
    ) {
        results.report(
            Self.connectionKind,
            [.init("connection", .integer(number)), .init("event", .text(event))] + members,
            lines: [Line("connection \(number) ", .strong) + Line(text)])
    }

    // MARK: Typed commands

    /// Carries out a typed command. Returns whether the command ends the program.
    private func carryOut(
        _ line: String, on relay: Relay, _ loop: UVEventLoop, _ results: Results
    ) async -> Bool {
        let command: RelayCommand
        do throws(UsageError) {
            guard let parsed = try RelayCommand.parse(line) else { return false }
            command = parsed
        } catch {
            reply(["\(error)"], to: line, isDone: false, results)
            return false
        }
        if command == .quit { return true }
        let lines = await withCheckedContinuation { (done: CheckedContinuation<[String]?, Never>) in
            loop.execute { done.resume(returning: Self.carryOut(command, on: relay)) }
        }
        reply(
            lines ?? ["there is no such connection; status lists the connections"], to: line,
            isDone: lines != nil, results)
        return false
    }

    private func reply(_ lines: [String], to line: String, isDone: Bool, _ results: Results) {
        results.report(
            Self.replyKind,
            [
                .init("command", .text(line)), .init("is_done", .bool(isDone)),
                .init("lines", .list(lines.map(JSON.text))),
            ], lines: lines.map { Line($0, isDone ? .plain : .bad) })
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
                "connection \(connection.number) from \(connection.from ?? "an unknown address"), "
                    + "\(connection.traffic.lasted): "
                    + "\(connection.traffic.bytesOut) bytes out and \(connection.traffic.bytesIn) in"
                    + (connection.traffic.packetText.map { ", \($0)" } ?? "")
                    + (connection.isConnected ? "" : ", not connected yet")
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
