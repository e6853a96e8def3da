import NighCore
import NighTestKit
import NighGroups

// Groups of users, and the rules that these must keep.

/// The groups of one run, and what it was told and has received.
///
/// `@unchecked Sendable`: confined to the thread that runs the world.
final class WorldGroups: @unchecked Sendable {
    let groups = Groups()
    private weak var run: SessionRun?
    fileprivate var joined: [GroupName: (membership: Membership, messages: MessageSequence)] = [:]
    /// The members according to the events.
    fileprivate var reported: [GroupName: Set<PeerID>] = [:]
    /// Those who have refused this run since it has joined.
    fileprivate var refusedBy: [GroupName: Set<PeerID>] = [:]
    /// The context with which this run has joined each group, and by which others decide.
    fileprivate var badges: [GroupName: UInt8] = [:]
    /// The last message from each peer in each group.
    private var last: [GroupName: [PeerID: UInt64]] = [:]

    /// Reports what is wrong to a run.
    func report(to run: SessionRun) {
        self.run = run
        groups.report(
            to: Groups.Observer(
                changed: { [weak self] in self?.note($0) },
                violated: { [weak run] in run?.report(.consistency, "ends a conversation: \($0)") }))
    }

    private func note(_ event: GroupTable.Event) {
        switch event {
        case .memberJoined(let peer, let name, let context):
            if let own = badges[name], let theirs = context.first, Self.refuses(own, theirs) {
                run?.report(.refusals, "has \(peer.short) in \(name), which it refuses")
            }
            if run?.states.state(of: peer).hasConversation == false {
                run?.report(.moves, "\(peer.short) joins \(name) without a conversation")
            }
            if !reported[name, default: []].insert(peer).inserted {
                run?.report(.moves, "\(peer.short) joins \(name) twice")
            }
        case .memberLeft(let peer, let name):
            if reported[name]?.remove(peer) == nil {
                run?.report(.moves, "\(peer.short) leaves \(name) twice")
            }
        case .refused(let peer, let name, let reason):
            refusedBy[name, default: []].insert(peer)
            guard let own = badges[name], let theirs = UInt8(reason), Self.refuses(theirs, own) else {
                run?.report(.refusals, "\(peer.short) refuses it in \(name) because of \"\(reason)\"")
                return
            }
        }
    }

    /// Whether somebody who has joined with one badge refuses somebody with another one. Not always do both refuse.
    fileprivate static func refuses(_ own: UInt8, _ theirs: UInt8) -> Bool { (3 * own + theirs) % 7 == 0 }

    /// Joins a group with a badge, by which others decide about this run. It refuses with its own badge as the reason.
    fileprivate func join(_ name: GroupName, badge: UInt8, forgettingRefusals: Bool) {
        badges[name] = badge
        // Joining fails while the session is closing.
        joined[name] = try? groups.join(name, context: [badge]) { _, context in
            guard !forgettingRefusals, let theirs = context.first, Self.refuses(badge, theirs) else {
                return nil
            }
            return "\(badge)"
        }
    }

    fileprivate func leave(_ name: GroupName) {
        guard let (membership, _) = joined.removeValue(forKey: name) else { return }
        groups.leave(membership)
        reported[name] = nil
        badges[name] = nil
        refusedBy[name] = nil
    }

    /// Reads what has come in all groups. Returns how many messages these were.
    fileprivate func read() -> Int {
        var count = 0
        for (name, (_, messages)) in joined.sorted(by: { $0.key < $1.key }) {
            while let message = messages.poll() {
                count += 1
                check(message, in: name)
            }
        }
        return count
    }

    private func check(_ message: Message, in name: GroupName) {
        let bytes = message.bytes
        let number = bytes.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        if bytes != WorldGroups.message(number, count: bytes.count) {
            run?.report(.order, "a message to \(name) from \(message.sender.short) was changed")
        }
        if let before = last[name]?[message.sender], number <= before {
            run?.report(.exactlyOnce, "message \(number) to \(name) comes after \(before)")
        }
        last[name, default: [:]][message.sender] = number
    }

    /// Makes a message with this number.
    fileprivate static func message(_ number: UInt64, count: Int) -> [UInt8] {
        let head = (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * UInt64($0))) }
        return head + [UInt8](repeating: UInt8(truncatingIfNeeded: number &* 7), count: max(0, count - 8))
    }
}

extension World {
    private static let groupNames = ["red", "blue"].map { GroupName($0).unsafelyUnwrapped }

    /// Whether a user's session has groups. Some that take messages of kinds have none.
    func hasGroups(_ index: Int) -> Bool { acceptsKinds(index) && (seed &+ UInt64(index)) % 5 != 0 }

    /// Lets the user of a run join and leave groups and send to them, and read what others send.
    func scheduleGroups(_ run: SessionRun) {
        guard run.groups != nil else { return }
        schedule(after: groupGenerator.milliseconds(100...2_500)) { [self] in
            guard run.session != nil, !run.isClosing, let groups = run.groups else { return }
            counts.groupMessages += groups.read()
            if !isQuiet { act(groups, of: run) }
            scheduleGroups(run)
        }
    }

    private func act(_ groups: WorldGroups, of run: SessionRun) {
        guard let name = groupGenerator.pick(Self.groupNames), let session = run.session else { return }
        guard let membership = groups.joined[name]?.membership else {
            let badge = UInt8(groupGenerator.number(0...6))
            return groups.join(name, badge: badge, forgettingRefusals: forgetsRefusals)
        }
        guard !groupGenerator.chance(12) else { return groups.leave(name) }
        for _ in 0..<groupGenerator.number(1...6) {
            lastGroupMessage += 1
            let size =
                groupGenerator.chance(85) ? groupGenerator.number(8...600) : groupGenerator.number(8...40_000)
            let message = ByteSlice(WorldGroups.message(lastGroupMessage, count: size))
            _ = groups.groups.trySend(message, to: membership, of: session)
        }
    }

    /// Checks that all agree on who is in which group with whom.
    func checkGroupsAtRest() {
        for run in activeRuns {
            guard let groups = run.groups else { continue }
            counts.groupMessages += groups.read()
            for (name, (membership, _)) in groups.joined.sorted(by: { $0.key < $1.key }) {
                let others = activeRuns.filter { other in
                    other !== run && other.groups?.joined[name] != nil
                        && run.states.state(of: id(other.index)) == .connected
                }
                let badge = groups.badges[name] ?? 0
                func theirs(_ other: SessionRun) -> UInt8 { other.groups?.badges[name] ?? 0 }
                let refusing = others.filter { WorldGroups.refuses(theirs($0), badge) }.map { id($0.index) }
                let expected = others.filter {
                    !WorldGroups.refuses(theirs($0), badge) && !WorldGroups.refuses(badge, theirs($0))
                }.map { id($0.index) }.sorted()
                if let silent = refusing.first(where: { !groups.refusedBy[name, default: []].contains($0) }) {
                    run.report(.refusals, "was not told that \(silent.short) refuses it in \(name)")
                }
                let members = groups.groups.members(of: membership)
                if members != expected || groups.reported[name, default: []].sorted() != expected {
                    run.report(
                        .agreement,
                        "has in \(name) \(members.map(\.short)), was told \(groups.reported[name, default: []].map(\.short)), "
                            + "and should have \(expected.map(\.short))")
                }
            }
        }
    }
}
