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
        course: @escaping @Sendable ([AirPeer], inout EmulatedTrial) -> Void = { _, _ in },
        disturb: @escaping @Sendable (BluetoothAir, [AirPeer]) async throws -> Void = { _, _ in }
    ) async throws {
        try await EmulatedTrial.run(sourceLocation: sourceLocation) {
            var trial = EmulatedTrial()
            let air = try await BluetoothAir()
            let peers = try ["Puma", "Lynx"].map { try AirPeer($0, in: air, .exchanging(count)) }
            let haveMet = try await comesTrue(within: .seconds(60)) {
                peers.allSatisfy { $0.received.count >= count / 4 }
            }
            trial.check(haveMet, "they do not meet, or do not talk")
            if haveMet {
                try await disturb(air, peers)
                for peer in peers { trial.check(await peer.end() == .exited(0), "a peer does not end well") }
            }
            for (name, peer) in zip(["Puma", "Lynx"], peers) {
                trial.check(peer.received, are: count, at: name)
                trial.checkUndamaged(peer.events("damaged").isEmpty, at: name)
                trial.check(peer.events("trouble").isEmpty, "\(name) has trouble")
                trial.addOutput(peer.output, of: name)
                let states = OneConversation(states: peer.states)
                trial.check(states.isWhole, "\(name) saw \(states.states.joined(separator: ", "))")
            }
            course(peers, &trial)
            return trial
        }
    }

    @Test func twoSessionsFindEachOtherByInquiryAndExchangeMessages() async throws {
        try await Self.exchange { peers, trial in
            // The signal strength that the emulated controllers report for every device: -60 dBm. A peer that was asked
            // before its own inquiry had an answer does not know it.
            let strengths = Set(peers.flatMap { $0.events("quality").map { $0[1] } })
            trial.check(strengths == ["58"], "the signal strengths are \(strengths)")
        }
    }

    @Test func anEightSecondStallDoesNotEndAConversation() async throws {
        try await Self.exchange(disturb: { air, _ in
            try await air.send("hold")
            // Time is the subject, here and below: a silence shorter than the time after which a peer counts as missed.
            try await Task.sleep(for: .seconds(8))
            try await air.send("release")
        })
    }

    /// RFCOMM relies on the arrival of every byte. A loss leaves it without credits to send more, or with a gap.
    @Test func losingSixSecondsOfDataCostsTheLinkButNoMessage() async throws {
        let causes = ["nothing was received any more", "bytes were changed on the way", "the link was lost"]
        try await Self.exchange { peers, trial in
            for peer in peers {
                let cause = peer.moves.first { $0.to == "reconnecting" }?.cause ?? "nothing"
                trial.check(causes.contains { cause.contains($0) }, "a link was replaced for \(cause)")
            }
        } disturb: { air, peers in
            try await air.send("drop")
            try await Task.sleep(for: .seconds(6))
            try await air.send("release")
            _ = try await comesTrue { peers.allSatisfy { $0.states.contains("reconnecting") } }
        }
    }

    @Test func aLinkThatTimesOutIsReplaced() async throws {
        try await Self.exchange { peers, trial in
            for peer in peers {
                let causes = peer.moves.filter { $0.to == "reconnecting" }.map(\.cause)
                trial.check(
                    causes.contains { $0.hasSuffix("no answer in time") }, "links were replaced for \(causes)"
                )
            }
        } disturb: { air, _ in
            try await air.send("cut")
        }
    }

    @Test func aPeerAwayBeyondTheGracePeriodIsLostAndFoundAgain() async throws {
        try await EmulatedTrial.run {
            var trial = EmulatedTrial()
            let air = try await BluetoothAir()
            let peers = try ["Puma", "Lynx"].map { try AirPeer($0, in: air, .untilTheTestEnds) }
            try await Self.loseAndFindAgain(peers, in: air, &trial)
            for (name, peer) in zip(["Puma", "Lynx"], peers) { trial.addOutput(peer.output, of: name) }
            return trial
        }
    }

    private static func loseAndFindAgain(
        _ peers: [AirPeer], in air: BluetoothAir, _ trial: inout EmulatedTrial
    ) async throws {
        let haveMet = try await trial.wait(until: "both are connected") {
            peers.allSatisfy { $0.states.last == "connected" }
        }
        guard haveMet else { return }
        try await air.send("away", "0")
        let haveGivenUp = try await trial.wait(until: "both have given up") {
            peers.allSatisfy { $0.states.contains("disconnected") }
        }
        guard haveGivenUp else { return }
        for peer in peers {
            let cause = peer.moves.first { $0.to == "disconnected" }?.cause ?? "nothing"
            trial.check(cause.contains("no answer in time"), "a conversation ended for \(cause)")
        }
        try await air.send("back", "0")
        // An inquiry, a question to the device and a dial may each take 10 s, and the first of each come to nothing.
        try await trial.wait(until: "both are connected again", within: .seconds(60)) {
            peers.allSatisfy {
                $0.moves.filter { $0.from == "connecting" && $0.to == "connected" }.count == 2
            }
        }
    }

    @Test func aPeerWhoseMachineDiesIsLostInTime() async throws {
        try await EmulatedTrial.run {
            var trial = EmulatedTrial()
            let air = try await BluetoothAir()
            let victim = try AirPeer("Puma", in: air, .untilTheTestEnds)
            let witness = try AirPeer("Lynx", in: air, .seconds(120))
            try await Self.pullOut(victim, seenBy: witness, &trial)
            // It is not worth the time after a failure.
            if trial.faults.isEmpty {
                let ending = await witness.end()
                trial.check(ending == .exited(0), "Lynx \(ending)")
                let count = witness.events("closed").count
                trial.check(count > 0, "Lynx did not close")
                trial.checkPromise(count <= 1, "Lynx closed \(count) times")
            }
            trial.addOutput(victim.output, of: "Puma")
            trial.addOutput(witness.output, of: "Lynx")
            return trial
        }
    }

    private static func pullOut(
        _ victim: AirPeer, seenBy witness: AirPeer, _ trial: inout EmulatedTrial
    ) async throws {
        let haveMet = try await trial.wait(until: "both are connected") {
            [victim, witness].allSatisfy { $0.states.last == "connected" }
        }
        guard haveMet else { return }
        victim.pullOut()
        // 15 s of silence, then 10 s in which no other link is found.
        let isMissed = try await trial.wait(until: "it is missed") {
            witness.states.contains("reconnecting")
        }
        guard isMissed else { return }
        let isGivenUp = try await trial.wait(until: "it is given up") {
            witness.states.contains("disconnected")
        }
        guard isGivenUp else { return }
        let cause = witness.moves.first { $0.to == "disconnected" }?.cause ?? "nothing"
        // When the processors are busy, the kernel in the machine may give up its emulated adapter before that.
        guard !cause.contains("adapter is off or was unplugged") else { return }
        trial.check(cause.contains("nothing was received any more"), "Puma was given up for \(cause)")
        let suspicions = witness.events("suspected").map { $0[1] }
        trial.check(suspicions.last == "true", "Lynx suspected Puma: \(suspicions)")
    }
}
