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
        try await EmulatedTrial.run {
            var trial = EmulatedTrial()
            let air = try await BluetoothAir()
            let puma = try AirPeer("Puma", in: air, .untilTheTestEnds)
            let canBeFound = try await trial.wait(until: "Puma can be found") {
                !puma.events("advertised").isEmpty
            }
            if canBeFound {
                let stranger = try Self.stranger("call", in: air)
                let ending = await stranger.end(within: .seconds(600))
                trial.check(ending == .exited(0), "the stranger \(ending)")
                Self.check(stranger.output, toldBy: puma, &trial)
                trial.addOutput(stranger.output, of: "the stranger")
            }
            for kind in ["found", "state", "received"] {
                trial.checkPromise(puma.events(kind).isEmpty, "Puma took the stranger for a peer: \(kind)")
            }
            trial.check(puma.events("trouble").isEmpty, "Puma has trouble")
            trial.addOutput(puma.output, of: "Puma")
            return trial
        }
    }

    /// Checks what the stranger printed about Puma. Its link may have broken, so that it ended early. But all that it
    /// learned before must be right.
    private static func check(_ output: String, toldBy puma: AirPeer, _ trial: inout EmulatedTrial) {
        // bluetooth://00:AA:01:00:00:42/7
        guard let id = puma.events("ready").first?.first,
            let route = puma.events("listening").first?.first?.split(separator: "/"), route.count == 3
        else { return trial.check(false, "Puma has printed no address") }
        let expected = [
            "found \(route[1])", "name Puma", "channel \(route[2])", "adapter \(route[1])",
            "text v=1", "text id=\(id)", "preface 4e49474801020000",
            "ended after another protocol's words", "ended after another layout",
            "ended after plain text where TLS is asked for", "still there",
        ]
        // The stack prints errors in between when the session's request comes on a channel that is just being closed.
        let told = output.split(separator: "\n").map(String.init).filter { line in
            words.contains(line.prefix { $0 != " " }.description)
        }
        trial.check(told.count >= expected.count, "the stranger did not finish")
        trial.checkPromise(expected.starts(with: told), "the stranger was told \(told)")
        // It fails like this, with the bytes that came, if a connection does not begin with the preface.
        trial.checkPromise(
            !output.contains(#/AssertionError: b['"][^'"]/#), "the stranger got something that is no preface")
    }

    @Test func invalidAnswersYieldNoPeer() async throws {
        try await EmulatedTrial.run {
            var trial = EmulatedTrial()
            let air = try await BluetoothAir()
            let puma = try AirPeer("Puma", in: air, .untilTheTestEnds, over: "bluetooth:interval=1")
            let liar = try Self.stranger("lie", in: air)
            let hasLied = try await trial.wait(until: "it has told half of its lies") {
                liar.output.contains("nothing for ever")
            }
            if hasLied {
                // Its last answer is true. It shows that the session still works after all the false ones.
                try await trial.wait(until: "it is believed what is true") { !puma.events("found").isEmpty }
            }
            _ = kill(liar.process, SIGTERM)
            _ = await liar.end(within: .seconds(10))
            let asked = liar.output.split(separator: "\n").filter { $0.hasPrefix("asked") }.prefix(12)
            let hasToldTheTruth = asked.last == "asked, the truth"
            trial.check(hasToldTheTruth && Set(asked).count == 12, "it was asked too few times")
            let found = puma.events("found").map { $0.last ?? "" }
            trial.checkPromise(found.isEmpty || hasToldTheTruth, "a lie was believed")
            trial.checkPromise(found.allSatisfy { $0 == "Liar" }, "Puma found \(found)")
            trial.check(found.count == 1, "Puma found \(found.count) times somebody")
            trial.check(puma.events("trouble").isEmpty, "Puma has trouble")
            trial.addOutput(liar.output, of: "the liar")
            trial.addOutput(puma.output, of: "Puma")
            return trial
        }
    }
}
