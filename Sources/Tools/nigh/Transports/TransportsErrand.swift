import Arguments
import JSONText
import Nigh
import NighCore
import SessionArguments

/// `nigh transports`: what is built in, what it offers and takes, and whether it works here.
struct TransportsErrand: Errand {
    let command = "transports"
    let output: OutputOptions
    /// As `TransportRegistry.makeAll` reads it; nil for all.
    let transports: String?

    static let description = Command<any Errand>(
        "transports", "Shows which transports there are, their options, and whether they work here",
        OutputOptions.options,
        Option("transport", short: "t", .transports, "only these, set up as they would be for a session"),
        examples: [
            Example("", "all of them"),
            Example("--transport bluetooth:adapter=hci1", "whether that adapter can be used"),
        ]
    ) { TransportsErrand(output: $0, transports: $1) }

    static let kind = Results.Kind("transport", plural: "transports")
    var kinds: [Results.Kind] { [Self.kind] }

    /// For how long a transport may find out that it does not work.
    private static let patience = Moment.Span.seconds(1)

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        let registry = TransportRegistry.standard
        let list = transports ?? registry.entries.map(\.scheme).joined(separator: ",")
        let made = try registry.makeAll(forOption: list)
        var works = 0
        let trials = try made.map { try TransportTrial(of: $0) }
        for (transport, trial) in zip(made, trials) {
            let condition = await trial.condition(within: Self.patience)
            await trial.end()
            guard let entry = registry.entries.first(where: { $0.scheme == transport.scheme }) else {
                continue
            }
            if condition == .up { works += 1 }
            tell(entry, transport.capabilities, condition, results)
        }
        results.sumUp(
            [.init("works", .integer(works)), .init("exists", .integer(made.count))], words: [])
        return works > 0 ? .well : .unavailable
    }

    private func tell(
        _ entry: TransportRegistry.Entry, _ capabilities: TransportCapabilities,
        _ condition: TransportCondition,
        _ results: Results
    ) {
        let fault: NighError? = if case .down(let error) = condition { error } else { nil }
        let options = entry.options.sorted { $0.key < $1.key }
        let verdict =
            fault.map { Line("does not work here: ", .bad) + Line("\($0.cause)") }
            ?? Line("works here", .good)
        var words = [Line(entry.scheme, .strong) + "  " + Line(entry.summary), "  " + verdict]
        if let advice = fault?.advice { words.append("  what helps: " + Line(advice)) }
        words.append("  " + Line(Self.words(for: capabilities), .faint))
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
                    "capabilities",
                    [
                        "datagrams": .bool(capabilities.datagrams),
                        "typical_mtu": .integer(capabilities.typicalMTU),
                        "typical_latency_ms": .number(capabilities.typicalLatency.milliseconds),
                        "expected_connect_ms": .number(capabilities.expectedConnectTime.milliseconds),
                        "priority": .integer(capabilities.priority),
                    ]),
                .init("options", .object(options.map { .init($0.key, .text($0.value)) })),
            ],
            words: words + [""])
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
