import Arguments
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

    @Test("The table of options has no contradictions")
    func table() { #expect(Options.program.problems == []) }

    @Test("Over Bluetooth the defaults for works, times and scripts differ; given options win")
    func bluetooth() throws {
        let (loopback, bluetooth) = (try options(), try options("--bluetooth"))
        #expect(loopback.works == Work.allCases && loopback.seconds == 0.33 && loopback.connections == 50)
        #expect(bluetooth.works == [.roundTrip, .stream, .connect, .found] && bluetooth.seconds == 1)
        #expect(loopback.discovery == "Benchmarks/Discovery")
        #expect(bluetooth.discovery == "Benchmarks/BluetoothDiscovery")
        let asked = try options("--only", "stream", "--seconds", "0.5", "--bluetooth", "--pin", "each")
        #expect(asked.works == [.stream] && asked.seconds == 0.5 && asked.pinning == .each)
    }

    @Test("The name of a program that does not take part is refused")
    func peers() throws {
        #expect(try options("--peers", "tcp,ours").programs == ["tcp", "ours"])
        #expect(try options("--bluetooth", "--peers", "rfcomm").programs == ["rfcomm"])
        #expect(throws: UsageError.self) { try options("--peers", "rfcomm") }
        #expect(throws: UsageError.self) { try options("--bluetooth", "--peers", "tcp") }
    }

    @Test("Programs make calls by the command of round trips; many at once have one of their own")
    func calls() throws {
        let options = try options()
        #expect(Work.calls.command == .roundTrip && Work.callsAtOnce.command == .callsAtOnce)
        #expect(Work(rawValue: "calls-at-once") == .callsAtOnce)
        #expect(Work.calls.columns(options).map(\.size) == [64, 1 << 10])
        #expect(Work.callsAtOnce.columns(options) == [Work.Column(size: 64, peers: 1)])
        #expect(Work.calls.runsOnOneProcessor && !Work.callsAtOnce.runsOnOneProcessor)
        // The report has the ratios of each table to its first program.
        for isEncrypted in [false, true] {
            let programs = Program.all(options, ownIn: "").filter { $0.isEncrypted == isEncrypted }
            for work in [Work.calls, .callsAtOnce] {
                let first = try #require(programs.first { $0.works.contains(work) })
                #expect(first.name == (isEncrypted ? Program.encryptedCallBase : Program.callBase))
            }
        }
        #expect(try self.options("--bluetooth").works.contains(.calls) == false)
    }

    @Test("A call is to take at most half of gRPC's, and at most 1.6 of a message there and back")
    func targetsOfCalls() throws {
        let programs = Program.all(try options(), ownIn: "")
        let targets = Target.all(of: .calls, in: Work.Column(size: 64, peers: 1))
        #expect(targets.count == 8 && targets.allSatisfy { $0.isCeiling && $0.metric == .median })
        for target in targets {
            let own = try #require(programs.first { $0.name == target.program })
            let base = try #require(programs.first { $0.name == target.base })
            #expect(own.isOurs && own.isEncrypted == base.isEncrypted && base.works.contains(.calls))
            #expect(target.bound == (base.isOurs ? 1.6 : 0.5))
        }
    }

    @Test("Over NATS programs make round trips and streams, and are compared with libnats")
    func nats() throws {
        let options = try options()
        #expect(Work.natsRoundTrip.command == .roundTrip && Work.natsStream.command == .stream)
        #expect(Work.natsStream.columns(options).map(\.size) == [64, 1 << 10, 64 << 10])
        let programs = Program.all(options, ownIn: "")
        for work in [Work.natsRoundTrip, .natsStream] {
            #expect(work.usesNATS && work.measuresCost == (work == .natsRoundTrip))
            for target in Target.all(of: work, in: Work.Column(size: 64 << 10, peers: 1)) {
                let own = try #require(programs.first { $0.name == target.program })
                let base = try #require(programs.first { $0.name == target.base })
                #expect(own.isOurs && !base.isOurs && own.isEncrypted == base.isEncrypted)
                #expect(own.works.contains(work) && base.works.contains(work))
            }
        }
    }

    @Test(
        "Numbers keep the significant digits",
        arguments: [
            (Text.number(12_345_678), "12.3 M"), (Text.number(1_234_567), "1.23 M"),
            (Text.number(12_345), "12 k"), (Text.number(1_234), "1234"), (Text.number(12.34), "12.3"),
            (Text.number(1.234), "1.23"), (Text.ratio(0.5), "0.50"), (Text.ratio(0.05), "0.050"),
            (Text.ratio(0.005), "0.0050"), (Text.grouped(999), "999"),
            (Text.grouped(1_000_005), "1,000,005"),
        ])
    func numbers(_ text: String, _ expected: String) { #expect(text == expected) }
}
