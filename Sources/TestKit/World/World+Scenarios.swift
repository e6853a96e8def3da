import NighCore
import NighMemory

// Worlds in which one kind of event happens, repeatedly or to all sessions, instead of everything at random.

extension World {
    /// Lets two peers invite each other at about the same time, over lines of any delay. In the end there must be one
    /// link, and both must know it. Each must be notified once that it is connected, and that its invitation succeeded.
    public static func doubleInvitation(seed: UInt64, keepingLog: Bool = false) -> WorldReport {
        report(keepingLog, replay: "World.doubleInvitation(seed: \(seed), keepingLog: true)") { keepingLog in
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
            world.inviteEachOther(within: longest)
            return world
        }
    }

    private func inviteEachOther(within longest: Int) {
        isQuiet = true
        for inhabitant in inhabitants { begin(inhabitant) }
        run(for: .seconds(1))
        let lives = awake
        for life in lives {
            // Often at the very same moment.
            let delay = generator.chance(30) ? 0 : generator.number(0...max(4 * longest, 3))
            later(.milliseconds(delay)) { [self] in
                invite(1 - life.index, by: life, within: .seconds(10)) { error in
                    if let error { life.found(.oneLink, "invites who invites it, and is told: \(error)") }
                }
            }
        }
        run(for: .seconds(8))
        for life in lives where life.states.state(of: id(1 - life.index)) != .connected {
            life.found(.agreement, "is not connected after both have invited")
        }
        if counts.conversations != 2 || counts.interruptions > 0 {
            found(
                Fault(
                    .oneLink,
                    "\(counts.conversations) conversations begun at both ends, \(counts.interruptions) lost"))
        }
        exchange()
        judgeRest()
        closeAll()
        end()
    }

    /// Lets every session send messages to all peers that it is connected to, and checks that all of them arrive.
    private func exchange(_ count: Int = 2, within time: Duration = .seconds(4)) {
        for life in awake {
            for other in life.lines.keys.sorted() {
                for _ in 0..<count { send(life, to: other, length: generator.number(16...3_000)) }
            }
        }
        run(for: time)
        for life in awake {
            for (other, line) in life.lines where ledger.missing(in: line.stream) > 0 {
                life.found(
                    .delivery, "\(ledger.missing(in: line.stream)) messages to \(other) did not arrive")
            }
        }
    }

    /// Kills and restarts one of three peers, again and again, at the same or another address, noticed by the others at
    /// once or not. It must always be one peer, it must be found again, and nothing may arrive twice.
    public static func restarts(seed: UInt64, cycles: Int = 50, keepingLog: Bool = false) -> WorldReport {
        report(keepingLog, replay: "World.restarts(seed: \(seed), keepingLog: true)") { keepingLog in
            let member = WorldPlan.Member()
            let world = World(
                seed: seed, plan: WorldPlan([member, member, member]),
                generator: SeededGenerator(seed: seed), keepingLog: keepingLog)
            world.restartOneOfThree(cycles)
            return world
        }
    }

    private func restartOneOfThree(_ cycles: Int) {
        isQuiet = true
        for inhabitant in inhabitants { begin(inhabitant) }
        run(for: .seconds(1))
        let victim = inhabitants[2]
        for cycle in 0..<cycles where finding == nil {
            connect(victim, cycle)
            exchange()
            // Some of these messages are under way when the victim dies, or wait for it.
            for life in awake {
                for other in life.lines.keys.sorted() { send(life, to: other, length: 40_000) }
            }
            run(for: generator.milliseconds(0...3))
            guard let life = victim.life else { return }
            kill(life)
            let waits = generator.chance(30) ? 0 : generator.number(1...4_000)
            run(for: .milliseconds(waits))
            if waits == 0 || generator.chance(50) {
                for one in inhabitants { one.life?.faults.unblock() }
            }
            begin(victim, elsewhere: generator.chance(50))
            // Long enough for a dead link to be noticed by its silence.
            run(for: .seconds(30))
            for one in inhabitants { one.life?.faults.unblock() }
            run(for: .seconds(1))
            judgeRest()
        }
        closeAll()
        end()
    }

    private func kill(_ life: Life) {
        counts.kills += 1
        if generator.chance(50) {
            for other in awake where other !== life { other.faults.block(.address(life.address), .incoming) }
        }
        life.kill()
    }

    /// Connects the victim to the others. Sometimes the victim invites, sometimes the other peer.
    private func connect(_ victim: Inhabitant, _ cycle: Int) {
        for other in inhabitants.prefix(2) {
            guard let life = other.awake, let back = victim.awake else { return }
            let inviter = (cycle + other.index) % 2 == 0 ? life : back
            let invited = inviter === life ? victim.index : other.index
            if inviter.states.state(of: id(invited)) == .connected { continue }
            invite(invited, by: inviter, within: .seconds(5)) { error in
                if let error { inviter.found(.agreement, "cannot connect in cycle \(cycle): \(error)") }
            }
        }
        run(for: .seconds(2))
        for other in inhabitants.prefix(2) {
            guard let life = other.awake, life.states.state(of: id(victim.index)) == .connected else {
                return found(Fault(.agreement, "\(other.index) is not connected in cycle \(cycle)"))
            }
        }
    }

    /// Connects `count` sessions, each to all others. Each sends `messages` messages to every other.
    public static func mesh(
        of count: Int, messages: Int = 3, seed: UInt64 = 1, keepingLog: Bool = false
    ) -> WorldReport {
        report(keepingLog, replay: "World.mesh(of: \(count), seed: \(seed), keepingLog: true)") {
            keepingLog in
            var member = WorldPlan.Member()
            member.limits.peers = count
            member.limits.knownPeers = max(count, member.limits.knownPeers)
            member.limits.unauthenticatedPipes = count
            member.limits.pendingInvitations = count
            let world = World(
                seed: seed, plan: WorldPlan([WorldPlan.Member](repeating: member, count: count)),
                generator: SeededGenerator(seed: seed), keepingLog: keepingLog, workLimit: .max)
            world.meet(messages)
            return world
        }
    }

    private func meet(_ messages: Int) {
        isQuiet = true
        for inhabitant in inhabitants { begin(inhabitant) }
        run(for: .seconds(1))
        for life in awake {
            for other in inhabitants.indices where other > life.index {
                later(generator.milliseconds(0...5_000)) { [self] in
                    invite(other, by: life, within: .seconds(10)) { error in
                        if let error { life.found(.agreement, "cannot connect to \(other): \(error)") }
                    }
                }
            }
        }
        run(for: .seconds(7))
        for life in awake where life.lines.count != inhabitants.count - 1 {
            life.found(.agreement, "is connected to \(life.lines.count) of \(inhabitants.count - 1)")
        }
        exchange(messages)
        judgeRest()
        closeAll()
        end()
    }
}
