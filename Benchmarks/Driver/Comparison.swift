import Measuring

/// The differences between an earlier run and this one.
///
/// A program is compared by its ratio to the base of its work, taken within each round, because figures of one machine
/// change by a factor of two between hours. Where a run lacks the base, the figures themselves are compared.
struct Comparison {
    /// One row that both runs have.
    struct Row {
        let cell: Results.Cell
        /// The program to which both values are ratios; nil if they are the figures themselves.
        let base: String?
        let before: Results.Spread
        let after: Results.Spread

        var ratio: Double { after.median / before.median }

        /// Whether the rounds of the two runs do not overlap. If one of them had a single round, its noise is unknown.
        var differs: Bool { hasNoise && (after.least > before.most || after.most < before.least) }

        var hasNoise: Bool { before.count > 1 && after.count > 1 }

        var isBetter: Bool { cell.metric.isBetterWhenLess(in: cell.work) == (ratio < 1) }
    }

    let rows: [Row]
    /// How many rows only one of the runs has.
    let unmatched: Int

    init(_ before: [Results.Cell: [Double?]], _ after: [Results.Cell: [Double?]], programs: [Program]) {
        let isEncrypted = Set(programs.filter(\.isEncrypted).map(\.name))
        rows = after.keys.sorted { $0.order.lexicographicallyPrecedes($1.order) }.compactMap { cell in
            let base = cell.work.base(isEncrypted: isEncrypted.contains(cell.program))
            if let base, base != cell.program, !cell.metric.isMemory,
                let old = Self.ratio(of: cell, to: base, in: before),
                let new = Self.ratio(of: cell, to: base, in: after)
            {
                return Row(cell: cell, base: base, before: old, after: new)
            }
            guard let old = Results.Spread((before[cell] ?? []).compactMap { $0 }),
                let new = Results.Spread((after[cell] ?? []).compactMap { $0 }), old.median > 0
            else { return nil }
            return Row(cell: cell, base: nil, before: old, after: new)
        }
        unmatched = Set(before.keys).union(after.keys).count - rows.count
    }

    private static func ratio(
        of cell: Results.Cell, to base: String, in values: [Results.Cell: [Double?]]
    ) -> Results.Spread? {
        var other = cell
        other.program = base
        return Results.ratio(values[cell] ?? [], to: values[other] ?? [])
    }

    /// The comparison as Markdown.
    func markdown(with earlier: EarlierResults, named path: String) -> String {
        var lines = [
            "", "## Compared with \(path)", "", "\(earlier.machine), \(earlier.month).",
            "Where a row names a program after \"to\", before and after are ratios to it, which allow for other hours of the"
                + " machine. A row is \"better\" or \"worse\" if the rounds of the two runs do not overlap.",
            "", "|  | to | before | after | after / before |  |", "| --- | --- | ---: | ---: | ---: | --- |",
        ]
        for row in rows {
            let cell = row.cell
            let text = row.base == nil ? cell.work.text(cell.metric) : Text.ratio
            let place = cell.work.title(of: cell.column)
            let what = [cell.work.rawValue, place == cell.metric.rawValue ? "" : place, cell.metric.rawValue]
                .filter { !$0.isEmpty }.joined(separator: " ")
            let verdict =
                row.differs ? row.isBetter ? "better" : "**worse**" : row.hasNoise ? "" : "one round"
            lines.append(
                "| \(what), \(cell.program) | \(row.base ?? "") | \(text(row.before.median)) | \(text(row.after.median)) | "
                    + "\(Text.ratio(row.ratio)) | \(verdict) |")
        }
        let different = rows.filter(\.differs)
        lines += [
            "",
            "\(different.count) of \(rows.count) rows differ by more than the noise of the runs: "
                + "\(different.count(where: \.isBetter)) better, \(different.count { !$0.isBetter }) worse."
                + (unmatched > 0 ? " \(unmatched) rows are in one of the runs only." : ""),
        ]
        return lines.map { $0 + "\n" }.joined()
    }
}

extension Results.Cell {
    /// The key for sorting rows.
    var order: [String] {
        let number = "\(1 << 40 + column.peers << 25 + column.size)"
        return [work.rawValue, metric.rawValue, number, program]
    }
}

extension Metric {
    func isBetterWhenLess(in work: Work) -> Bool { work.measuresCost || isMemory || self == .processor }
}

extension Work {
    /// The program that others are compared with.
    fileprivate func base(isEncrypted: Bool) -> String? {
        switch self {
        case .roundTrip, .stream, .bytes, .broadcast, .connect, .beside:
            isEncrypted ? Program.encryptedBase : Program.base
        case .packets: isEncrypted ? Program.encryptedPacketBase : Program.packetBase
        case .calls, .callsAtOnce: isEncrypted ? Program.encryptedCallBase : Program.callBase
        case .natsRoundTrip, .natsStream: isEncrypted ? Program.encryptedNATSBase : Program.natsBase
        case .files: Program.fileBase
        case .forwarded: Program.forwardBase
        case .idle, .found: nil
        }
    }

    /// Formats a figure of this work.
    fileprivate func text(_ metric: Metric) -> (Double) -> String {
        if metric.isMemory { return { "\(Figures.fixed($0 / 1_024, decimals: 1)) KiB" } }
        switch metric {
        case .rate, .throughput: return { "\(Text.number($0)) a second" }
        default: return { "\(Figures.fixed($0 / 1_000, decimals: 1)) µs" }
        }
    }
}
