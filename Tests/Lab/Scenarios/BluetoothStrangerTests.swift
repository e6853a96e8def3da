import class ChildPrograms.Permits
import Glibc
import Testing

@testable import lab

/// Tests a session with a Bluetooth stack that is not BlueZ, and a program that is not ours. `make
/// bluetooth-lab` fetches the stack.
@Suite struct BluetoothStrangerTests {
    /// The first words of the lines that the stranger prints.
    private static let words: Set = [
        "found", "name", "channel", "adapter", "text", "preface", "ended", "still",
    ]

    private static func stranger(_ work: String, in air: BluetoothAir) throws -> LabProcess {
        let script = #""$("$0/setup")" "$0/stranger.py" "$1" "$2" lab < /dev/null"#
        return try LabProcess(
            command: ["sh", "-c", "exec \(script)", "\(BluetoothAir.folder)/foreign", work, air.socket])
    }

    @Test func aForeignClientFindsASessionAndIsRefused() async throws {
        try await Permits.machines.run {
            let air = try await BluetoothAir()
            let puma = try AirPeer("Puma", in: air, .seconds(100))
            try await until("it can be found") { !puma.events("advertised").isEmpty }
            let stranger = try Self.stranger("call", in: air)
            #expect(await stranger.end(within: .seconds(60)) == .exited(0), "\(stranger.output)")
            let id = try #require(puma.events("ready").first?.first)
            // bluetooth://00:AA:01:00:00:42/7
            let route = try #require(puma.events("listening").first?.first?.split(separator: "/"))
            // The stack prints errors in between when the session's request comes on a channel that is just being
            // closed.
            let told = stranger.output.split(separator: "\n").map(String.init).filter { line in
                Self.words.contains(line.prefix { $0 != " " }.description)
            }
            #expect(
                told == [
                    "found \(route[1])", "name Puma", "channel \(route[2])", "adapter \(route[1])",
                    "text v=1", "text id=\(id)", "preface 4e49474801020000",
                    "ended after another protocol's words", "ended after another layout",
                    "ended after plain text where TLS is asked for", "still there",
                ], "\(stranger.output)")
            for kind in ["found", "state", "received", "trouble"] {
                #expect(puma.events(kind).isEmpty, "\(puma.output)")
            }
        }
    }

    @Test func invalidAnswersYieldNoPeer() async throws {
        try await Permits.machines.run {
            let air = try await BluetoothAir()
            let puma = try AirPeer("Puma", in: air, .seconds(100), over: "bluetooth:interval=1")
            let liar = try Self.stranger("lie", in: air)
            try await until("it has told half of its lies") { liar.output.contains("nothing for ever") }
            // Its last answer is true. It shows that the session still works after all the false ones.
            try await until("it is believed what is true") { !puma.events("found").isEmpty }
            _ = kill(liar.process, SIGTERM)
            _ = await liar.end(within: .seconds(10))
            let asked = liar.output.split(separator: "\n").filter { $0.hasPrefix("asked") }
            #expect(asked.prefix(12).last == "asked, the truth", "\(liar.output)")
            #expect(Set(asked.prefix(12)).count == 12)
            #expect(puma.events("found").map { $0.last } == ["Liar"])
            #expect(puma.events("trouble").isEmpty, "\(puma.output)")
        }
    }
}
