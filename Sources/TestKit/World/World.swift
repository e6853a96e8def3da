import NighCore
import NighMemory

/// A neighborhood of real sessions in virtual time, in which one seed decides everything: which peers there are, how
/// good their lines are, what breaks when, and what the users do. In the end all faults are removed, the world comes to
/// rest, and the promises are checked; many of them are also checked while it runs.
///
/// Worlds are independent of each other. Each runs on the thread that calls `run`, and on no other. It is
/// `@unchecked Sendable` because sessions require that of everything their handlers capture.
public final class World: @unchecked Sendable {
    /// The longest timeout of a user's invitation, in milliseconds.
    static let longestTimeout = 12_000
    /// One world in this many encrypts everything.
    private static let encryptedEvery: UInt64 = 4
    /// One world in this many has impostors: strangers that announce inhabitants' PeerIDs.
    private static let impostorsEvery: UInt64 = 5
    /// In one world in this many, all peers reach each other over two transports.
    private static let spareTransportsEvery: UInt64 = 3
    /// The number of log lines in a finding.
    private static let tail = 60

    let seed: UInt64
    let plan: WorldPlan
    let loop: VirtualEventLoop
    let hub = MemoryHub()
    /// The hub of the second transports.
    let spareHub = MemoryHub()
    let inhabitants: [Inhabitant]
    var generator: SeededGenerator
    var log: WorldLog
    var ledger = MessageLedger()
    var counts = WorldCounts()
    var impostors: [Impostor] = []
    /// Whether the better of the two transports can be dialled.
    var betterWaysAreOpen: Bool
    /// Whether the users have stopped acting by themselves, and nothing breaks any more.
    var isQuiet = false
    /// Whether the world has come to rest, and nobody leaves yet. Every conversation, existing or new, must then last.
    var isMended = false
    /// The digits that users have confirmed, by the index of the user and that of the other peer.
    var confirmedDigits: [[Int]: Set<PairingCode>] = [:]
    /// How many ends were notified of each conversation.
    var toldConnected: [UInt64: Int] = [:]
    /// The conversations that have ended for at least one end.
    var toldEnded: Set<UInt64> = []
    private(set) var finding: Finding?
    /// Turns of the loop so far.
    var turns = 0
    /// One session is checked for consistency every this many turns, which makes a world a third slower. Checking every
    /// session after every turn would make it four times as slow.
    static let turnsPerLook = 4
    private var agenda = TimerQueue<() -> Void>()
    private var indexByPeer: [PeerID: Int] = [:]
    private var lifeByIncarnation: [UInt64: Life] = [:]

    private convenience init(seed: UInt64, keepingLog: Bool) {
        var generator = SeededGenerator(seed: seed)
        // Handshakes cost more than everything else in a world, so not every world has them.
        var plan = WorldPlan(
            &generator, security: seed.isMultiple(of: Self.encryptedEvery) ? .encrypted : .none)
        if seed % Self.spareTransportsEvery == 1 { plan.addSpareWays(&generator) }
        if seed % Self.impostorsEvery == 2 { plan.addImpostors(&generator) }
        self.init(seed: seed, plan: plan, generator: generator, keepingLog: keepingLog)
    }

    /// Creates a world from a given plan. Nothing happens in it by itself.
    init(
        seed: UInt64, plan: WorldPlan, generator: SeededGenerator, keepingLog: Bool, workLimit: Int = 400_000
    ) {
        var generator = generator
        self.seed = seed
        self.plan = plan
        betterWaysAreOpen = plan.betterWaysOpenAt == 0
        loop = VirtualEventLoop(workLimit: workLimit)
        log = WorldLog(keepsLines: keepingLog)
        // Which of two PeerIDs is the greater must not be the same in every world.
        let shuffle = generator.number(0...63)
        inhabitants = plan.members.enumerated().map { index, member in
            Inhabitant(index: index, identity: Self.identity(shuffle << 10 | index), member: member)
        }
        self.generator = generator
        for inhabitant in inhabitants { indexByPeer[inhabitant.identity.peerID] = inhabitant.index }
    }

    private static func identity(_ number: Int) -> Identity { .ephemeral(seed: UInt64(number)) }

    /// Runs the world of `seed` from beginning to end. If a rule is broken, the report has the log lines that lead to
    /// it. With `keepingLog` it has all lines in any case.
    public static func run(seed: UInt64, keepingLog: Bool = false) -> WorldReport {
        run(seed: seed, keepingLog: keepingLog) { _ in }
    }

    /// Runs the world of `seed` after `prepare` has changed it.
    static func run(
        seed: UInt64, keepingLog: Bool = false, prepare: (World) -> Void
    ) -> WorldReport {
        report(keepingLog, replay: "soak --seed \(seed) --log") { keepingLog in
            let world = World(seed: seed, keepingLog: keepingLog)
            prepare(world)
            world.live()
            return world
        }
    }

    /// Returns the report of the world that `live` makes and runs. If a rule was broken and no log was kept, runs it
    /// again with a log.
    static func report(_ keepingLog: Bool, replay: String, _ live: (Bool) -> World) -> WorldReport {
        let world = live(keepingLog)
        guard world.finding != nil else { return world.report() }
        world.finding?.replay = replay
        let again = keepingLog ? world : live(true)
        let lines = again.finding == nil ? ["it did not happen again"] : Array(again.log.lines.suffix(tail))
        world.finding?.log = lines
        return world.report()
    }

    private func report() -> WorldReport {
        counts.worlds = 1
        counts.milliseconds = Int(loop.now.nanoseconds / 1_000_000)
        counts.work = loop.workDone
        counts.messagesSent = ledger.accepted
        counts.messagesReceived = ledger.received
        counts.bytesReceived = ledger.bytesReceived
        counts.unreliableSent = ledger.unreliableSent
        counts.unreliableReceived = ledger.unreliableReceived
        return WorldReport(
            seed: seed, counts: counts, hash: log.hash &+ UInt64(loop.workDone), finding: finding,
            log: log.lines)
    }

    // MARK: Lookup

    func index(of peer: PeerID) -> Int? { indexByPeer[peer] }
    func life(of incarnation: UInt64) -> Life? { lifeByIncarnation[incarnation] }
    func id(_ index: Int) -> PeerID { inhabitants[index].identity.peerID }
    var awake: [Life] { inhabitants.compactMap(\.awake) }

    func found(_ fault: Fault) {
        guard finding == nil else { return }
        note(.phase, "FOUND \(fault.rule.rawValue): \(fault.words)")
        finding = Finding(seed: seed, rule: fault.rule, words: fault.words, moment: loop.now, replay: "")
    }

    func note(_ kind: WorldLog.Kind, _ words: @autoclosure () -> String) {
        log.note(at: loop.now, "world", kind, 0, 0, words())
    }

    // MARK: Time

    /// Calls `act` after `delay`, outside of any turn of the loop.
    func later(_ delay: Duration, _ act: @escaping () -> Void) {
        agenda.add(act, at: loop.now + Moment.Span(delay))
    }

    /// Lets time pass, and carries out what is planned for it. Stops at the first finding.
    func run(for duration: Duration) {
        let end = loop.now + Moment.Span(duration)
        while finding == nil {
            let next = min(agenda.earliest ?? end, end)
            do {
                let span = (next - loop.now).duration
                _ = try loop.run(until: { self.findsInconsistency() }, within: span)
            } catch {
                return found(Fault(.progress, "\(error)"))
            }
            guard finding == nil, let act = agenda.takeDue(at: next) else {
                if next == end { return }
                continue
            }
            act()
        }
    }

    private func live() {
        note(
            .phase, "\(plan.kind), \(inhabitants.count) inhabitants\(plan.isNarrow ? ", narrow limits" : "")")
        for inhabitant in inhabitants {
            later(.milliseconds(inhabitant.member.joinsAt)) { self.begin(inhabitant) }
        }
        scheduleWeather()
        scheduleBetterWays()
        scheduleImpostors()
        scheduleChecks()
        run(for: plan.active)
        guard finding == nil else { return end() }
        endFaults()
        run(for: plan.settling)
        drain()
        guard finding == nil else { return end() }
        // A pipe whose bytes have vanished needs this before it can really close.
        for inhabitant in inhabitants { inhabitant.life?.faults.unblock() }
        run(for: .seconds(1))
        judgeRest()
        judgeWays()
        prove()
        rest()
        closeAll()
        end()
    }

    /// Waits until no sent bytes wait any more, for at most 60 s. With slow lines and slower readers, that takes longer
    /// than any recovery from faults.
    private func drain() {
        for _ in 0..<12 where finding == nil {
            let waiting = inhabitants.reduce(0) { sum, inhabitant in
                (inhabitant.life?.session?.inspection.peers ?? []).reduce(sum) { $0 + $1.bytesWaiting }
            }
            guard waiting > 0 else { return }
            run(for: .seconds(5))
        }
    }

    // MARK: Lives

    /// Starts a new life of an inhabitant, at the address of its last life or elsewhere.
    func begin(_ inhabitant: Inhabitant, elsewhere: Bool = false) {
        guard inhabitant.life == nil else { return }
        if elsewhere { inhabitant.addressCount += 1 }
        let life = Life(
            inhabitant, in: self, number: inhabitant.lives.count + 1,
            address: "p\(inhabitant.index)-\(inhabitant.addressCount)")
        inhabitant.lives.append(life)
        lifeByIncarnation[life.incarnation] = life
        counts.sessions += 1
        if life.number > 1 { counts.restarts += 1 }
        life.note(
            .life, 0, 1,
            "begins at \(life.address), \(inhabitant.member.role), id \(id(inhabitant.index).short)")
        life.start()
        scheduleUser(life)
    }

    /// Ends all faults, and makes the users passive. Inhabitants that are away stay away.
    private func endFaults() {
        isQuiet = true
        note(.phase, "everything is mended")
        removeImpostors()
        for inhabitant in inhabitants {
            guard let life = inhabitant.life else { continue }
            life.spare?.control.unblock()
            life.spare?.control.release()
            life.faults.unblock()
            life.faults.release()
            life.faults.plan = WorldPlan.healed(life.owner.member.faults)
        }
    }

    /// Closes all sessions, and checks that nothing is left over.
    func closeAll() {
        guard finding == nil else { return }
        note(.phase, "everybody closes")
        isMended = false
        let lives = inhabitants.compactMap(\.life)
        for life in lives where !life.isClosing {
            if generator.chance(50) {
                life.close()
            } else {
                later(generator.milliseconds(0...2_000), life.close)
            }
        }
        run(for: .seconds(20))
        for life in lives where life.readsLater { while life.read(100) > 0 {} }
        judgeClosed()
        for life in lives { life.kill() }
        run(for: .seconds(15))
        judgeLeftovers()
    }

    /// Releases everything that would keep the world in memory.
    func end() {
        for inhabitant in inhabitants { if inhabitant.life != nil { inhabitant.life?.kill() } }
        removeImpostors()
        agenda.removeAll()
        try? loop.run(for: .seconds(30))
    }
}
