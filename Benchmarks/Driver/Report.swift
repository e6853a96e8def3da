import CBenchmark
import Glibc

/// What a run has shown, as Markdown for people and as JSON for programs.
struct Report {
    private let results: Results
    private let options: Options

    init(_ results: Results) {
        self.results = results
        options = results.options
    }

    // MARK: Markdown

    var markdown: String {
        var lines = ["\(Machine.description), \(Machine.month); medians of \(options.rounds) rounds."]
        for work in options.works { lines += tables(of: work) }
        lines += targets()
        return lines.map { $0 + "\n" }.joined()
    }

    private func tables(of work: Work) -> [String] {
        let columns = work.columns(options)
        let programs = results.programs.filter { $0.does(work) }
        if work == .idle {
            return ["", "## \(work.heading)", ""]
                + Self.table(
                    ["KiB a peer"] + work.metrics.map(\.rawValue),
                    programs.map { program in
                        [program.title]
                            + work.metrics.map { metric in
                                cell(results.median(work, columns[0], metric, of: program.name)) {
                                    Text.fixed($0 / 1_024, 1)
                                }
                            }
                    })
        }
        return ["", "## \(work.heading)"]
            + work.metrics.flatMap { metric in
                ["", work.caption(metric, base.title), ""]
                    + Self.table(
                        [""] + columns.map(work.title),
                        absolutes(work, metric, columns)
                            + programs.filter { $0.name != base.name }.map { program in
                                [program.title] + columns.map { relative(work, $0, metric, program) }
                            })
            }
    }

    /// What the tables compare with: the first of those measured.
    private var base: Program { results.programs[0] }

    /// The row that all others are ratios of.
    private func absolutes(_ work: Work, _ metric: Metric, _ columns: [Work.Column]) -> [[String]] {
        func row(_ unit: String, _ text: (Double, Work.Column) -> String) -> [String] {
            ["\(base.title), \(unit)"]
                + columns.map { column in
                    cell(results.median(work, column, metric, of: base.name)) { text($0, column) }
                }
        }
        switch metric {
        case .rate:
            return [
                row("a second") { value, _ in Text.number(value) },
                row("MiB a second") { value, column in Text.number(value * Double(column.size) / 1_048_576) },
            ]
        case .processor: return [row("ns") { value, _ in Text.number(value) }]
        default: return [row("µs") { value, _ in Text.fixed(value / 1_000, 1) }]
        }
    }

    private func relative(_ work: Work, _ column: Work.Column, _ metric: Metric, _ program: Program) -> String
    {
        let ratio = results.ratio(work, column, metric, of: program.name, to: base.name)
        return cell(ratio?.median, Text.ratio)
    }

    private func cell(_ value: Double?, _ text: (Double) -> String) -> String { value.map(text) ?? "–" }

    private static func table(_ header: [String], _ rows: [[String]]) -> [String] {
        let rule = ["---"] + header.dropFirst().map { _ in "---:" }
        return ([header, rule] + rows).map { "| " + $0.joined(separator: " | ") + " |" }
    }

    // MARK: Targets

    private struct Verdict {
        let target: Target
        let column: Work.Column
        let reached: Results.Ratio
    }

    private var verdicts: [Verdict] {
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

    /// Ahead of the best of them, wherever messages are what is measured.
    private func aheadOfLibraries(_ work: Work, _ column: Work.Column) -> [Target] {
        guard [.roundTrip, .stream, .broadcast].contains(work) else { return [] }
        let metric = work.metrics[0]
        let known = Target.libraries.compactMap { name in
            results.median(work, column, metric, of: name).map { (name, $0) }
        }
        let best = known.max { work.measuresCost ? $0.1 > $1.1 : $0.1 < $1.1 }
        return best.map { [Target(work: work, metric: metric, program: "ours", base: $0.0, bound: 1)] } ?? []
    }

    private func targets() -> [String] {
        let rows = verdicts.map(row)
        if rows.isEmpty { return [] }
        return ["", "## Targets", ""] + Self.table(["", "to", "bound", "reached", "spread", ""], rows)
    }

    private func row(_ verdict: Verdict) -> [String] {
        let (target, reached) = (verdict.target, verdict.reached)
        let isAbsolute = target.base == nil
        func text(_ value: Double) -> String {
            isAbsolute ? "\(Text.fixed(value / 1_024, 1)) KiB" : Text.ratio(value)
        }
        let what = isAbsolute ? target.metric.rawValue : target.work.title(of: verdict.column)
        return [
            "\(target.work.rawValue) \(what), \(title(target.program))",
            target.base.map(title) ?? "",
            (target.work.measuresCost ? "≤ " : "≥ ") + text(target.bound),
            text(reached.median),
            "\(text(reached.least)) – \(text(reached.most))",
            target.isMet(by: reached) ? "met" : "**missed**",
        ]
    }

    private func title(_ name: String) -> String {
        results.programs.first { $0.name == name }?.title ?? name
    }

    // MARK: JSON

    /// Names here are plain ASCII, but for the machine's, which is cleaned.
    var json: String {
        let cells = results.values.sorted { Self.order($0.key).lexicographicallyPrecedes(Self.order($1.key)) }
        let lines = cells.map { cell, values in
            var fields = [
                "\"work\": \"\(cell.work.rawValue)\"", "\"program\": \"\(cell.program)\"",
                "\"size\": \(cell.column.size)", "\"peers\": \(cell.column.peers)",
                "\"metric\": \"\(cell.metric.rawValue)\"",
                "\"values\": [\(values.map { $0.map { "\($0)" } ?? "null" }.joined(separator: ", "))]",
            ]
            for base in [Program.limit, Program.base] where base != cell.program {
                let ratio = results.ratio(cell.work, cell.column, cell.metric, of: cell.program, to: base)
                if let ratio { fields.append("\"to \(base)\": \(ratio.median)") }
            }
            return "    {\(fields.joined(separator: ", "))}"
        }
        let judged = verdicts.map { verdict in
            let target = verdict.target
            return "    {\"work\": \"\(target.work.rawValue)\", \"size\": \(verdict.column.size), "
                + "\"peers\": \(verdict.column.peers), \"metric\": \"\(target.metric.rawValue)\", "
                + "\"program\": \"\(target.program)\", \"to\": \(target.base.map { "\"\($0)\"" } ?? "null"), "
                + "\"bound\": \(target.bound), \"reached\": \(verdict.reached.median), "
                + "\"isMet\": \(target.isMet(by: verdict.reached))}"
        }
        return """
            {
              "machine": "\(Machine.description.filter { $0.isASCII && $0 != "\"" && $0 != "\\" })",
              "month": "\(Machine.month)",
              "rounds": \(options.rounds),
              "seconds": \(options.seconds),
              "results": [
            \(lines.joined(separator: ",\n"))
              ],
              "targets": [
            \(judged.joined(separator: ",\n"))
              ]
            }

            """
    }

    private static func order(_ cell: Results.Cell) -> [String] {
        let number = "\(1 << 40 + cell.column.peers << 25 + cell.column.size)"
        return [cell.work.rawValue, cell.metric.rawValue, number, cell.program]
    }
}

extension Work {
    fileprivate var heading: String {
        switch self {
        case .roundTrip: "Round trip"
        case .stream: "One-way stream"
        case .broadcast: "Broadcast"
        case .connect: "Connect to first answer"
        case .idle: "Memory of an idle peer, of 1,000"
        }
    }

    fileprivate func caption(_ metric: Metric, _ base: String) -> String {
        switch metric {
        case .rate: "Messages that arrived a second, ratio to \(base) (more is better):"
        case .processor: "Processor time of both sides a message, ratio to \(base) (less is better):"
        default: "\(metric.rawValue), ratio to \(base) (less is better):"
        }
    }
}

/// Where and when this was measured.
enum Machine {
    static var description: String {
        let model = field("model name", in: "/proc/cpuinfo", separator: ":") ?? "unknown processor"
        let system = field("PRETTY_NAME", in: "/etc/os-release", separator: "=") ?? "Linux"
        return "\(benchmark_processors()) × \(model), \(system.filter { $0 != "\"" })"
    }

    static var month: String {
        var now = time(nil)
        var parts = tm()
        gmtime_r(&now, &parts)
        let names = [
            "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
            "November", "December",
        ]
        return "\(names[Int(parts.tm_mon)]) \(1_900 + parts.tm_year)"
    }

    private static func field(_ name: String, in path: String, separator: Character) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 4_096)
        while fgets(&line, Int32(line.count), file) != nil {
            let bytes = line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
            let parts = String(decoding: bytes, as: UTF8.self).split(separator: separator, maxSplits: 1)
            guard parts.count == 2, words(parts[0]) == name else { continue }
            return words(parts[1])
        }
        return nil
    }

    private static func words(_ text: Substring) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}
