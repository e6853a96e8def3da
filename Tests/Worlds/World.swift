import NighCore
import NighTestKit
import NighMemory

/// A neighborhood of real sessions in virtual time, in which one seed decides everything: which peers there are, how
/// good their lines are, what breaks when, and what the users do. In the end all faults are removed, the world comes to
/// rest, and the promises are checked; many of them are also checked while it runs.
///
/// Worlds are independent of each other. Each runs on the thread that calls `run`, and on no other. It is
/// `@unchecked Sendable` because sessions require that of everything their handlers capture.
package final class World: @unchecked Sendable {
    /// The longest timeout of a user's invitation, in milliseconds.
    static let longestTimeout = 12_000
    /// One world in this many encrypts everything.
    private static let encryptedEvery: UInt64 = 4
    /// One world in this many has impostors: strangers that announce peers' PeerIDs.
    private static let impostorsEvery: UInt64 = 5
    /// In one world in this many, all peers reach each other over two transports.
    private static let spareTransportsEvery: UInt64 = 3
    /// In all worlds but one in this many, users open byte streams.
    private static let noStreamsEvery: UInt64 = 5
    /// The number of log lines in a finding.
    private static let tail = 60

    let seed: UInt64
    let plan: WorldPlan
    var loop: VirtualEventLoop { network.loop }
    /// The wire of all members, and a worse one, which only some worlds have.
    let network: SimulatedNetwork
    let peers: [WorldPeer]
    var generator: SeededGenerator
    var log: WorldLog
    var ledger = MessageLedger()
    var counts = WorldCounts()
    /// The byte streams that users have opened or tried to open, by number.
    var worldStreams: [WorldStream] = []
    /// Whether users open byte streams.
    private(set) var hasStreams = false
    /// Decides what users do with byte streams. It is a generator of its own, so that everything else in a world stays
    /// what it is without them.
    var streamGenerator: SeededGenerator
    /// The files that users have offered to others, by number.
    var deliveries: [WorldDelivery] = []
    /// Decides what users do with files, as `streamGenerator` does with streams.
    var fileGenerator: SeededGenerator
    var groupGenerator: SeededGenerator
    /// Decides what users do with channels, and what they ask each other.
    var channelGenerator: SeededGenerator
    var questionGenerator: SeededGenerator
    /// The messages that users have sent through channels, and their questions, by number.
    var channelFlows: [ChannelFlow] = []
    var worldQuestions: [WorldQuestion] = []
    /// The number of the last message to a group.
    var lastGroupMessage: UInt64 = 0
    /// Whether sessions let peers into groups that they refuse. It is made wrong on purpose, to see that the rule
    /// notices.
    var forgetsRefusals = false
    /// The messages that users read from channels instead of those that have come. Made wrong on purpose, too.
    var messagesRead: (Message) -> [Message] = { [$0] }
    var questionFault: QuestionFault?
    var impostors: [Impostor] = []
    /// Whether the better of the two transports can be dialled.
    var betterTransportsAreOpen: Bool
    /// Whether the users have stopped acting by themselves, and nothing breaks any more.
    var isQuiet = false
    /// Whether the world has come to rest, and nobody leaves yet. Every conversation, existing or new, must then last.
    var isFaultFree = false
    /// The digits that users have confirmed, by the index of the user and that of the other peer.
    var confirmedDigits: [[Int]: Set<PairingCode>] = [:]
    /// How many ends were notified of each conversation.
    var connectedEnds: [UInt64: Int] = [:]
    /// The conversations that have ended for at least one end.
    var endedConversations: Set<UInt64> = []
    private(set) var finding: Finding?
    /// Turns of the loop so far.
    var turns = 0
    /// One session is checked for consistency every this many turns, which makes a world a third slower. Checking every
    /// session after every turn would make it four times as slow.
    static let turnsPerCheck = 4
    private let agenda: WorldAgenda
    private var indexByPeer: [PeerID: Int] = [:]
    private var runByIncarnation: [UInt64: SessionRun] = [:]

    private convenience init(seed: UInt64, keepingLog: Bool) {
        var generator = SeededGenerator(seed: seed)
        // Handshakes cost more than everything else in a world, so not every world has them.
        var plan = WorldPlan(
            &generator, security: seed.isMultiple(of: Self.encryptedEvery) ? .encrypted : .none)
        if seed % Self.spareTransportsEvery == 1 { plan.addSpareTransports(&generator) }
        if seed % Self.impostorsEvery == 2 { plan.addImpostors(&generator) }
        let hasStreams = seed % Self.noStreamsEvery != 3
        if hasStreams { plan.limitStreams(seed: seed) }
        self.init(seed: seed, plan: plan, generator: generator, keepingLog: keepingLog)
        self.hasStreams = hasStreams
    }

    /// Creates a world from a given plan. Nothing happens in it by itself.
    init(
        seed: UInt64, plan: WorldPlan, generator: SeededGenerator, keepingLog: Bool, workLimit: Int = 400_000
    ) {
        var generator = generator
        self.seed = seed
        self.plan = plan
        streamGenerator = SeededGenerator(seed: seed &* 0x9E37_79B9_7F4A_7C15 &+ 1)
        fileGenerator = SeededGenerator(seed: seed &* 0xD1B5_4A32_D192_ED03 &+ 1)
        groupGenerator = SeededGenerator(seed: seed &* 0xA24B_AED4_963E_E407 &+ 1)
        channelGenerator = SeededGenerator(seed: seed &* 0xBF58_476D_1CE4_E5B9 &+ 1)
        questionGenerator = SeededGenerator(seed: seed &* 0x94D0_49BB_1331_11EB &+ 1)
        betterTransportsAreOpen = plan.betterTransportsOpenAt == 0
        network = SimulatedNetwork(
            wires: [
                SimulatedNetwork.Wire(highWaterMark: 64 << 10),
                SimulatedNetwork.Wire(SessionRun.spareScheme, priority: 100, highWaterMark: 64 << 10),
            ], on: VirtualEventLoop(workLimit: workLimit))
        agenda = WorldAgenda(of: network.loop)
        log = WorldLog(keepsLines: keepingLog)
        // Which of two PeerIDs is the greater must not be the same in every world.
        let shuffle = generator.number(0...63)
        peers = plan.members.enumerated().map { index, member in
            WorldPeer(index: index, identity: Self.identity(shuffle << 10 | index), member: member)
        }
        self.generator = generator
        for worldPeer in peers {
            indexByPeer[worldPeer.identity.peerID] = worldPeer.index
            indexByPeer[worldPeer.identity.principal] = worldPeer.index
        }
    }

    /// The identity of a member. That of every fourth is a delegate.
    static func identity(_ number: Int) -> Identity {
        let identity = Identity.ephemeral(seed: UInt64(number))
        return number % 4 == 3
            ? Identity.ephemeral(seed: ~UInt64(number)).makeDelegate(withKeyOf: identity) : identity
    }

    /// Runs the world of `seed` from beginning to end. If a rule is broken, the report has the log lines that lead to
    /// it. With `keepingLog` it has all lines in any case.
    package static func run(seed: UInt64, keepingLog: Bool = false) -> WorldReport {
        run(seed: seed, keepingLog: keepingLog) { _ in }
    }

    /// Runs the world of `seed` after `prepare` has changed it.
    static func run(
        seed: UInt64, keepingLog: Bool = false, prepare: (World) -> Void
    ) -> WorldReport {
        runAndReport(keepingLog, replay: "soak --seed \(seed) --log") { keepingLog in
            let world = World(seed: seed, keepingLog: keepingLog)
            prepare(world)
            world.live()
            return world
        }
    }

    /// Returns the report of the world that `live` makes and runs. If a rule was broken and no log was kept, runs it
    /// again with a log.
    static func runAndReport(_ keepingLog: Bool, replay: String, _ live: (Bool) -> World) -> WorldReport {
        let world = live(keepingLog)
        defer { world.forgetRuns() }
        guard world.finding != nil else { return world.makeReport() }
        world.finding?.replay = replay
        let again = keepingLog ? world : live(true)
        let lines = again.finding == nil ? ["it did not happen again"] : Array(again.log.lines.suffix(tail))
        world.finding?.log = lines
        return world.makeReport()
    }

    private func makeReport() -> WorldReport {
        counts.worlds = 1
        counts.milliseconds = Int(loop.now.nanoseconds / 1_000_000)
        counts.work = loop.workDone
        counts.messagesSent = ledger.accepted
        counts.messagesReceived = ledger.received
        counts.kindsReceived = ledger.kindsReceived
        counts.bytesReceived = ledger.bytesReceived
        counts.unreliableSent = ledger.unreliableSent
        counts.unreliableReceived = ledger.unreliableReceived
        return WorldReport(
            seed: seed, counts: counts, hash: log.hash &+ UInt64(loop.workDone), finding: finding,
            log: log.lines)
    }

    // MARK: Lookup

    func index(of peer: PeerID) -> Int? { indexByPeer[peer] }
    func run(withIncarnation incarnation: UInt64) -> SessionRun? { runByIncarnation[incarnation] }
    func id(_ index: Int) -> PeerID { peers[index].identity.peerID }
    var activeRuns: [SessionRun] { peers.compactMap(\.activeRun) }

    func report(_ violation: Violation) {
        guard finding == nil else { return }
        note(.phase, "FOUND \(violation.rule.rawValue): \(violation.message)")
        finding = Finding(
            seed: seed, rule: violation.rule, message: violation.message, moment: loop.now, replay: "")
    }

    func note(_ kind: WorldLog.Kind, _ text: @autoclosure () -> String) {
        log.note(at: loop.now, "world", kind, 0, 0, text())
    }

    // MARK: Time

    /// Calls `act` after `delay`, outside of any turn of the loop.
    func schedule(after delay: Duration, _ act: @escaping () -> Void) {
        agenda.schedule(after: delay, act)
    }

    /// Lets time pass, and carries out what is planned for it. Stops at the first finding.
    func advance(by duration: Duration) {
        do {
            try agenda.advance(by: duration, until: { finding != nil }) { next in
                let span = (next - loop.now).duration
                _ = try loop.run(until: { self.findsInconsistency() }, within: span)
            }
        } catch {
            report(Violation(.progress, "\(error)"))
        }
    }

    private func live() {
        note(
            .phase, "\(plan.kind), \(peers.count) inhabitants\(plan.isNarrow ? ", narrow limits" : "")")
        for worldPeer in peers {
            schedule(after: .milliseconds(worldPeer.member.joinsAt)) { self.begin(worldPeer) }
        }
        scheduleFaults()
        scheduleBetterTransports()
        scheduleImpostors()
        scheduleChecks()
        advance(by: plan.active)
        guard finding == nil else { return end() }
        endFaults()
        advance(by: plan.settling)
        drain()
        guard finding == nil else { return end() }
        // A pipe whose bytes have vanished needs this before it can really close.
        for worldPeer in peers { worldPeer.currentRun?.faults.unblock() }
        advance(by: .seconds(1))
        checkAtRest()
        checkTransports()
        checkThatItWorks()
        checkIdleWork()
        closeAll()
        end()
    }

    /// Waits until no sent bytes wait any more, for at most 60 s. With slow lines and slower readers, that takes longer
    /// than any recovery from faults.
    private func drain() {
        for _ in 0..<12 where finding == nil {
            let waiting = peers.reduce(0) { sum, worldPeer in
                (worldPeer.currentRun?.session?.inspection.peers ?? []).reduce(sum) { $0 + $1.bytesWaiting }
            }
            guard waiting > 0 else { return }
            advance(by: .seconds(5))
        }
    }

    // MARK: Runs

    /// Starts a new run of a peer, at the address of its last run or elsewhere.
    func begin(_ worldPeer: WorldPeer, elsewhere: Bool = false) {
        guard worldPeer.currentRun == nil else { return }
        if elsewhere { worldPeer.addressCount += 1 }
        let run = SessionRun(
            worldPeer, in: self, number: worldPeer.runs.count + 1,
            address: "p\(worldPeer.index)-\(worldPeer.addressCount)")
        worldPeer.runs.append(run)
        runByIncarnation[run.incarnation] = run
        counts.sessions += 1
        if run.number > 1 { counts.restarts += 1 }
        run.note(
            .run, 0, 1,
            "begins at \(run.address), \(worldPeer.member.role), id \(id(worldPeer.index).short)")
        run.start()
        scheduleUser(run)
        scheduleStreams(run)
        scheduleDeliveries(run)
        scheduleGroups(run)
        scheduleChannels(run)
        scheduleQuestions(run)
    }

    /// Ends all faults, and makes the users passive. Peers that are away stay away.
    private func endFaults() {
        isQuiet = true
        note(.phase, "all faults have ended")
        removeImpostors()
        for worldPeer in peers {
            guard let run = worldPeer.currentRun else { continue }
            run.spareFaults?.unblock()
            run.spareFaults?.release()
            run.faults.unblock()
            run.faults.release()
            run.faults.plan = WorldPlan.healed(run.owner.member.faults)
        }
    }

    /// Closes all sessions, and checks that nothing is left over.
    func closeAll() {
        guard finding == nil else { return }
        note(.phase, "all sessions close")
        isFaultFree = false
        let runs = peers.compactMap(\.currentRun)
        for run in runs where !run.isClosing {
            if generator.chance(50) {
                run.close()
            } else {
                schedule(after: generator.milliseconds(0...2_000), run.close)
            }
        }
        advance(by: .seconds(20))
        for run in runs where run.readsLater { while run.read(100) > 0 {} }
        checkAfterClose()
        for run in runs { run.kill() }
        advance(by: .seconds(15))
        checkForLeaks()
    }

    /// Lets go of the runs, which refer to their peers and to each other.
    private func forgetRuns() {
        for worldPeer in peers {
            for run in worldPeer.runs { run.forgetOthers() }
            worldPeer.runs = []
        }
    }

    /// Releases everything that would keep the world in memory.
    func end() {
        for worldPeer in peers { if worldPeer.currentRun != nil { worldPeer.currentRun?.kill() } }
        removeImpostors()
        agenda.removeAll()
        try? loop.run(for: .seconds(30))
    }
}
