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
