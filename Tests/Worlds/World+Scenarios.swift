import NighCore
import NighTestKit
import NighMemory

// Worlds in which one kind of event happens, repeatedly or to all sessions, instead of everything at random.

extension World {
    /// Lets two peers invite each other at about the same time, over lines of any delay. In the end there must be one
    /// link, and both must know it. Each must be notified once that it is connected, and that its invitation succeeded.
    package static func doubleInvitation(seed: UInt64, keepingLog: Bool = false) -> WorldReport {
        runAndReport(keepingLog, replay: "World.doubleInvitation(seed: \(seed), keepingLog: true)") {
            keepingLog in
            var generator = SeededGenerator(seed: seed)
            let longest = generator.pick([0, 5, 50, 300]) ?? 50
            let members = (0..<2).map { _ in
                var member = WorldPlan.Member()
                member.faults.seed = generator.next()
                member.faults.delay = generator.milliseconds(0...longest)
                member.faults.jitter = generator.milliseconds(0...longest)
                member.faults.dialDelay = generator.milliseconds(0...longest)
                if generator.chance(20) { member.faults.splitLimit = generator.number(1...200) }
                return member
            }
            let world = World(
                seed: seed, plan: WorldPlan(members), generator: generator, keepingLog: keepingLog)
            world.play { world.inviteEachOther(within: longest) }
            return world
        }
    }

    /// Begins all runs, whose users do nothing by themselves, carries out the scenario, and checks how it ends.
    private func play(_ scenario: () -> Void) {
        isQuiet = true
        for worldPeer in peers { begin(worldPeer) }
        advance(by: .seconds(1))
        scenario()
        checkAtRest()
        closeAll()
        end()
    }

    private func inviteEachOther(within longest: Int) {
        let runs = activeRuns
        for run in runs {
            // Often at the very same moment.
            let delay = generator.chance(30) ? 0 : generator.number(0...max(4 * longest, 3))
            schedule(after: .milliseconds(delay)) { [self] in
                invite(1 - run.index, by: run, within: .seconds(10)) { error in
                    if let error { run.report(.oneLink, "fails when both sides invite: \(error)") }
                }
            }
        }
        advance(by: .seconds(8))
        for run in runs where run.states.state(of: id(1 - run.index)) != .connected {
            run.report(.agreement, "is not connected after both have invited")
        }
        if counts.conversations != 2 || counts.interruptions > 0 {
            report(
                Violation(
                    .oneLink,
                    "\(counts.conversations) conversations begun at both ends, \(counts.interruptions) lost"))
        }
        exchange()
    }

    /// Lets every session send messages to all peers that it is connected to, and checks that all of them arrive.
    private func exchange(_ count: Int = 2, within time: Duration = .seconds(4)) {
        for run in activeRuns {
            for other in run.streams.keys.sorted() {
                for _ in 0..<count { send(run, to: other, length: generator.number(16...3_000)) }
            }
        }
        advance(by: time)
        for run in activeRuns {
            for (other, stream) in run.streams where ledger.missing(in: stream.number) > 0 {
                run.report(
                    .delivery, "\(ledger.missing(in: stream.number)) messages to \(other) did not arrive")
            }
        }
    }

    /// Kills and restarts one of three peers, again and again, at the same or another address, noticed by the others at
    /// once or not. It must always be one peer, it must be found again, and nothing may arrive twice.
    package static func restarts(seed: UInt64, cycles: Int = 50, keepingLog: Bool = false) -> WorldReport {
        runAndReport(keepingLog, replay: "World.restarts(seed: \(seed), keepingLog: true)") { keepingLog in
            let member = WorldPlan.Member()
            let world = World(
                seed: seed, plan: WorldPlan([member, member, member]),
                generator: SeededGenerator(seed: seed), keepingLog: keepingLog)
            world.play { world.restartOneOfThree(cycles) }
            return world
        }
    }

    private func restartOneOfThree(_ cycles: Int) {
        let victim = peers[2]
        for cycle in 0..<cycles where finding == nil {
            connect(victim, cycle)
            exchange()
            // Some of these messages are under way when the victim dies, or wait for it.
            for run in activeRuns {
                for other in run.streams.keys.sorted() { send(run, to: other, length: 40_000) }
            }
            advance(by: generator.milliseconds(0...3))
            guard let run = victim.currentRun else { return }
            kill(run)
            let waits = generator.chance(30) ? 0 : generator.number(1...4_000)
            advance(by: .milliseconds(waits))
            if waits == 0 || generator.chance(50) {
                for one in peers { one.currentRun?.faults.unblock() }
            }
            begin(victim, elsewhere: generator.chance(50))
            // Long enough for a dead link to be noticed by its silence.
            advance(by: .seconds(30))
            for one in peers { one.currentRun?.faults.unblock() }
            advance(by: .seconds(1))
            checkAtRest()
        }
    }

    private func kill(_ run: SessionRun) {
        counts.kills += 1
        if generator.chance(50) {
            for other in activeRuns where other !== run {
                other.faults.block(.address(run.address), .incoming)
            }
        }
        run.kill()
    }

    /// Connects the victim to the others. Sometimes the victim invites, sometimes the other peer.
    private func connect(_ victim: WorldPeer, _ cycle: Int) {
        for other in peers.prefix(2) {
            guard let run = other.activeRun, let back = victim.activeRun else { return }
            let inviter = (cycle + other.index) % 2 == 0 ? run : back
            let invited = inviter === run ? victim.index : other.index
            if inviter.states.state(of: id(invited)) == .connected { continue }
            invite(invited, by: inviter, within: .seconds(5)) { error in
                if let error { inviter.report(.agreement, "cannot connect in cycle \(cycle): \(error)") }
            }
        }
        advance(by: .seconds(2))
        for other in peers.prefix(2) {
            guard let run = other.activeRun, run.states.state(of: id(victim.index)) == .connected else {
                return report(Violation(.agreement, "\(other.index) is not connected in cycle \(cycle)"))
            }
        }
    }

    /// Connects `count` sessions, each to all others. Each sends `messages` messages to every other.
    package static func mesh(
        of count: Int, messages: Int = 3, seed: UInt64 = 1, keepingLog: Bool = false
    ) -> WorldReport {
        runAndReport(keepingLog, replay: "World.mesh(of: \(count), seed: \(seed), keepingLog: true)") {
            keepingLog in
            var member = WorldPlan.Member()
            member.limits.peers = count
            member.limits.knownPeers = max(count, member.limits.knownPeers)
            member.limits.unauthenticatedPipes = count
            member.limits.pendingInvitations = count
            let world = World(
                seed: seed, plan: WorldPlan([WorldPlan.Member](repeating: member, count: count)),
                generator: SeededGenerator(seed: seed), keepingLog: keepingLog, workLimit: .max)
            world.play { world.meet(messages) }
            return world
        }
    }

    private func meet(_ messages: Int) {
        for run in activeRuns {
            for other in peers.indices where other > run.index {
                schedule(after: generator.milliseconds(0...5_000)) { [self] in
                    invite(other, by: run, within: .seconds(10)) { error in
                        if let error { run.report(.agreement, "cannot connect to \(other): \(error)") }
                    }
                }
            }
        }
        advance(by: .seconds(7))
        for run in activeRuns where run.streams.count != peers.count - 1 {
            run.report(.agreement, "is connected to \(run.streams.count) of \(peers.count - 1)")
        }
        exchange(messages)
    }
}
