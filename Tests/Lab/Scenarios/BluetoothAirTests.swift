import Glibc
import Testing

@testable import lab

/// Tests two machines with Bluetooth on one air, each with a session of ours, and their conversation when the air is
/// disturbed.
@Suite struct BluetoothAirTests {
    /// The number of messages in each direction, 20 ms apart.
    private static let count = 200

    /// Lets a quarter of the messages pass, then calls `disturb` while the rest is on its way. All messages must arrive
    /// in one conversation, and `course` says what else must be.
    private static func exchange(
        sourceLocation: SourceLocation = #_sourceLocation,
        course: @escaping @Sendable ([AirPeer], EmulatedTrial) -> Void = { _, _ in },
        disturb: @escaping @Sendable (BluetoothAir, [AirPeer]) async throws -> Void = { _, _ in }
    ) async throws {
        try await EmulatedTrial.run(sourceLocation: sourceLocation) { trial in
            let air = try await BluetoothAir()
            let peers = try ["Puma", "Lynx"].map { try AirPeer($0, in: air, .exchanging(count)) }
            for (name, peer) in zip(["Puma", "Lynx"], peers) { trial.show(name, peer.output) }
            try await trial.wait(until: "they meet and talk", within: .seconds(60)) {
                peers.allSatisfy { $0.received.count >= count / 4 }
            }
            try await disturb(air, peers)
            for (name, peer) in zip(["Puma", "Lynx"], peers) {
                trial.check(await peer.end() == .exited(0), "a peer does not end well")
                trial.check(peer.received, are: count, at: name)
                trial.checkPromise(peer.events("damaged").isEmpty, "something came to \(name) damaged")
                trial.check(peer.events("trouble").isEmpty, "\(name) has trouble")
                trial.check(AirPeer.isOneConversation(peer.states), "\(name) saw \(peer.states)")
            }
            course(peers, trial)
        }
    }

    @Test func `Two sessions find each other by inquiry and exchange messages`() async throws {
        try await Self.exchange(course: { peers, trial in
            // The signal strength that the emulated controllers report for every device: -60 dBm. A peer that was asked
            // before its own inquiry had an answer does not know it.
            let strengths = Set(peers.flatMap { $0.events("quality").map { $0[1] } })
            trial.check(strengths == ["58"], "the signal strengths are \(strengths)")
        })
    }

    @Test func `An eight second stall does not end a conversation`() async throws {
        try await Self.exchange(disturb: { air, _ in
            try await air.send("hold")
            // Time is the subject, here and below: a silence shorter than the time after which a peer counts as missed.
            try await Task.sleep(for: .seconds(8))
            try await air.send("release")
        })
    }

    /// RFCOMM relies on the arrival of every byte. A loss leaves it without credits to send more, or with a gap.
    @Test func `Losing six seconds of data costs the link but no message`() async throws {
        let causes = ["nothing was received any more", "bytes were changed on the way", "the link was lost"]
        try await Self.exchange { peers, trial in
            for cause in peers.map({ $0.cause(of: "reconnecting") }) {
                trial.check(causes.contains { cause.contains($0) }, "a link was replaced for \(cause)")
            }
        } disturb: { air, peers in
            try await air.send("drop")
            try await Task.sleep(for: .seconds(6))
            try await air.send("release")
            _ = try await comesTrue { peers.allSatisfy { $0.states.contains("reconnecting") } }
        }
    }

    @Test func `A link that times out is replaced`() async throws {
        try await Self.exchange { peers, trial in
            for causes in peers.map({ $0.moves.filter { $0.to == "reconnecting" }.map(\.cause) }) {
                let hasTimedOut = causes.contains { $0.hasSuffix("no answer in time") }
                trial.check(hasTimedOut, "links were replaced for \(causes)")
            }
        } disturb: { air, _ in
            try await air.send("cut")
        }
    }

    @Test func `A peer away beyond the grace period is lost and found again`() async throws {
        try await EmulatedTrial.run { trial in
            let air = try await BluetoothAir()
            let peers = try ["Puma", "Lynx"].map { try AirPeer($0, in: air, .untilTheTestEnds) }
            for (name, peer) in zip(["Puma", "Lynx"], peers) { trial.show(name, peer.output) }
            try await trial.wait(until: "both are connected") {
                peers.allSatisfy { $0.states.last == "connected" }
            }
            try await air.send("away", "0")
            try await trial.wait(until: "both have given up") {
                peers.allSatisfy { $0.states.contains("disconnected") }
            }
            for cause in peers.map({ $0.cause(of: "disconnected") }) {
                trial.check(cause.contains("no answer in time"), "a conversation ended for \(cause)")
            }
            try await air.send("back", "0")
            // An inquiry, a question to the device and a dial may each take 10 s, and the first of each may fail.
            try await trial.wait(until: "both are connected again", within: .seconds(60)) {
                peers.allSatisfy {
                    $0.moves.count { $0.from == "connecting" && $0.to == "connected" } == 2
                }
            }
        }
    }

    @Test func `A peer whose machine dies is lost in time`() async throws {
        try await EmulatedTrial.run { trial in
            let air = try await BluetoothAir()
            let victim = try AirPeer("Puma", in: air, .untilTheTestEnds)
            let witness = try AirPeer("Lynx", in: air, .seconds(120))
            for (name, peer) in [("Puma", victim), ("Lynx", witness)] { trial.show(name, peer.output) }
            try await trial.wait(until: "both are connected") {
                [victim, witness].allSatisfy { $0.states.last == "connected" }
            }
            victim.pullOut()
            // 15 s of silence, then 10 s in which no other link is found.
            try await trial.wait(until: "it is missed") { witness.states.contains("reconnecting") }
            try await trial.wait(until: "it is given up") { witness.states.contains("disconnected") }
            let cause = witness.cause(of: "disconnected")
            // When the processors are busy, the kernel in the machine may give up its emulated adapter before that.
            if !cause.contains("adapter is off or was unplugged") {
                trial.check(cause.contains("nothing was received any more"), "Puma was given up for \(cause)")
                let suspicions = witness.events("suspected").map { $0[1] }
                trial.check(suspicions.last == "true", "Lynx suspected Puma: \(suspicions)")
            }
            // It is not worth the time after a failure.
            guard trial.faults.isEmpty else { return }
            let ending = await witness.end()
            trial.check(ending == .exited(0), "Lynx \(ending)")
            let count = witness.events("closed").count
            trial.check(count > 0, "Lynx did not close")
            trial.checkPromise(count <= 1, "Lynx closed \(count) times")
        }
    }

    @Test(arguments: [
        ("available connecting connected disconnected available", true),
        ("available connecting connected reconnecting connected reconnecting connected disconnected", true),
        ("available connecting connected reconnecting disconnected unavailable", true),
        ("available connecting connected disconnected available connecting connected", false),
        ("available connecting connected reconnecting", false),
        ("available connecting available connecting connected disconnected", false),
        ("", false),
    ])
    func `A conversation may replace its links, and a second one or one without an end is a failure`(
        states: String, isOne: Bool
    ) {
        #expect(AirPeer.isOneConversation(states.split(separator: " ").map(String.init)) == isOne)
    }
}

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
            command: ["sh", "-c", "exec \(script)", "\(LabProcess.bluetooth)/foreign", work, air.socket])
    }

    @Test func `A foreign client finds a session and is refused`() async throws {
        try await EmulatedTrial.run { trial in
            let air = try await BluetoothAir()
            let puma = try AirPeer("Puma", in: air, .untilTheTestEnds)
            trial.show("Puma", puma.output)
            try await trial.wait(until: "Puma can be found") { !puma.events("advertised").isEmpty }
            let stranger = try Self.stranger("call", in: air)
            trial.show("the stranger", stranger.output)
            let ending = await stranger.end(within: .seconds(600))
            trial.check(ending == .exited(0), "the stranger \(ending)")
            Self.check(stranger.output, about: puma, trial)
            for kind in ["found", "state", "received"] {
                trial.checkPromise(puma.events(kind).isEmpty, "Puma took the stranger for a peer: \(kind)")
            }
            trial.check(puma.events("trouble").isEmpty, "Puma has trouble")
        }
    }

    /// Checks what the stranger printed about Puma. Its link may have broken, so that it ended early. But all that it
    /// learned before must be right.
    private static func check(_ output: String, about puma: AirPeer, _ trial: EmulatedTrial) {
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
        let printed = output.split(separator: "\n").map(String.init).filter { line in
            words.contains(line.prefix { $0 != " " }.description)
        }
        trial.check(printed.count >= expected.count, "the stranger did not finish")
        trial.checkPromise(expected.starts(with: printed), "the stranger was told \(printed)")
        // It fails like this, with the bytes that came, if a connection does not begin with the preface.
        trial.checkPromise(
            !output.contains(#/AssertionError: b['"][^'"]/#), "the stranger got something that is no preface")
    }

    @Test func `Invalid answers yield no peer`() async throws {
        try await EmulatedTrial.run { trial in
            let air = try await BluetoothAir()
            let puma = try AirPeer("Puma", in: air, .untilTheTestEnds, over: "bluetooth:interval=1")
            let liar = try Self.stranger("lie", in: air)
            for (name, output) in [("the liar", { liar.output }), ("Puma", { puma.output })] {
                trial.show(name, output())
            }
            // Its last answer is true. It shows that the session still works after all the false ones.
            let isBelieved = try await comesTrue(within: .seconds(60)) { !puma.events("found").isEmpty }
            _ = kill(liar.process, SIGTERM)
            _ = await liar.end(within: .seconds(10))
            trial.check(isBelieved, "it is not believed what is true")
            let asked = liar.output.split(separator: "\n").filter { $0.hasPrefix("asked") }.prefix(12)
            let hasToldTheTruth = asked.last == "asked, the truth"
            trial.check(hasToldTheTruth && Set(asked).count == 12, "it was asked too few times")
            let found = puma.events("found").map { $0.last ?? "" }
            trial.checkPromise(found.isEmpty || hasToldTheTruth, "a lie was believed")
            trial.checkPromise(found.allSatisfy { $0 == "Liar" }, "Puma found \(found)")
            trial.check(found.count == 1, "Puma found \(found.count) times somebody")
            trial.check(puma.events("trouble").isEmpty, "Puma has trouble")
        }
    }
}
