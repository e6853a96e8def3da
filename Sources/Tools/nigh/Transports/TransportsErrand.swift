import Arguments
import JSONText
import NighLoop
import NighCore
import SessionArguments

/// `nigh transports`: shows the transports that are built in or in plugins, what they offer and accept, and whether
/// they work here.
struct TransportsErrand: Errand {
    let command = "transports"
    let output: OutputOptions
    /// The list of transports, as for `TransportRegistry.makeAll`; nil means all.
    let transports: String?
    let plugins: PluginChoice

    static let description = Command<any Errand>(
        "transports", "Shows which transports there are, their options, and whether they work here",
        OutputOptions.options,
        Option("transport", short: "t", .transports, "only these, set up as they would be for a session"),
        PluginChoice.options,
        examples: [
            Example("", "all of them"),
            Example("--transport bluetooth:adapter=hci1", "whether that adapter can be used"),
            Example("--plugin .build/debug/libMine.so", "whether a transport of your own is taken"),
        ]
    ) { TransportsErrand(output: $0, transports: $1, plugins: $2) }

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

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        let (subjects, refusals) = try subjects()
        let trials = subjects.map { subject in
            subject.transport.flatMap { transport in
                Result { () throws(NighError) in try TransportTrial(of: transport) }
            }
        }
        var works = 0
        for (subject, trial) in zip(subjects, trials) {
            let condition: TransportCondition
            switch trial {
            case .success(let trial):
                condition = await trial.condition(within: Self.timeout)
                await trial.end()
            case .failure(let error): condition = .down(error)
            }
            if condition == .up { works += 1 }
            report(subject, try? trial.get().transport.capabilities, condition, results)
        }
        for refusal in refusals { report(refusal, results) }
        results.sumUp(
            [.init("works", .integer(works)), .init("exists", .integer(subjects.count))], words: [])
        return works > 0 ? .well : .unavailable
    }

    /// Returns the transports that were asked for. Without a list, returns all that are built in or in plugins, and the
    /// plugins that were refused.
    private func subjects() throws -> ([Subject], [(path: String, error: NighError)]) {
        let shelf = try plugins.shelf()
        let standard = TransportRegistry.standard
        guard let transports else {
            var subjects = standard.entries.map { Subject($0) }
            var refusals: [(path: String, error: NighError)] = []
            for examined in shelf.examineAll(beside: standard) {
                switch examined {
                case .usable(let plugin): subjects.append(Subject(plugin.entry, plugin))
                case .refused(let path, let error): refusals.append((path, error))
                }
            }
            return (subjects, refusals)
        }
        do throws(NighError) {
            let specs = try TransportSpec.list(parsing: transports)
            let loaded = try shelf.plugins(for: specs.map(\.scheme), beside: standard)
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
            throw Misuse("--transport: \(error)")
        }
    }

    private func report(_ refusal: (path: String, error: NighError), _ results: Results) {
        var words = [
            Line(refusal.path, .strong), "  " + Line("not taken: ", .bad) + Line("\(refusal.error.cause)"),
        ]
        if let advice = refusal.error.advice { words.append("  what helps: " + Line(advice)) }
        results.tell(
            Self.refusalKind,
            [.init("path", .text(refusal.path)), .init("error", Results.json(of: refusal.error))],
            words: words + [""])
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
            fault.map { Line("does not work here: ", .bad) + Line("\($0.cause)") }
            ?? Line("works here", .good)
        var words = [Line(entry.scheme, .strong) + "  " + Line(entry.summary), "  " + verdict]
        if let advice = fault?.advice { words.append("  what helps: " + Line(advice)) }
        if let plugin = subject.plugin {
            words.append("  " + Line("version \(plugin.version) of the plugin \(plugin.path)", .faint))
        }
        if let capabilities { words.append("  " + Line(Self.words(for: capabilities), .faint)) }
        let width = options.map(\.key.count).max() ?? 0
        for (key, meaning) in options {
            words.append("  " + Line(key).padded(to: width) + "  " + Line(meaning))
        }
        results.tell(
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
            words: words + [""])
    }

    private static func json(of capabilities: TransportCapabilities) -> JSON {
        [
            "datagrams": .bool(capabilities.datagrams), "typical_mtu": .integer(capabilities.typicalMTU),
            "typical_latency_ms": .number(capabilities.typicalLatency.milliseconds),
            "expected_connect_ms": .number(capabilities.expectedConnectTime.milliseconds),
            "priority": .integer(capabilities.priority),
        ]
    }

    private static func words(for capabilities: TransportCapabilities) -> String {
        let pieces = [
            capabilities.datagrams ? "datagrams" : "no datagrams", "\(capabilities.typicalMTU) bytes a piece",
            "round trip about \(Moment.Span(capabilities.typicalLatency))",
            "connects within about \(Moment.Span(capabilities.expectedConnectTime))",
            "priority \(capabilities.priority) (the smallest is dialled first)",
        ]
        return pieces.joined(separator: ", ")
    }
}
