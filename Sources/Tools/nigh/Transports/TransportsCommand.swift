import Arguments
import JSONText
import NighLoop
import NighCore
import SessionArguments

/// `nigh transports`: shows the transports that are built in or in plugins, with their capabilities and options, and
/// whether they work here.
struct TransportsCommand: Subcommand {
    let commandName = "transports"
    let output: OutputOptions
    /// The list of transports, as for `TransportRegistry.makeAll`; nil means all.
    let transports: String?
    let plugins: PluginChoice

    static let description = Command<any Subcommand>(
        "transports", "Lists the transports, their options, and whether they work here",
        OutputOptions.options,
        Option("transport", short: "t", .transports, "only these, set up as for a session"),
        PluginChoice.options,
        examples: [
            Example("", "lists all of them"),
            Example("--transport bluetooth:adapter=hci1", "checks whether that adapter can be used"),
            Example("--plugin .build/debug/libMine.so", "checks whether a transport of your own is accepted"),
        ]
    ) { TransportsCommand(output: $0, transports: $1, plugins: $2) }

    static let kind = Results.Kind("transport", plural: "transports")
    static let refusalKind = Results.Kind("refusal", plural: "refusals")
    var kinds: [Results.Kind] { [Self.kind, Self.refusalKind] }

    /// The time in which a transport may find out that it does not work.
    private static let timeout = Moment.Span.seconds(1)

    /// A transport to check.
    private struct Subject {
        let entry: TransportRegistry.Entry
        /// The plugin that the transport comes from; nil if it is built in.
        let plugin: LoadedPlugin?
        let transport: Result<any Transport, NighError>

        /// Makes the transport without any options, which fails for some transports.
        init(_ entry: TransportRegistry.Entry, _ plugin: LoadedPlugin? = nil) {
            self.init(
                entry, plugin,
                Result { () throws(NighError) in try entry.make(TransportSpec(scheme: entry.scheme)) })
        }

        init(
            _ entry: TransportRegistry.Entry, _ plugin: LoadedPlugin?,
            _ transport: Result<any Transport, NighError>
        ) {
            self.entry = entry
            self.plugin = plugin
            self.transport = transport
        }
    }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let (subjects, refusals) = try subjects()
        let runners = subjects.map { subject in
            subject.transport.flatMap { transport in
                Result { () throws(NighError) in try TransportRunner(of: transport) }
            }
        }
        var works = 0
        for (subject, runner) in zip(subjects, runners) {
            let condition: TransportCondition
            switch runner {
            case .success(let runner):
                condition = await runner.condition(within: Self.timeout)
                await runner.end()
            case .failure(let error): condition = .down(error)
            }
            if condition == .up { works += 1 }
            report(subject, try? runner.get().transport.capabilities, condition, results)
        }
        for refusal in refusals { report(refusal, results) }
        results.summarize(
            [.init("works", .integer(works)), .init("exists", .integer(subjects.count))], lines: [])
        return works > 0 ? .success : .unavailable
    }

    /// Returns the transports that were asked for. Without a list, returns all that are built in or in plugins, and the
    /// plugins that were refused.
    private func subjects() throws -> ([Subject], [(path: String, error: NighError)]) {
        let catalog = try plugins.catalog()
        let standard = TransportRegistry.standard
        guard let transports else {
            var subjects = standard.entries.map { Subject($0) }
            var refusals: [(path: String, error: NighError)] = []
            for examined in catalog.examineAll(beside: standard) {
                switch examined {
                case .usable(let plugin): subjects.append(Subject(plugin.entry, plugin))
                case .refused(let path, let error): refusals.append((path, error))
                }
            }
            return (subjects, refusals)
        }
        do throws(NighError) {
            let specs = try TransportSpec.list(parsing: transports)
            let loaded = try catalog.plugins(for: specs.map(\.scheme), beside: standard)
            var registry = standard
            for plugin in loaded { try registry.register(plugin.entry) }
            var subjects: [Subject] = []
            for spec in specs {
                // Misspelt options are a misuse, which is reported before any transport is tried.
                let transport = try registry.make(spec)
                guard let entry = registry.entries.first(where: { $0.scheme == spec.scheme }) else {
                    continue
                }
                let plugin = loaded.first { $0.scheme == spec.scheme }
                subjects.append(Subject(entry, plugin, .success(transport)))
            }
            return (subjects, [])
        } catch {
            throw UsageError("--transport: \(error)")
        }
    }

    private func report(_ refusal: (path: String, error: NighError), _ results: Results) {
        var lines = [
            Line(refusal.path, .strong), "  " + Line("refused: ", .bad) + Line("\(refusal.error.cause)"),
        ]
        if let advice = refusal.error.advice { lines.append("  what to do: " + Line(advice)) }
        results.report(
            Self.refusalKind,
            [.init("path", .text(refusal.path)), .init("error", Results.json(of: refusal.error))],
            lines: lines + [""])
    }

    private func report(
        _ subject: Subject, _ capabilities: TransportCapabilities?, _ condition: TransportCondition,
        _ results: Results
    ) {
        let entry = subject.entry
        let capabilities = capabilities ?? subject.plugin?.capabilities
        let fault: NighError? = if case .down(let error) = condition { error } else { nil }
        let options = entry.options.sorted { $0.key < $1.key }
        let verdict =
            if fault == nil {
                Line("works here", .good)
            } else if entry.needsOptions, transports == nil {
                Line("not tried without its options", .faint)
            } else {
                Line("does not work here: ", .bad) + Line("\(fault.map { "\($0.cause)" } ?? "")")
            }
        var lines = [Line(entry.scheme, .strong) + "  " + Line(entry.summary), "  " + verdict]
        if let advice = fault?.advice { lines.append("  what to do: " + Line(advice)) }
        if let plugin = subject.plugin {
            lines.append("  " + Line("version \(plugin.version) of the plugin \(plugin.path)", .faint))
        }
        if let capabilities { lines.append("  " + Line(Self.text(for: capabilities), .faint)) }
        let width = options.map(\.key.count).max() ?? 0
        for (key, meaning) in options {
            lines.append("  " + Line(key).padded(to: width) + "  " + Line(meaning))
        }
        results.report(
            Self.kind,
            [
                .init("scheme", .text(entry.scheme)), .init("summary", .text(entry.summary)),
                .init("works", .bool(fault == nil)),
                .init("error", fault.map(Results.json) ?? .null),
                .init(
                    "plugin",
                    subject.plugin.map { ["path": .text($0.path), "version": .text($0.version)] } ?? .null),
                .init("capabilities", capabilities.map(Self.json) ?? .null),
                .init("options", .object(options.map { .init($0.key, .text($0.value)) })),
            ],
            lines: lines + [""])
    }

    private static func json(of capabilities: TransportCapabilities) -> JSON {
        [
            "datagrams": .bool(capabilities.datagrams), "typical_mtu": .integer(capabilities.typicalMTU),
            "typical_latency_ms": .number(capabilities.typicalLatency.milliseconds),
            "expected_connect_ms": .number(capabilities.expectedConnectTime.milliseconds),
            "priority": .integer(capabilities.priority),
        ]
    }

    private static func text(for capabilities: TransportCapabilities) -> String {
        let pieces = [
            capabilities.datagrams ? "datagrams" : "no datagrams",
            "\(capabilities.typicalMTU) bytes per packet",
            "round trip about \(Moment.Span(capabilities.typicalLatency))",
            "connects within about \(Moment.Span(capabilities.expectedConnectTime))",
            "priority \(capabilities.priority) (the smallest is dialled first)",
        ]
        return pieces.joined(separator: ", ")
    }
}
