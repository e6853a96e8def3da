/// All measured values, round by round.
struct Results {
    struct Cell: Hashable {
        let work: Work
        let column: Work.Column
        let metric: Metric
        var program: String
    }

    /// The median and the bounds of all rounds together.
    struct Spread {
        let median: Double
        let least: Double
        let most: Double
        /// The number of rounds.
        let count: Int

        init?(_ values: [Double]) {
            let sorted = values.sorted()
            guard let first = sorted.first, let last = sorted.last else { return nil }
            median = Self.median(sorted)
            (least, most) = (first, last)
            count = sorted.count
        }

        static func median(_ sorted: [Double]) -> Double {
            (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
        }
    }

    let programs: [Program]
    let options: Options
    var hasFailures = false
    /// The values of each round; nil in rounds without a result.
    private(set) var values: [Cell: [Double?]] = [:]

    init(programs: [Program], options: Options) {
        self.programs = programs
        self.options = options
    }

    mutating func add(_ measured: [Metric: Double], of turn: Turn) {
        for metric in turn.work.metrics {
            let cell = Cell(
                work: turn.work, column: turn.column, metric: metric, program: turn.program.name)
            values[cell, default: []].append(measured[metric])
        }
    }

    func spread(_ work: Work, _ column: Work.Column, _ metric: Metric, of program: String) -> Spread? {
        let cell = Cell(work: work, column: column, metric: metric, program: program)
        return Spread((values[cell] ?? []).compactMap { $0 })
    }

    func median(_ work: Work, _ column: Work.Column, _ metric: Metric, of program: String) -> Double? {
        spread(work, column, metric, of: program)?.median
    }

    /// Returns how `program` compares with `base`, separately for each round: whatever else the machine did then
    /// affected both.
    func ratio(
        _ work: Work, _ column: Work.Column, _ metric: Metric, of program: String, to base: String
    ) -> Spread? {
        let own = values[Cell(work: work, column: column, metric: metric, program: program)] ?? []
        let other = values[Cell(work: work, column: column, metric: metric, program: base)] ?? []
        return Self.ratio(own, to: other)
    }

    /// Returns the ratios of the rounds in which both have a value.
    static func ratio(_ own: [Double?], to other: [Double?]) -> Spread? {
        Spread(
            zip(own, other).compactMap { own, other in
                guard let own, let other, other > 0 else { return nil }
                return own / other
            })
    }
}
