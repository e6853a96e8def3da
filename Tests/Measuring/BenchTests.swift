import Arguments
import FoundationEssentials
import Testing

@testable import bench

@Suite("The options of make bench, and its numbers")
struct BenchTests {
    private func options(_ arguments: String...) throws -> Options {
        guard case .action(let options) = try Options.program.parse(arguments) else {
            throw UsageError("that asks for help")
        }
        return options
    }

    @Test func `The table of options has no contradictions`() { #expect(Options.program.problems == []) }

    @Test func `Over Bluetooth the defaults for works, times and scripts differ; given options win`() throws {
        let (loopback, bluetooth) = (try options(), try options("--bluetooth"))
        #expect(loopback.works == Work.allCases && loopback.seconds == 0.33 && loopback.connections == 50)
        #expect(bluetooth.works == [.roundTrip, .stream, .connect, .found] && bluetooth.seconds == 1)
        #expect(loopback.discovery == "Benchmarks/Discovery")
        #expect(bluetooth.discovery == "Benchmarks/BluetoothDiscovery")
        let asked = try options("--only", "stream", "--seconds", "0.5", "--bluetooth", "--pin", "each")
        #expect(asked.works == [.stream] && asked.seconds == 0.5 && asked.pinning == .each)
    }

    @Test func `The name of a program that does not take part is refused`() throws {
        #expect(try options("--peers", "tcp,ours").programs == ["tcp", "ours"])
        #expect(try options("--bluetooth", "--peers", "rfcomm").programs == ["rfcomm"])
        #expect(throws: UsageError.self) { try options("--peers", "rfcomm") }
        #expect(throws: UsageError.self) { try options("--bluetooth", "--peers", "tcp") }
    }

    /// Each work that is compared with other libraries, with a column in which it is.
    private static let compared: [(Work, Work.Column)] = [
        (.calls, .init(size: 64, peers: 1)), (.natsRoundTrip, .init(size: 64 << 10, peers: 1)),
        (.natsStream, .init(size: 64 << 10, peers: 1)),
    ]

    @Test(arguments: compared)
    func `A target compares ours with one that does the same`(_ work: Work, _ column: Work.Column) throws {
        let programs = Program.all(try options(), ownIn: "")
        let targets = Target.all(of: work, in: column)
        #expect(!targets.isEmpty)
        for target in targets {
            let own = try #require(programs.first { $0.name == target.program })
            let base = try #require(programs.first { $0.name == target.base })
            #expect(own.isOurs && own.isEncrypted == base.isEncrypted)
            #expect(own.works.contains(work) && base.works.contains(work))
            // A call is to take at most half of gRPC's, and at most 1.6 of a message there and back.
            if work == .calls {
                #expect(target.isCeiling && target.bound == (base.isOurs ? 1.6 : 0.5))
            }
        }
    }

    @Test func `The report has the ratios of calls to the first program of each table`() throws {
        for isEncrypted in [false, true] {
            let programs = Program.all(try options(), ownIn: "").filter { $0.isEncrypted == isEncrypted }
            for work in [Work.calls, .callsAtOnce] {
                let first = try #require(programs.first { $0.works.contains(work) })
                #expect(first.name == (isEncrypted ? Program.encryptedCallBase : Program.callBase))
            }
        }
        #expect(try !options("--bluetooth").works.contains(.calls))
    }

    @Test(arguments: [
        (Text.number(12_345_678), "12.3 M"), (Text.number(1_234_567), "1.23 M"),
        (Text.number(12_345), "12 k"), (Text.number(1_234), "1234"), (Text.number(12.34), "12.3"),
        (Text.number(1.234), "1.23"), (Text.ratio(0.5), "0.50"), (Text.ratio(0.05), "0.050"),
        (Text.ratio(0.005), "0.0050"), (Text.grouped(999), "999"),
        (Text.grouped(1_000_005), "1,000,005"),
    ])
    func `Numbers keep the significant digits`(_ text: String, _ expected: String) {
        #expect(text == expected)
    }
}

@Suite("make bench --compare") struct ComparisonTests {
    private let column = Work.Column(size: 64, peers: 1)

    private func cell(_ work: Work, _ metric: Metric, _ program: String) -> Results.Cell {
        Results.Cell(work: work, column: column, metric: metric, program: program)
    }

    private func programs() throws -> [bench.Program] {
        guard case .action(let options) = try Options.program.parse([]) else { return [] }
        return bench.Program.all(options, ownIn: "")
    }

    @Test func `compares ratios to the base of the work, so that a slower hour of the machine is no change`()
        throws
    {
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

    @Test func `compares programs with the base of their work, equally encrypted`() throws {
        let values: [Results.Cell: [Double?]] = [
            cell(.stream, .rate, "ours-tls"): [1, 2], cell(.stream, .rate, "tls"): [2, 2],
            cell(.stream, .rate, "libuv"): [4, 4],
            cell(.calls, .median, "ours-questions"): [3], cell(.calls, .median, "grpc"): [6],
            cell(.callsAtOnce, .rate, "ours-tls-questions"): [8], cell(.callsAtOnce, .rate, "grpc-tls"): [4],
        ]
        let rows = Comparison(values, values, programs: try programs()).rows
        for (program, base, ratio) in [
            ("ours-tls", "tls", 0.75), ("ours-questions", "grpc", 0.5), ("ours-tls-questions", "grpc-tls", 2),
        ] {
            let row = try #require(rows.first { $0.cell.program == program })
            #expect(row.base == base && row.after.median == ratio, "\(program)")
        }
    }

    @Test func `calls a row different only if the rounds of the two runs do not overlap`() throws {
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

    @Test func `reads what a run writes, and counts the rows that only one run has`() throws {
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

    @Test func `says in a sentence that a file is no result`() {
        #expect(throws: UnreadableResults.self) { try EarlierResults.read("/nonexistent/results.json") }
        #expect(throws: UnreadableResults.self) { try EarlierResults.read(Data("{}".utf8), of: "a.json") }
    }
}
