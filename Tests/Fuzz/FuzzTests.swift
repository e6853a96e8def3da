import NighCore
import NighTestKit
import Testing

@testable import fuzz

@Suite struct FuzzTests {
    @Test(arguments: Target.allCases)
    func aShortRunFindsNothing(target: Target) throws {
        var options = Options()
        options.targets = [target]
        options.inputs = 300
        #expect(try Fuzzing(options).run(report: { _ in }) == [])
    }

    /// A recorded scenario must be valid before it is mutated. Otherwise no mutated input gets past the first check.
    @Test func recordedScenariosReplayWithoutErrors() throws {
        var reached: [String: SessionStatistics] = [:]
        for scenario in try Corpus.record() {
            let loop = VirtualEventLoop()
            let harness = try SessionHarness(scenario.own, behavior: scenario.behavior, loop: loop)
            for event in scenario.events {
                try harness.perform(event)
                #expect(harness.session.inconsistencies == [], "\(scenario.name)")
                let statistics = try harness.statistics()
                let name = "\(scenario.name) \(scenario.own)"
                // A session forgets a peer that has left and is no longer seen, so this keeps the last statistics with
                // a peer.
                if !statistics.peers.isEmpty || reached[name] == nil { reached[name] = statistics }
            }
            if scenario.name == "resumes with channels and calls" {
                #expect(harness.layers.answers >= 4 && (harness.layers.messages > 1) == (scenario.own == 0))
            }
            try harness.close()
        }
        for (name, statistics) in reached {
            #expect(statistics.linksEnded["protocol violation"] == nil, "\(name)")
            guard !name.hasPrefix("declines"), !name.hasPrefix("does not answer") else { continue }
            let peer = try #require(statistics.peers.values.first, "\(name)")
            #expect(peer.messagesReceived > 0 || name.hasPrefix("is quiet"), "\(name)")
            #expect((peer.reconnects > 0) == name.contains("resume"), "\(name)")
            if name.hasPrefix("sends packets") {
                let packets = try #require(peer.datagrams)
                #expect(packets.messagesReceived > 2 && packets.rejected == 0, "\(packets)")
            }
        }
        #expect(reached.count == 24)
    }

    /// As above, for the targets that generate their inputs themselves.
    @Test func generatedInputsAreOftenValid() throws {
        let corpus = try Corpus.record()
        let frames = Mutator.frames(of: corpus)
        var (paired, understood, delivered) = (0, 0, 0)
        var (entries, contents, members) = (0, 0, 0)
        var (messages, answers, calls) = (0, 0, CallTarget.Reach())
        var (values, actors) = (0, ActorTarget.Reach())
        var (invitations, introduced, paths) = (0, 0, 0)
        var (requests, webMessages, guestLinks) = (0, 0, 0)
        var reach = DatagramPathTarget.Reach()
        var (calm, lines, rematches, breaches) = (0, 0, 0, 0)
        for seed in 0..<2_000 as Range<UInt64> {
            var mutator = Mutator(seed: seed, scenarios: corpus, frames: frames)
            if try PairingTarget.run(&mutator) { paired += 1 }
            if try TrustTarget.run(&mutator) { understood += 1 }
            if try FilesTarget.run(&mutator) { delivered += 1 }
            members += try GroupTarget.run(&mutator)
            messages += try ChannelTarget.run(&mutator)
            if try ForwardingTarget.run(&mutator) { answers += 1 }
            values += try CBORTarget.run(&mutator)
            let called = try CallTarget.run(&mutator)
            calls.answered += called.answered
            calls.cancelled += called.cancelled
            calls.timedOut += called.timedOut
            calls.refused += called.refused
            entries += try LinkRecordTarget.run(&mutator)
            requests += try HTTPTarget.run(&mutator)
            webMessages += try WebSocketTarget.run(&mutator)
            if try GuestEntryTarget.run(&mutator) { guestLinks += 1 }
            if try PacketTarget.run(&mutator) { contents += 1 }
            let table = try TableTarget.run(&mutator)
            calm += table.isCalm ? 1 : 0
            lines += table.lines
            rematches += table.rematches
            breaches += table.breaches
            guard seed < 300 else { continue }
            let acted = try ActorTarget.run(&mutator)
            actors.calls += acted.calls
            actors.answers += acted.answers
            actors.refusals += acted.refusals
            actors.values += acted.values
            actors.listed += acted.listed
            let path = try DatagramPathTarget.run(&mutator)
            reach.delivered += path.delivered
            reach.accepted += path.accepted
            reach.moves += path.moves
            let introductions = try IntroductionTarget.run(&mutator)
            invitations += introductions.invitations
            introduced += introductions.accepted
            paths += introductions.paths
        }
        #expect(entries > 8_000, "\(entries)")
        #expect(contents > 1_000, "\(contents)")
        #expect(requests > 1_000, "\(requests)")
        #expect(webMessages > 2_000, "\(webMessages)")
        #expect(guestLinks > 200, "\(guestLinks)")
        #expect(members > 200, "\(members)")
        #expect(messages > 2_000, "\(messages)")
        #expect(answers > 1_500, "\(answers)")
        #expect(values > 1_000, "\(values)")
        #expect(calls.answered > 4_000 && calls.cancelled > 500 && calls.timedOut > 500, "\(calls)")
        #expect(calls.refused > 200, "\(calls)")
        #expect(actors.calls > 500 && actors.answers > 20 && actors.refusals > 1_000, "\(actors)")
        #expect(actors.values > 40 && actors.listed > 60, "\(actors)")
        #expect(invitations > 100 && introduced > 40, "\(invitations), \(introduced)")
        #expect(paths > 1_000, "\(paths)")
        #expect(reach.delivered > 1_500 && reach.accepted > 4_000 && reach.moves > 40, "\(reach)")
        #expect(paired > 20, "\(paired)")
        #expect(understood > 300, "\(understood)")
        #expect(delivered > 300, "\(delivered)")
        #expect(calm > 500 && lines > 500, "\(calm), \(lines)")
        #expect(rematches > 300 && breaches > 300, "\(rematches), \(breaches)")
    }

    @Test func aSeedIsAnInput() throws {
        let corpus = try Corpus.record()
        let frames = Mutator.frames(of: corpus)
        for seed in 0..<50 as Range<UInt64> {
            var first = Mutator(seed: seed, scenarios: corpus, frames: frames)
            var second = Mutator(seed: seed, scenarios: corpus, frames: frames)
            #expect(first.stream() == second.stream())
            #expect("\(first.scenario().events)" == "\(second.scenario().events)")
        }
    }

    @Test func itsCommandLineIsChecked() throws {
        let options = try Options(["--inputs", "7", "--seed", "3", "--target", "link", "--one", "9"])
        #expect(options.inputs == 7)
        #expect(options.seed == 3)
        #expect(options.targets == [.link])
        #expect(options.one == 9)
        #expect(try Options(["--help"]).wantsHelp)
        for wrong in [["--inputs"], ["--inputs", "-1"], ["--target", "moon"], ["--moon"]] {
            #expect(throws: Options.UsageError.self) { try Options(wrong[...]) }
        }
    }
}
