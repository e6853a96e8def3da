import NighCore
import NighTestKit
import NighMemory

// The faults of a world: links break, lines fall silent, groups are cut off from each other, sessions die and come
// back.

extension World {
    func scheduleFaults() {
        guard plan.kind != .calm else { return }
        let pace = plan.faultPace
        schedule(after: generator.milliseconds(pace / 4...pace * 2)) { [self] in
            guard !isQuiet else { return }
            injectFault()
            scheduleFaults()
        }
    }

    /// Opens the better transports. Until then conversations begin on the worse ones, and nothing may be lost when they
    /// move.
    func scheduleBetterTransports() {
        schedule(after: .milliseconds(plan.betterTransportsOpenAt)) { [self] in
            guard !betterTransportsAreOpen else { return }
            betterTransportsAreOpen = true
            note(.fault, "the better transports are open")
            for run in activeRuns { run.faults.plan.refuse = nil }
        }
    }

    private func injectFault() {
        guard let run = generator.pick(activeRuns) else { return }
        guard plan.kind == .storm else { return cut(run) }
        if let spare = run.spareFaults, generator.chance(20) {
            run.note(.fault, 6, 0, "cuts the spare transports")
            return spare.cut()
        }
        switch generator.number(0...99) {
        case 0..<40: cut(run)
        case 40..<55: blockForAWhile(run)
        case 55..<65: stallForAWhile(run)
        case 65..<75: partitionForAWhile()
        case 75..<83:
            run.faults.plan = WorldPlan.faults(
                plan.kind, isEncrypted: plan.security == .encrypted, &generator)
        case 83..<95: kill(run)
        default:
            if let gone = generator.pick(peers.filter { $0.currentRun == nil && $0.runs.count > 0 }) {
                begin(gone)
            }
        }
    }

    private func target(for run: SessionRun) -> FaultControl.Target {
        let pipes = run.faults.pipes.map(\.number)
        if generator.chance(50), let pipe = generator.pick(pipes) { return .pipe(pipe) }
        if generator.chance(70), let other = other(than: run) { return .address(other.address) }
        return .all
    }

    private func other(than run: SessionRun) -> SessionRun? {
        generator.pick(activeRuns.filter { $0 !== run })
    }

    private func cut(_ run: SessionRun) {
        let target = target(for: run)
        run.note(.fault, 1, 0, "cuts \(target)")
        counts.cuts += 1
        run.faults.cut(target)
    }

    private var direction: FaultPlan.Direction { generator.pick(FaultPlan.Direction.allCases) ?? .both }

    /// Drops bytes for a while.
    private func blockForAWhile(_ run: SessionRun) {
        guard let other = other(than: run) else { return }
        let target = FaultControl.Target.address(other.address)
        let direction = direction
        run.note(.fault, 2, other.index, "blocks \(target) \(direction)")
        counts.blocks += 1
        run.faults.block(target, direction, dials: generator.chance(50) ? .refuse : .timeOut)
        schedule(after: generator.milliseconds(100...10_000)) {
            run.note(.fault, 3, other.index, "unblocks \(target)")
            run.faults.unblock(target)
        }
    }

    /// Holds bytes back for a while.
    private func stallForAWhile(_ run: SessionRun) {
        let target = target(for: run)
        let direction = direction
        run.note(.fault, 4, 0, "stalls \(target) \(direction)")
        counts.blocks += 1
        run.faults.stall(target, direction)
        schedule(after: generator.milliseconds(100...12_000)) {
            run.note(.fault, 5, 0, "releases \(target)")
            run.faults.release(target)
        }
    }

    /// Cuts two groups off from each other for a while.
    private func partitionForAWhile() {
        let runs = activeRuns
        let group = runs.filter { _ in generator.chance(50) }
        let rest = runs.filter { run in !group.contains { $0 === run } }
        guard !group.isEmpty, !rest.isEmpty else { return }
        note(.fault, "divides \(group.map(\.label)) from \(rest.map(\.label))")
        counts.partitions += 1
        let dials: FaultControl.BlockedDials = generator.chance(30) ? .refuse : .timeOut
        for one in group {
            for another in rest {
                one.faults.block(.address(another.address), .both, dials: dials)
                another.faults.block(.address(one.address), .both, dials: dials)
            }
        }
        schedule(after: generator.milliseconds(500...15_000)) { [self] in
            note(.fault, "joins \(group.map(\.label)) and \(rest.map(\.label))")
            for one in group {
                for another in rest {
                    one.faults.unblock(.address(another.address))
                    another.faults.unblock(.address(one.address))
                }
            }
        }
    }

    /// Kills a session without a goodbye. It may come back.
    private func kill(_ run: SessionRun) {
        counts.kills += 1
        switch generator.number(0...2) {
        case 0: run.faults.cut()
        case 1:
            // The others notice it only by silence.
            let others = peers.compactMap(\.currentRun).filter { $0 !== run }
            for other in others { other.faults.block(.address(run.address), .incoming) }
            schedule(after: generator.milliseconds(1_000...15_000)) {
                for other in others { other.faults.unblock(.address(run.address)) }
            }
        default: break
        }
        run.kill()
        guard generator.chance(75) else { return }
        let owner = run.owner
        let elsewhere = generator.chance(50)
        if generator.chance(20) { return begin(owner, elsewhere: elsewhere) }
        schedule(after: generator.milliseconds(1...8_000)) { [self] in
            if !isQuiet { begin(owner, elsewhere: elsewhere) }
        }
    }
}
