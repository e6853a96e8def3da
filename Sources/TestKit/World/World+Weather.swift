import NighCore
import NighMemory

// The faults of a world: links break, lines fall silent, groups are cut off from each other, sessions die and come
// back.

extension World {
    func scheduleWeather() {
        guard plan.kind != .calm else { return }
        let pace = plan.weatherPace
        later(generator.milliseconds(pace / 4...pace * 2)) { [self] in
            guard !isQuiet else { return }
            injectFault()
            scheduleWeather()
        }
    }

    /// Opens the better transports. Until then conversations begin on the worse ones, and nothing may be lost when they
    /// move.
    func scheduleBetterWays() {
        later(.milliseconds(plan.betterWaysOpenAt)) { [self] in
            guard !betterWaysAreOpen else { return }
            betterWaysAreOpen = true
            note(.weather, "the better ways are open")
            for life in awake { life.faults.plan.refuse = nil }
        }
    }

    private func injectFault() {
        guard let life = generator.pick(awake) else { return }
        guard plan.kind == .storm else { return cut(life) }
        if let spare = life.spare, generator.chance(20) {
            life.note(.weather, 6, 0, "cut the spare ways")
            return spare.control.cut()
        }
        switch generator.number(0...99) {
        case 0..<40: cut(life)
        case 40..<55: blockForAWhile(life)
        case 55..<65: stallForAWhile(life)
        case 65..<75: partitionForAWhile()
        case 75..<83:
            life.faults.plan = WorldPlan.faults(
                plan.kind, isEncrypted: plan.security == .encrypted, &generator)
        case 83..<95: kill(life)
        default:
            if let gone = generator.pick(inhabitants.filter { $0.life == nil && $0.lives.count > 0 }) {
                begin(gone)
            }
        }
    }

    private func target(for life: Life) -> FaultControl.Target {
        let pipes = life.faults.pipes.map(\.number)
        if generator.chance(50), let pipe = generator.pick(pipes) { return .pipe(pipe) }
        if generator.chance(70), let other = other(than: life) { return .address(other.address) }
        return .all
    }

    private func other(than life: Life) -> Life? { generator.pick(awake.filter { $0 !== life }) }

    private func cut(_ life: Life) {
        let target = target(for: life)
        life.note(.weather, 1, 0, "cut \(target)")
        counts.cuts += 1
        life.faults.cut(target)
    }

    private var direction: FaultPlan.Direction { generator.pick(FaultPlan.Direction.allCases) ?? .both }

    /// Drops bytes for a while.
    private func blockForAWhile(_ life: Life) {
        guard let other = other(than: life) else { return }
        let target = FaultControl.Target.address(other.address)
        let direction = direction
        life.note(.weather, 2, other.index, "blocks \(target) \(direction)")
        counts.blocks += 1
        life.faults.block(target, direction, dials: generator.chance(50) ? .refuse : .timeOut)
        later(generator.milliseconds(100...10_000)) {
            life.note(.weather, 3, other.index, "unblocks \(target)")
            life.faults.unblock(target)
        }
    }

    /// Holds bytes back for a while.
    private func stallForAWhile(_ life: Life) {
        let target = target(for: life)
        let direction = direction
        life.note(.weather, 4, 0, "stalls \(target) \(direction)")
        counts.blocks += 1
        life.faults.stall(target, direction)
        later(generator.milliseconds(100...12_000)) {
            life.note(.weather, 5, 0, "releases \(target)")
            life.faults.release(target)
        }
    }

    /// Cuts two groups off from each other for a while.
    private func partitionForAWhile() {
        let lives = awake
        let group = lives.filter { _ in generator.chance(50) }
        let rest = lives.filter { life in !group.contains { $0 === life } }
        guard !group.isEmpty, !rest.isEmpty else { return }
        note(.weather, "divides \(group.map(\.label)) from \(rest.map(\.label))")
        counts.partitions += 1
        let dials: FaultControl.BlockedDials = generator.chance(30) ? .refuse : .timeOut
        for one in group {
            for another in rest {
                one.faults.block(.address(another.address), .both, dials: dials)
                another.faults.block(.address(one.address), .both, dials: dials)
            }
        }
        later(generator.milliseconds(500...15_000)) { [self] in
            note(.weather, "joins \(group.map(\.label)) and \(rest.map(\.label))")
            for one in group {
                for another in rest {
                    one.faults.unblock(.address(another.address))
                    another.faults.unblock(.address(one.address))
                }
            }
        }
    }

    /// Kills a session without a goodbye. It may come back.
    private func kill(_ life: Life) {
        counts.kills += 1
        switch generator.number(0...2) {
        case 0: life.faults.cut()
        case 1:
            // The others notice it only by silence.
            let others = inhabitants.compactMap(\.life).filter { $0 !== life }
            for other in others { other.faults.block(.address(life.address), .incoming) }
            later(generator.milliseconds(1_000...15_000)) {
                for other in others { other.faults.unblock(.address(life.address)) }
            }
        default: break
        }
        life.kill()
        guard generator.chance(75) else { return }
        let owner = life.owner
        let elsewhere = generator.chance(50)
        if generator.chance(20) { return begin(owner, elsewhere: elsewhere) }
        later(generator.milliseconds(1...8_000)) { [self] in
            if !isQuiet { begin(owner, elsewhere: elsewhere) }
        }
    }
}
