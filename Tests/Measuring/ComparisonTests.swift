import FoundationEssentials
import Testing

@testable import bench

@Suite("make bench --compare") struct ComparisonTests {
    private let column = Work.Column(size: 64, peers: 1)

    private func cell(_ work: Work, _ metric: Metric, _ program: String) -> Results.Cell {
        Results.Cell(work: work, column: column, metric: metric, program: program)
    }

    private func programs() throws -> [Program] {
        guard case .action(let options) = try Options.program.parse([]) else { return [] }
        return Program.all(options, ownIn: "")
    }

    @Test("compares ratios to the base of the work, so that a slower hour of the machine is no change")
    func slowerHour() throws {
        let (ours, base) = (cell(.roundTrip, .median, "ours"), cell(.roundTrip, .median, "libuv"))
        let before: [Results.Cell: [Double?]] = [ours: [12, 12.2, 11.9], base: [10, 10.1, 10]]
        let after: [Results.Cell: [Double?]] = [ours: [24, 24.4, 24.2], base: [20, 20.2, 20.1]]
        let rows = Comparison(before, after, programs: try programs()).rows
        let row = try #require(rows.first { $0.cell == ours })
        #expect(row.base == "libuv" && !row.differs && abs(row.ratio - 1) < 0.02)
        // The base has nothing else to be compared with.
        let figures = try #require(rows.first { $0.cell == base })
        #expect(figures.base == nil && figures.differs && !figures.isBetter)
    }

    @Test("compares encrypted programs with the encrypted base")
    func encrypted() throws {
        let (ours, base) = (cell(.stream, .rate, "ours-tls"), cell(.stream, .rate, "tls"))
        let values: [Results.Cell: [Double?]] = [
            ours: [1, 2], base: [2, 2], cell(.stream, .rate, "libuv"): [4, 4],
        ]
        let rows = Comparison(values, values, programs: try programs()).rows
        #expect(rows.first { $0.cell == ours }?.base == "tls")
    }

    @Test("compares calls with those of gRPC")
    func calls() throws {
        let values: [Results.Cell: [Double?]] = [
            cell(.calls, .median, "ours-questions"): [3], cell(.calls, .median, "grpc"): [6],
            cell(.callsAtOnce, .rate, "ours-tls-questions"): [8], cell(.callsAtOnce, .rate, "grpc-tls"): [4],
        ]
        let rows = Comparison(values, values, programs: try programs()).rows
        let one = try #require(rows.first { $0.cell.program == "ours-questions" })
        #expect(one.base == "grpc" && one.after.median == 0.5)
        let many = try #require(rows.first { $0.cell.program == "ours-tls-questions" })
        #expect(many.base == "grpc-tls" && many.after.median == 2)
    }

    @Test("calls a row different only if the rounds of the two runs do not overlap")
    func noise() throws {
        let rate = cell(.stream, .rate, "ours")
        func row(_ before: [Double?], _ after: [Double?]) throws -> Comparison.Row {
            try #require(Comparison([rate: before], [rate: after], programs: try programs()).rows.first)
        }
        #expect(try !row([90, 100, 110], [108, 120, 130]).differs)
        let faster = try row([90, 100, 110], [111, 120, 130])
        #expect(faster.differs && faster.isBetter)
        let slower = try row([90, nil, 110], [80, 89, nil])
        #expect(slower.differs && !slower.isBetter)
        // One round says nothing about noise.
        #expect(try !row([100], [200, 210]).differs)
    }

    @Test("knows of which figures less is better")
    func directions() {
        #expect(
            Metric.median.isBetterWhenLess(in: .roundTrip) && Metric.processor.isBetterWhenLess(in: .stream))
        #expect(Metric.accepting.isBetterWhenLess(in: .idle) && Metric.sending.isBetterWhenLess(in: .files))
        #expect(Metric.median.isBetterWhenLess(in: .calls) && !Metric.rate.isBetterWhenLess(in: .callsAtOnce))
        #expect(!Metric.rate.isBetterWhenLess(in: .stream) && !Metric.throughput.isBetterWhenLess(in: .files))
    }

    @Test("reads what a run writes, and counts the rows that only one run has")
    func file() throws {
        guard case .action(let options) = try Options.program.parse(["--only", "connect", "--peers", "ours"])
        else { return }
        let ours = try programs().filter { $0.name == "ours" }
        var results = Results(programs: ours, options: options)
        for value in [1_000.0, 1_100] {
            results.add(
                [.median: value],
                of: Turn(
                    program: ours[0], work: .connect, column: Work.Column(size: 16, peers: 1),
                    options: options))
        }
        let earlier = try EarlierResults.read(Data(Report(results).json.utf8), of: "before.json")
        #expect(earlier.values.mapValues { $0.count } == results.values.mapValues { $0.count })
        var later = results.values
        later[cell(.stream, .rate, "ours")] = [5]
        let comparison = Comparison(earlier.values, later, programs: ours)
        #expect(comparison.rows.count == 1 && comparison.unmatched == 1)
        let text = comparison.markdown(with: earlier, named: "before.json")
        #expect(text.contains("| connect p50, ours |  | 1.1 µs | 1.1 µs | 1.00 |  |"))
        #expect(text.contains("0 of 1 rows differ by more than the noise of the runs: 0 better, 0 worse."))
    }

    @Test("says in a sentence that a file is no result")
    func unreadable() {
        #expect(throws: UnreadableResults.self) { try EarlierResults.read("/nonexistent/results.json") }
        #expect(throws: UnreadableResults.self) { try EarlierResults.read(Data("{}".utf8), of: "a.json") }
    }
}
