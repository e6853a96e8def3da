import NighCore
import NighGroups
import NighMemory
import NighTestKit
import Testing

/// Connected sessions with groups, in virtual time, over a network that a test disturbs.
private final class Network {
    /// One session, and what its groups reported.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    final class Member: @unchecked Sendable {
        let probe: SessionProbe
        let groups: Groups
        fileprivate(set) var violations: [NighError] = []
        private var inboxes: [GroupName: (membership: Membership, messages: MessageSequence)] = [:]
        /// The messages received in each group: sender and number.
        private(set) var received: [GroupName: [(sender: PeerID, number: Int)]] = [:]

        var session: Session { probe.session }

        fileprivate init(_ probe: SessionProbe, _ groups: Groups) {
            self.probe = probe
            self.groups = groups
        }

        func join(_ name: GroupName) throws(NighError) {
            inboxes[name] = try groups.join(name, context: []) { _, _ in nil }
        }

        func leave(_ name: GroupName) {
            read()
            leaveWithoutReading(name)
        }

        func leaveWithoutReading(_ name: GroupName) {
            if let (membership, _) = inboxes.removeValue(forKey: name) { groups.leave(membership) }
        }

        func members(of name: GroupName) -> [PeerID]? {
            (inboxes[name]?.membership).map(groups.members(of:))
        }

        func read() {
            for (name, inbox) in inboxes {
                while let message = inbox.messages.poll() {
                    let number = message.bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
                    received[name, default: []].append((message.sender, number))
                }
            }
        }

        func send(_ number: Int, size: Int = 4, to name: GroupName) -> Int {
            let bytes = (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
            let payload = ByteSlice(bytes + [UInt8](repeating: 7, count: size - 4))
            guard let membership = inboxes[name]?.membership else { return 0 }
            return groups.trySend(payload, to: membership, of: session)
        }
    }

    private let network: SimulatedNetwork
    let members: [Member]

    init(_ count: Int, plan: String = "", adjust: @escaping (inout SessionConfiguration) -> Void = { _ in })
        throws
    {
        let plan = try FaultPlan(parsing: plan)
        let network = SimulatedNetwork(wires: [.init(plan: plan)], adjust: adjust)
        self.network = network
        members = (0..<count).map { _ in
            let groups = Groups()
            let member = Member(network.join(layers: [groups]), groups)
            groups.report(
                to: Groups.Observer(
                    changed: { _ in }, violated: { [unowned member] in member.violations.append($0) }))
            return member
        }
        try run(.seconds(1))
        inviteAll()
        try run(.seconds(2))
    }

    /// Has each member invite those behind it.
    func inviteAll() {
        for (index, member) in members.enumerated() {
            for other in members[(index + 1)...] { member.probe.invite(other.probe) }
        }
    }

    func run(_ time: Duration) throws { try network.run(for: time) }
}

@Suite("Groups of sessions") struct GroupsTests {
    private let red = GroupName("red")!
    private let blue = GroupName("blue")!

    @Test func `carry messages to their members only, at every size`() throws {
        let network = try Network(4)
        let members = network.members
        for member in members[..<3] { try member.join(red) }
        try members[0].join(blue)
        try members[3].join(blue)
        try network.run(.milliseconds(100))
        let sizes = [4, 5, 100, 8_192, 16_383, 16_384, 100_000]
        for (number, size) in sizes.enumerated() {
            #expect(members[0].send(number, size: size, to: red) == 2)
            #expect(members[0].send(100 + number, size: size, to: blue) == 1)
        }
        try network.run(.seconds(1))
        for member in members { member.read() }
        let numbers = Array(sizes.indices)
        for member in members[1...2] {
            #expect(member.received.keys.sorted() == [red])
            #expect(member.received[red]?.map(\.number) == numbers)
            #expect(member.received[red]?.allSatisfy { $0.sender == members[0].session.id } == true)
        }
        #expect(members[3].received.keys.sorted() == [blue])
        #expect(members[3].received[blue]?.map(\.number) == numbers.map { $0 + 100 })
        #expect(members[0].received.isEmpty)
    }

    @Test func `slow a sender down whose messages are not read, and deliver them all once they are`() throws {
        let network = try Network(2) {
            $0.limits.receiveWindow = 64 << 10
            $0.limits.sendBuffer = 64 << 10
        }
        let (puma, lynx) = (network.members[0], network.members[1])
        for member in network.members { try member.join(red) }
        try network.run(.milliseconds(100))
        var sent = 0
        for _ in 0..<1_000 {
            sent += puma.send(sent, size: 1_024, to: red)
            try network.run(.milliseconds(1))
        }
        // 64 messages that are not read, 64 that are not acknowledged, and one more for each.
        #expect(sent <= 2 * 64 + 2 && sent >= 64, "\(sent)")
        lynx.read()
        try network.run(.seconds(1))
        lynx.read()
        #expect(lynx.received[red]?.map(\.number) == Array(0..<sent))
        // There is room for others again, also after what was not read has been dropped.
        for _ in 0..<3 {
            while puma.send(sent, size: 1_024, to: red) > 0 { sent += 1 }
            try network.run(.seconds(1))
            lynx.leaveWithoutReading(red)
            try network.run(.seconds(1))
            try lynx.join(red)
            try network.run(.seconds(1))
            #expect(puma.send(sent, size: 1_024, to: red) == 1)
        }
    }

    @Test func `end a conversation whose peer says about them what makes no sense`() throws {
        let network = try Network(2)
        let (puma, lynx) = (network.members[0], network.members[1])
        let record = ByteSlice(GroupRecord.leave(number: 9).bytes)
        try puma.session.trySend(record, of: GroupRecord.kind, to: lynx.session.id)
        try network.run(.seconds(5))
        #expect(!lynx.session.connectedPeerIDs.contains(puma.session.id))
        let cause = try #require(lynx.violations.first).cause
        let isViolation = if case .protocolViolation = cause { true } else { false }
        #expect(isViolation, "\(cause)")
    }

    /// Joins, leaves, messages, cuts, and ends of conversations in any order. What a member sends to a group arrives at
    /// each other one in order and never twice, and in the end all agree on the members.
    @Test(arguments: 0..<40 as Range<UInt64>)
    func `keep their order and agree in the end, whatever happens`(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let network = try Network(4, plan: "delay=5ms,jitter=20ms") {
            // So low that there is often no room for what members tell each other.
            $0.limits.sendBuffer = 2_000
        }
        let names = [red, blue]
        var number = 0
        for _ in 0..<300 {
            let member = network.members.randomElement(using: &random)!
            let other = network.members.randomElement(using: &random)!
            let name = names.randomElement(using: &random)!
            switch Int.random(in: 0..<20, using: &random) {
            // It may have joined already.
            case 0..<4: try? member.join(name)
            case 4, 5: member.leave(name)
            case 6: member.probe.faults.cut()
            case 7: if member !== other { member.session.disconnect(other.session.id) }
            case 8, 9: if member !== other { member.probe.invite(other.probe) }
            case 10..<12:
                try network.run(.milliseconds(Int64.random(in: 0..<500, using: &random)))
                member.read()
            default:
                number += 1
                _ = member.send(number, size: Int.random(in: 4..<900, using: &random), to: name)
            }
        }
        try network.run(.seconds(30))
        network.inviteAll()
        try network.run(.seconds(30))
        for member in network.members {
            member.read()
            for (_, received) in member.received {
                for (_, messages) in Dictionary(grouping: received, by: \.sender) {
                    let numbers = messages.map(\.number)
                    #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
                }
            }
        }
        for name in names {
            let inside = network.members.filter { $0.groups.names.contains(name) }
            for member in inside {
                let others = inside.filter { $0 !== member }.map(\.session.id).sorted()
                #expect(member.members(of: name) == others)
            }
        }
    }
}
