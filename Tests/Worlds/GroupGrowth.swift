import NighCore
import NighTestKit
import NighGroups
import NighMemory

/// The cost of a group of one host and its guests, who know the host only.
package struct GroupGrowth: Sendable {
    /// The number of sessions, the host included.
    package let size: Int
    /// The virtual time from the last guest's start until the host had all guests as members, and each guest the host,
    /// in milliseconds; nil if that never happened.
    package let milliseconds: Int?
    /// The messages about groups that the host has received.
    package let hostRecords: Int
    /// Those that one guest has received, on average.
    package let guestRecords: Double
    /// The bytes of those that the host has received.
    package let hostRecordBytes: Int
    /// The virtual time from sending one message of 64 bytes to the group until the last guest had it, in milliseconds.
    package let messageMilliseconds: Int?
    /// Pieces of work that the loop has done for that message, of all sessions together.
    package let messageWork: Int

    /// Connects guests to a host, one every 5 ms; all join a group, and the host sends it a message.
    package static func run(size: Int) -> GroupGrowth { GroupHostWorld(size: size).run() }
}

/// A host and its guests in virtual time.
///
/// `@unchecked Sendable`: confined to the thread that runs it.
private final class GroupHostWorld: @unchecked Sendable {
    /// The messages about groups that a session has received.
    ///
    /// `@unchecked Sendable`: confined to the thread that runs the world.
    private final class Records: @unchecked Sendable {
        var count = 0
        var bytes = 0
    }

    /// The host or a guest.
    ///
    /// `@unchecked Sendable`: confined to the thread that runs the world.
    private final class Member: @unchecked Sendable {
        let groups = Groups()
        let records = Records()
        var session: Session?
        var members: Set<PeerID> = []
        var received = 0
        var membership: (membership: Membership, messages: MessageSequence)?
    }

    private static let name = GroupName("all").unsafelyUnwrapped
    private static let pace = Duration.milliseconds(5)

    private let network: SimulatedNetwork
    private var loop: VirtualEventLoop { network.loop }
    private let size: Int
    private var members: [Member] = []

    init(size: Int) {
        self.size = size
        var plan = FaultPlan.none
        plan.delay = .milliseconds(1)
        network = SimulatedNetwork(
            wires: [SimulatedNetwork.Wire(plan: plan)], on: VirtualEventLoop(workLimit: .max))
    }

    func run() -> GroupGrowth {
        start(0)
        advance(Self.pace)
        for index in 1..<size {
            start(index)
            let address = TransportAddress(scheme: "memory", value: "m0")
            members[index].session?.invite(at: address) { _ in }
            advance(Self.pace)
        }
        let last = loop.now
        let isComplete = wait {
            members[0].members.count == size - 1 && members.dropFirst().allSatisfy { $0.members.count == 1 }
        }
        let milliseconds = isComplete ? Int((loop.now - last).nanoseconds / 1_000_000) : nil
        // Let everything come to rest first.
        advance(.seconds(2))
        let (work, sentAt) = (loop.workDone, loop.now)
        if let membership = members[0].membership?.membership, let host = members[0].session {
            _ = members[0].groups.trySend(
                ByteSlice([UInt8](repeating: 7, count: 64)), to: membership, of: host)
        }
        let hasArrived = wait {
            for member in members.dropFirst() {
                while member.membership?.messages.poll() != nil { member.received += 1 }
            }
            return members.dropFirst().allSatisfy { $0.received == 1 }
        }
        let guests = members.dropFirst()
        let growth = GroupGrowth(
            size: size, milliseconds: milliseconds, hostRecords: members[0].records.count,
            guestRecords: Double(guests.reduce(0) { $0 + $1.records.count }) / Double(max(guests.count, 1)),
            hostRecordBytes: members[0].records.bytes,
            messageMilliseconds: hasArrived ? Int((loop.now - sentAt).nanoseconds / 1_000_000) : nil,
            messageWork: loop.workDone - work)
        for member in members { member.session?.crash() }
        return growth
    }

    private func start(_ index: Int) {
        let member = Member()
        let records = member.records
        let tap = TappedLayer(member.groups) { bytes in
            records.count += 1
            records.bytes += bytes.byteCount
            return true
        }
        member.session =
            network.join(role: .server, at: "m\(index)", layers: [tap]) {
                $0.security = .none
                $0.limits.peers = index == 0 ? size : 1
            }.session
        members.append(member)
        member.groups.report(
            to: Groups.Observer { [unowned member] event in
                switch event {
                case .memberJoined(let peer, _, _): member.members.insert(peer)
                case .memberLeft(let peer, _): member.members.remove(peer)
                case .refused: break
                }
            })
        member.membership = try? member.groups.join(Self.name, context: []) { _, _ in nil }
    }

    private func advance(_ duration: Duration) { try? loop.run(for: duration) }

    /// Lets time pass until `isDone`, for at most 60 s. Returns whether it was.
    private func wait(until isDone: () -> Bool) -> Bool {
        let end = loop.now + .seconds(60)
        while loop.now < end {
            if isDone() { return true }
            advance(.milliseconds(1))
        }
        return false
    }
}
