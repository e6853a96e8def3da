import CBenchmark
import Measuring

/// The results of a run, as Markdown for people and as JSON for programs.
struct Report {
    let results: Results
    let options: Options

    init(_ results: Results) {
        self.results = results
        options = results.options
    }

    var markdown: String {
        var lines = ["\(Machine.description), \(Machine.month); medians of \(options.rounds) rounds."]
        for work in options.works { lines += section(of: work) }
        lines += targets()
        return lines.map { $0 + "\n" }.joined()
    }

    // MARK: Tables

    private func section(of work: Work) -> [String] {
        let programs = results.programs.filter { $0.works.contains(work) }
        guard !programs.isEmpty else { return [] }
        let heading = ["", "## \(work.heading(options))"]
        if work == .files {
            let memory = work.unit.map { figures(of: work, programs.filter(\.isOurs), $0) } ?? []
            return heading + tables(of: work, programs) + ["", "Peak memory:", ""] + memory
        }
        if let unit = work.unit { return heading + [""] + figures(of: work, programs, unit) }
        return heading + tables(of: work, programs.filter { !$0.isEncrypted })
            + tables(of: work, programs.filter(\.isEncrypted))
    }

    /// Returns a table for each metric, with all ratios to the first of the programs.
    private func tables(of work: Work, _ programs: [Program]) -> [String] {
        guard let base = programs.first else { return [] }
        return work.metrics.filter { !$0.isMemory }.flatMap { metric in
            ["", work.caption(metric, base.title), ""] + ratios(of: work, metric, programs, base)
        }
    }

    private func figures(of work: Work, _ programs: [Program], _ unit: Work.Unit) -> [String] {
        let column = work.columns(options)[0]
        let metrics = work.metrics.filter { $0 != .throughput }
        let rows = programs.map { program in
            [program.title]
                + metrics.map { metric in
                    cell(results.median(work, column, metric, of: program.name), unit.text)
                }
        }
        return Self.table([unit.name] + metrics.map { $0 == .median ? "" : $0.rawValue }, rows)
    }

    /// Returns the first program's figures, and how all others compare with it.
    private func ratios(of work: Work, _ metric: Metric, _ programs: [Program], _ base: Program) -> [String] {
        let columns = work.columns(options)
        var rows: [[String]] = []
        for (unit, text) in metric.units {
            let values = columns.map { column in
                cell(results.median(work, column, metric, of: base.name)) { text($0, column.size) }
            }
            rows.append(["\(base.title), \(unit)"] + values)
        }
        for program in programs.dropFirst() {
            let values = columns.map { column in
                cell(
                    results.ratio(work, column, metric, of: program.name, to: base.name)?.median, Text.ratio)
            }
            rows.append([program.title] + values)
        }
        return Self.table([""] + columns.map(work.title), rows)
    }

    private func cell(_ value: Double?, _ text: (Double) -> String) -> String { value.map(text) ?? "–" }

    private static func table(_ header: [String], _ rows: [[String]]) -> [String] {
        let rule = ["---"] + header.dropFirst().map { _ in "---:" }
        return ([header, rule] + rows).map { "| " + $0.joined(separator: " | ") + " |" }
    }

    // MARK: Targets

    struct Verdict {
        let target: Target
        let column: Work.Column
        let reached: Results.Spread
    }

    var verdicts: [Verdict] {
        options.works.flatMap { work in
            work.columns(options).flatMap { column in
                (Target.all(of: work, in: column) + aheadOfLibraries(work, column)).compactMap { target in
                    target.reached(results, column).map {
                        Verdict(target: target, column: column, reached: $0)
                    }
                }
            }
        }
    }

    /// Returns the targets to be ahead of the best library, for each work that measures messages.
    private func aheadOfLibraries(_ work: Work, _ column: Work.Column) -> [Target] {
        guard [.roundTrip, .stream, .broadcast].contains(work) else { return [] }
        let metric = work.metrics[0]
        return Target.libraries.compactMap { program, libraries in
            let known = libraries.compactMap { name in
                results.median(work, column, metric, of: name).map { (name, $0) }
            }
            let best = known.max { work.measuresCost ? $0.1 > $1.1 : $0.1 < $1.1 }
            return best.map { Target(work: work, metric: metric, program: program, base: $0.0, bound: 1) }
        }
    }

    private func targets() -> [String] {
        let rows = verdicts.map(row)
        if rows.isEmpty { return [] }
        return ["", "## Targets", ""]
            + Self.table(["", "to", "bound", "reached", "spread", ""], rows)
    }

    private func row(_ verdict: Verdict) -> [String] {
        let (target, reached) = (verdict.target, verdict.reached)
        let unit = target.base == nil ? target.work.unit : nil
        func text(_ value: Double) -> String {
            unit.map { "\($0.text(value)) \($0.symbol)" } ?? Text.ratio(value)
        }
        let part = target.metric.isMemory ? target.metric.rawValue : target.work.title(of: verdict.column)
        let what = part.isEmpty ? target.work.rawValue : "\(target.work.rawValue) \(part)"
        return [
            "\(what), \(title(target.program))",
            target.base.map(title) ?? "",
            (target.isCeiling ? "≤ " : "≥ ") + text(target.bound),
            text(reached.median),
            "\(text(reached.least)) – \(text(reached.most))",
            target.isMet(by: reached) ? "met" : "**missed**",
        ]
    }

    private func title(_ name: String) -> String {
        results.programs.first { $0.name == name }?.title ?? name
    }
}

extension Metric {
    /// The units in which its figures are shown. Each function also gets the size of a message.
    fileprivate var units: [(name: String, text: (Double, Int) -> String)] {
        switch self {
        case .rate:
            [
                ("a second", { value, _ in Text.number(value) }),
                ("MiB a second", { value, size in Text.number(value * Double(size) / 1_048_576) }),
            ]
        case .throughput:
            [("MiB a second", { value, size in Text.number(value * Double(size) / 1_048_576) })]
        case .processor: [("ns", { value, _ in Text.number(value) })]
        default: [("µs", { value, _ in Figures.fixed(value / 1_000, decimals: 1) })]
        }
    }
}

extension Work {
    /// The unit of a work whose results are not shown as ratios.
    struct Unit {
        let name: String
        let symbol: String
        let size: Double

        func text(_ value: Double) -> String { Figures.fixed(value / size, decimals: 1) }
    }

    var unit: Unit? {
        switch self {
        case .idle: Unit(name: "KiB a peer", symbol: "KiB", size: 1_024)
        case .files: Unit(name: "MiB", symbol: "MiB", size: 1_048_576)
        case .found: Unit(name: "ms", symbol: "ms", size: 1e6)
        default: nil
        }
    }

    fileprivate func heading(_ options: Options) -> String {
        switch self {
        case .roundTrip: "Round trip"
        case .packets: "Round trip of packets, which may be lost"
        case .stream: "One-way stream"
        case .bytes: "Bytes of one stream"
        case .beside: "Round trip beside a stream at full speed"
        case .calls: "Calls, one at a time"
        case .callsAtOnce: "Calls, \(BENCHMARK_AT_ONCE) at once"
        case .broadcast: "Broadcast"
        case .connect: "Connect to first answer"
        case .idle: "Memory of an idle peer, with 1,000 peers"
        case .found:
            options.isOverBluetooth
                ? "From the start of a search to finding a peer that was there"
                : "From publishing to being found and resolved on another host"
        case .files: "A file from memory to memory"
        case .forwarded: "Bytes of one connection through a forwarded port"
        case .natsRoundTrip: "Round trip over a NATS server"
        case .natsStream: "One-way stream over a NATS server"
        }
    }

    fileprivate func caption(_ metric: Metric, _ base: String) -> String {
        switch metric {
        case .rate where self == .callsAtOnce:
            "Calls that were answered a second, ratio to \(base) (more is better):"
        case .processor where self == .callsAtOnce:
            "Processor time of both sides a call, ratio to \(base) (less is better):"
        case .rate: "Messages that arrived a second, ratio to \(base) (more is better):"
        case .throughput where self == .forwarded: "Bytes a second, ratio to \(base) (more is better):"
        case .throughput: "Bytes a second, ratio to the \(base) (more is better):"
        case .processor: "Processor time of both sides a message, ratio to \(base) (less is better):"
        default: "\(metric.rawValue), ratio to \(base) (less is better):"
        }
    }
}
