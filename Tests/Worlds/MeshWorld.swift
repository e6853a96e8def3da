import NighCore
import NighTestKit
import NighMemory

/// Sessions of one mesh in virtual time, of which each knows little: one seed decides who is on which wire, what
/// breaks, and who comes, goes and dies. In the end nothing breaks any more, and all must agree on who is there.
///
/// Each world runs on the thread that calls `run`, and on no other. It is `@unchecked Sendable` because sessions
/// require that of everything their handlers capture.
package final class MeshWorld: @unchecked Sendable {
    static let service: ServiceName = "mesh"
    /// The most members that a session accepts.
    static let mostMembers = 512
    /// One world in this many encrypts everything.
    private static let encryptedEvery: UInt64 = 4

    /// Somebody who takes part, from time to time.
    struct Member {
        let index: Int
        let identity: Identity
        /// The wires that it is on: those on no common wire need somebody who carries pipes.
        let wires: [Int]
        let browses: Bool
    }

    /// Mistakes that are planted on purpose, to see that the rules notice.
    struct Fault {
        /// Sessions hear nothing of others.
        var losesRecords = false
        /// Nothing is encrypted where all should be.
        var isReadable = false
    }

    let network: SimulatedNetwork
    var loop: VirtualEventLoop { network.loop }
    let fault: Fault
    let seed: UInt64
    let security: SessionSecurity
    let hasRelays: Bool
    var counts = WorldCounts()
    private let members: [Member]
    /// Called with each run that begins.
    var onRun: (MeshRun) -> Void = { _ in }
    private var runs: [MeshRun] = []
    private var current: [Int: MeshRun] = [:]
    private var generator: SeededGenerator
    private let agenda: WorldAgenda
    private var isQuiet = false
    private var faultPercent: Int
    private(set) var finding: Finding?

    init(seed: UInt64, fault: Fault) {
        self.seed = seed
        self.fault = fault
        var generator = SeededGenerator(seed: seed &* 0x9E37_79B9_7F4A_7C15 &+ 7)
        security = seed.isMultiple(of: Self.encryptedEvery) ? .encrypted : .none
        let hasRelays = seed % 3 != 0
        self.hasRelays = hasRelays
        let count = generator.number(3...9)
        let shuffle = generator.number(0...63)
        members = (0..<count).map { index in
            // The first is on both wires, so that nobody is out of reach.
            let wires =
                !hasRelays ? [0] : index == 0 ? [0, 1] : [[0], [1], [0, 1]][generator.number(0...2)]
            return Member(
                index: index, identity: World.identity(shuffle << 10 | index), wires: wires,
                browses: generator.chance(20))
        }
        faultPercent = generator.pick([0, 30, 100]) ?? 0
        network = Self.makeNetwork(workLimit: 4_000_000)
        agenda = WorldAgenda(of: network.loop)
        self.generator = generator
    }

    /// A world in which nothing happens by itself, with all members on one wire.
    init(calmSeed seed: UInt64, members count: Int) {
        self.seed = seed
        fault = Fault()
        security = .none
        hasRelays = false
        members = (0..<count).map {
            Member(index: $0, identity: .ephemeral(seed: UInt64($0 + 1)), wires: [0], browses: false)
        }
        faultPercent = 0
        network = Self.makeNetwork(workLimit: .max)
        agenda = WorldAgenda(of: network.loop)
        generator = SeededGenerator(seed: seed)
    }

    private static func makeNetwork(workLimit: Int) -> SimulatedNetwork {
        SimulatedNetwork(
            wires: [SimulatedNetwork.Wire(), SimulatedNetwork.Wire("spare", priority: 100)],
            on: VirtualEventLoop(workLimit: workLimit))
    }

    var memberCount: Int { members.count }

    /// The runs that have not ended, by the number of the member.
    var presentRuns: [MeshRun] { current.values.sorted { $0.member.index < $1.member.index } }

    /// Starts the run of a member whose user does nothing by itself.
    func beginNow(_ index: Int) -> MeshRun {
        let run = makeRun(members[index])
        run.start()
        return run
    }

    /// Runs the world of `seed` from beginning to end.
    package static func run(seed: UInt64) -> WorldReport { run(seed: seed, with: Fault()) }

    static func run(seed: UInt64, with fault: Fault) -> WorldReport {
        let world = MeshWorld(seed: seed, fault: fault)
        world.live()
        world.counts.worlds = 1
        world.counts.milliseconds = Int(world.loop.now.nanoseconds / 1_000_000)
        world.counts.work = world.loop.workDone
        return WorldReport(
            seed: seed, counts: world.counts, hash: UInt64(world.loop.workDone), finding: world.finding,
            log: [])
    }

    static func address(_ index: Int, on wire: Int) -> TransportAddress {
        TransportAddress(scheme: wire == 0 ? "memory" : "spare", value: "m\(index)")
    }

    /// Whether nobody may be able to read what is for others.
    var hasSecrets: Bool { hasRelays && (security != .none || fault.isReadable) }

    func plan(seed: UInt64) -> FaultPlan {
        var plan = FaultPlan.none
        plan.seed = seed
        plan.delay = .milliseconds(1)
        return plan
    }

    /// Counts a message about others that a member has received.
    func countRecord(of index: Int, _ count: Int) { current[index]?.countRecord(count) }

    func report(_ rule: Violation.Rule, _ message: String) {
        guard finding == nil else { return }
        finding = Finding(
            seed: seed, rule: rule, message: message, moment: loop.now, replay: "soak --meshes --seed \(seed)"
        )
    }

    // MARK: Time

    private func schedule(after delay: Duration, _ act: @escaping () -> Void) {
        agenda.schedule(after: delay, act)
    }

    /// Lets time pass, and carries out what is planned for it. Stops at the first finding.
    func advance(by duration: Duration) {
        do {
            try agenda.advance(by: duration, until: { finding != nil }) { try loop.run(until: $0) }
        } catch {
            report(.progress, "\(error)")
        }
    }

    /// Lives from beginning to end.
    func live() {
        for member in members { schedule(after: generator.milliseconds(0...3_000)) { self.begin(member) } }
        if faultPercent > 0 { scheduleFault() }
        advance(by: .seconds(Int64(generator.number(20...60))))
        isQuiet = true
        for run in current.values { run.faults.forEach { $0.unblock() } }
        // Invitations that fail are repeated after up to 80 s, and introducers rest for longer.
        advance(by: .seconds(400))
        checkAtRest()
        for run in presentRuns { run.close() }
        advance(by: .seconds(30))
        for run in runs
        where run.isOver && !run.hasClosed && !run.hasCrashed && finding == nil {
            report(.progress, "\(run.label) has not closed")
        }
        current = [:]
        runs = []
        // Everything that is planned, and the loop's remaining work, would keep all of it in memory.
        agenda.removeAll()
        try? loop.run(for: .seconds(3_600))
    }

    // MARK: Users

    private func begin(_ member: Member) {
        guard current[member.index] == nil else { return }
        let run = makeRun(member)
        run.start()
        scheduleUser(run)
    }

    private func makeRun(_ member: Member) -> MeshRun {
        let run = MeshRun(
            member, in: self, number: runs.count, seed: seed &* 1_000 &+ UInt64(runs.count))
        runs.append(run)
        onRun(run)
        current[member.index] = run
        counts.sessions += 1
        return run
    }

    private func scheduleUser(_ run: MeshRun) {
        schedule(after: generator.milliseconds(100...2_000)) { [self] in
            guard !run.isOver else { return }
            act(run)
            scheduleUser(run)
        }
    }

    private func act(_ run: MeshRun) {
        let others = current.values.map(\.member).filter { other in
            other.index != run.member.index && other.wires.contains(where: run.member.wires.contains)
        }.sorted { $0.index < $1.index }
        let connected = run.connected
        if isQuiet {
            // Two halves that know nothing of each other become one when somebody knows somebody.
            guard let first = others.first, !connected.contains(first.identity.peerID) else { return }
            return run.call(first)
        }
        if connected.isEmpty || generator.chance(3), let other = generator.pick(others) { run.call(other) }
        if let peer = generator.pick(connected) { run.send(generator.number(1...20), to: peer) }
        guard generator.chance(4) else { return }
        current[run.member.index] = nil
        if generator.chance(50) {
            run.close()
        } else {
            counts.kills += 1
            run.crash()
        }
        schedule(after: generator.milliseconds(200...20_000)) { self.begin(run.member) }
    }

    // MARK: Faults

    private func scheduleFault() {
        schedule(after: generator.milliseconds(300...4_000)) { [self] in
            guard !isQuiet else { return }
            if generator.chance(faultPercent) { causeFault() }
            scheduleFault()
        }
    }

    private func causeFault() {
        let victims = presentRuns
        guard let victim = generator.pick(victims), let control = generator.pick(victim.faults) else {
            return
        }
        switch generator.number(0...2) {
        case 0:
            counts.cuts += 1
            control.cut()
        case 1:
            counts.blocks += 1
            control.block()
            schedule(after: generator.milliseconds(200...30_000)) { control.unblock() }
        default:
            guard let other = generator.pick(victims) else { return }
            counts.partitions += 1
            let targets = other.member.wires.map { Self.address(other.member.index, on: $0) }
            // The transport under another scheme knows the addresses of memory only.
            let addresses = targets.map { TransportAddress(scheme: "memory", value: $0.value) }
            for address in addresses { control.block(.address(address)) }
            schedule(after: generator.milliseconds(200...30_000)) {
                for address in addresses { control.unblock(.address(address)) }
            }
        }
    }

    // MARK: Checks

    private func checkAtRest() {
        let present = presentRuns
        let ids = Set(present.map(\.id))
        for run in present {
            let inspection = run.session.inspection
            for peer in inspection.peers where peer.state.hasConversation && !ids.contains(peer.id) {
                report(.ghosts, "\(run.label) is connected to \(peer.id.short), which is gone")
            }
            for other in present where other !== run {
                check(run, other, canReach: canReach(run, other, present))
            }
            let conversations = inspection.peers.count { $0.state.hasConversation }
            if inspection.links != conversations {
                report(.oneLink, "\(run.label) has \(inspection.links) links for \(conversations) peers")
            }
            if run.session.inconsistencies != [] {
                report(.consistency, "\(run.label): \(run.session.inconsistencies)")
            }
        }
    }

    /// Whether two are on one wire, or somebody can carry a pipe between them.
    private func canReach(_ run: MeshRun, _ other: MeshRun, _ present: [MeshRun]) -> Bool {
        func share(_ a: MeshRun, _ b: MeshRun) -> Bool {
            a.member.wires.contains(where: b.member.wires.contains)
        }
        return share(run, other)
            || hasRelays
                && present.contains { $0 !== run && $0 !== other && share($0, run) && share($0, other) }
    }

    private func check(_ run: MeshRun, _ other: MeshRun, canReach: Bool) {
        guard canReach else { return }
        let (view, back) = (run.session.inspection(of: other.id), other.session.inspection(of: run.id))
        guard let view, view.state == .connected, let conversation = view.conversation,
            back?.conversation == conversation
        else {
            return report(
                .agreement,
                "\(run.label) sees \(other.label) as \(view.map { "\($0.state)" } ?? "unknown"), and is seen as "
                    + "\(back.map { "\($0.state)" } ?? "unknown")")
        }
        let isDirect = run.member.wires.contains(where: other.member.wires.contains)
        if isDirect == (view.transport == "via") {
            report(.ways, "\(run.label) is connected to \(other.label) over \(view.transport ?? "nothing")")
        }
        if !isDirect { counts.relayed += 1 }
        if run.sent[conversation] != other.received[conversation] {
            report(
                .delivery,
                "\(other.label) has \(other.received[conversation] ?? 0) messages of \(run.label), not "
                    + "\(run.sent[conversation] ?? 0)")
        }
    }
}
