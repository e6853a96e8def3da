import Arguments

/// The command-line options of `nigh-bench`.
struct Options: Sendable {
    /// How long each line is measured.
    let nanoseconds: Int64
    /// The message sizes; nil measures each scenario in the sizes that suit it.
    let sizes: [Int]?
    let scenarios: [Scenario]
    let asJSON: Bool
    /// Whether to count allocations and compare them with the limits, instead of measuring time.
    let checksAllocations: Bool
    /// Which counted paths to run, instead of measuring time, for a program that counts their instructions.
    let countedPaths: CountedPath.Sides?

    static let program = Program(
        Command(
            "nigh-bench", "Measures what messages cost between sessions of one process, over memory",
            Option(
                "seconds", .seconds(in: .milliseconds(1) ... .seconds(3_600)), default: .milliseconds(500),
                "how long each line is measured, after a warm-up"),
            Option(
                "size", .list(of: .size("SIZES", in: 1...(16 << 20)), atMost: 64),
                "message sizes, such as 64,64K,1M; by default those that suit each scenario"),
            Option(
                repeated: "only", .list(of: .choice(Scenario.all.map(\.name), "NAMES"), atMost: 64),
                "the scenarios to run; by default all"),
            Option(flag: "json", "one JSON object a line instead of a table"),
            Option(
                flag: "allocations",
                "count heap allocations in the steady state, and fail if a limit is exceeded"),
            Option(
                "paths", .choice(of: CountedPath.Sides.self),
                """
                run the paths that `make counts` counts, those whose sides run apart or together, and print the operations \
                and allocations of each
                """)
        ) { span, sizes, names, asJSON, checksAllocations, countedPaths in
            let names = names.flatMap { $0 }
            return Options(
                nanoseconds: Int64(span / .nanoseconds(1)), sizes: sizes,
                scenarios: Scenario.all.filter { names.isEmpty || names.contains($0.name) },
                asJSON: asJSON, checksAllocations: checksAllocations,
                countedPaths: countedPaths)
        })
}
