import NighCore
import NighIntroductions
import NighTestKit
import Testing

@Suite("A mesh") struct MeshTests {
    @Test(arguments: [3, 8, 64])
    func `connects all pairs, with one link each, when members join one after another`(count: Int) throws {
        let network = MeshNetwork()
        network.start(0)
        try network.run(.milliseconds(10))
        for index in 1..<count {
            network.join(index, at: 0)
            try network.run(.milliseconds(30))
        }
        try network.complete(within: .seconds(5))
        try network.run(.seconds(10))
        network.checkLinks()
        for member in network.members {
            #expect(member.meetings.values.allSatisfy { $0 == 1 }, "\(member.meetings)")
            // Its own dial, and at most one for each other member.
            #expect(member.dials <= count, "\(member.index) dials \(member.dials) times")
            // Only the first one's program is asked, and only about those who invite it without an introduction.
            #expect(member.asked == (member.index == 0 ? count - 1 : 0))
        }
        let dials = network.members.reduce(0) { $0 + $1.dials }
        #expect(dials <= count * (count - 1) / 2 + count)
    }

    @Test(arguments: [true, false])
    func `dials where a member says that another is only if the transport agrees`(isDialled: Bool) throws {
        let network = MeshNetwork()
        nonisolated(unsafe) var asked: Set<String> = []  // the loop is virtual: one thread
        network.mayDialIntroduced = { address, introducer in
            asked.insert("\(address) from \(introducer.map(\.description) ?? "nowhere")")
            return isDialled
        }
        network.start(0)
        try network.run(.milliseconds(10))
        for index in 1...2 { network.join(index, at: 0) }
        try network.run(.seconds(30))
        #expect(network.members.map(\.connected.count) == (isDialled ? [2, 2, 2] : [2, 1, 1]))
        // The first member has told both of them where the other one is.
        let reported: Set = ["memory://m1 from memory://m0", "memory://m2 from memory://m0"]
        #expect(!asked.isEmpty && asked.isSubset(of: reported))
        if !isDialled { #expect(network.members.dropFirst().map(\.dials) == [1, 1]) }
    }

    @Test func `connects all when all join at once, each through the one before it`() throws {
        let network = MeshNetwork()
        for index in 0..<12 { network.start(index) }
        try network.run(.milliseconds(10))
        for index in 1..<12 {
            network.members[index].session.invite(at: MeshNetwork.address(index - 1)) { _ in }
        }
        try network.complete(within: .seconds(10))
        try network.run(.seconds(10))
        network.checkLinks()
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `lets members leave and return in any order, and tells the others once each time`(
        seed: UInt64
    ) throws {
        var generator = SeededGenerator(seed: seed)
        let network = try MeshNetwork.joined(8, after: .seconds(6))
        network.checkLinks()
        var away: [Int] = []
        for _ in 0..<20 {
            if away.isEmpty || (generator.next() % 2 == 0 && network.members.count > 2),
                let leaving = network.members.randomElement(using: &generator)
            {
                let before = network.members.filter { $0 !== leaving }
                    .map { ($0, $0.partings(from: leaving.id)) }
                let mayBeMet = Set(before.filter { $0.0.connected.contains(leaving.id) }.map(\.0.index))
                network.close(leaving)
                away.append(leaving.index)
                try network.run(.milliseconds(Int64.random(in: 300...2_500, using: &generator)))
                for (other, count) in before where mayBeMet.contains(other.index) {
                    #expect(other.partings(from: leaving.id) == count + 1)
                }
            } else if let index = away.randomElement(using: &generator),
                let host = network.members.randomElement(using: &generator)
            {
                away.removeAll { $0 == index }
                network.join(index, at: host.index)
                try network.run(.milliseconds(Int64.random(in: 300...2_500, using: &generator)))
            }
        }
        try network.complete(within: .seconds(10))
        try network.run(.seconds(10))
        network.checkLinks()
    }

    @Test func `becomes complete although a member dies in the middle of an introduction`() throws {
        let network = try MeshNetwork.joined(4, after: .seconds(5))
        network.checkLinks()
        let (host, guest) = (network.members[0], network.join(4, at: 0))
        // It has heard of the others, and dies before they are all connected.
        _ = try network.loop.run(
            until: { guest.connected.contains(host.id) && guest.connected.count >= 2 }, within: .seconds(5))
        network.crash(host)
        try network.complete(within: .seconds(40))
        try network.run(.seconds(40))
        network.checkLinks()
        for member in network.members { #expect(member.partings(from: host.id) <= 1) }
    }

    @Test func `brings two members together again that were cut off for longer than the grace`() throws {
        let network = try MeshNetwork.joined(4, after: .seconds(5))
        let (second, third) = (network.members[1], network.members[2])
        second.faults.block(.address(MeshNetwork.address(2)))
        third.faults.block(.address(MeshNetwork.address(1)))
        try network.run(.seconds(60))
        #expect(!second.connected.contains(third.id) && !third.connected.contains(second.id))
        for member in [second, third] { member.faults.unblock() }
        try network.complete(within: .seconds(90))
        try network.run(.seconds(5))
        network.checkLinks()
    }

    @Test func `leaves two members alone of which one has disconnected the other`() throws {
        let network = try MeshNetwork.joined(4, after: .seconds(5))
        let (first, second) = (network.members[1], network.members[2])
        first.session.disconnect(second.id)
        try network.run(.seconds(60))
        #expect(!first.connected.contains(second.id))
        // A member that joins later names both, and changes nothing.
        network.join(4, at: 0)
        try network.run(.seconds(60))
        #expect(!first.connected.contains(second.id) && network.missing.count == 2)
    }

    @Test func `has nothing to do with sessions that are not of it`() throws {
        let network = MeshNetwork()
        network.start(0)
        network.join(1, at: 0)
        let stranger = network.start(2, isMesh: false)
        stranger.session.invite(at: MeshNetwork.address(0)) { _ in }
        try network.run(.seconds(10))
        #expect(stranger.connected == [network.members[0].id])
        #expect(network.members[1].connected == [network.members[0].id])
    }

    @Test func `lets nobody change what a connected peer is called`() throws {
        let network = try MeshNetwork.joined(2, after: .seconds(2))
        let (host, other) = (network.members[0].session, network.members[1].id)
        func name() -> String? { network.members[0].probe.peer(other)?.name }
        let lie = IntroducedPeer(
            id: other, name: DisplayName(fitting: "Admin"), info: .none,
            addresses: [TransportAddress("memory://elsewhere")!])
        host.introduce(lie)
        try network.run(.seconds(1))
        #expect(name() != "Admin")
        var own = lie
        own.name = DisplayName(fitting: "Renamed")
        own.isByItself = true
        host.introduce(own)
        try network.run(.seconds(1))
        #expect(name() == "Renamed")
    }

    @Test func `says why an introduced peer is not accepted, and goes on without that pair`() throws {
        let network = MeshNetwork()
        let unwanted = MeshNetwork.identity(2).peerID
        network.refusal = { $0 == unwanted ? "not you" : nil }
        network.start(0)
        network.join(1, at: 0)
        try network.run(.seconds(3))
        network.refusal = { _ in nil }
        let guest = network.join(2, at: 0)
        try network.run(.seconds(20))
        let (first, second) = (network.members[0], network.members[1])
        #expect(first.connected.count == 2)
        for member in [second, guest] { #expect(member.connected == [first.id]) }
        #expect(second.failures.isEmpty, "it does not ask for whom it does not want")
        let reasons = guest.failures.map(\.cause)
        #expect(reasons.contains { if case .declined("not you", _) = $0 { true } else { false } })
    }

    @Test func `has no more members than a session takes, and says so`() throws {
        let network = try MeshNetwork.joined(4, after: .seconds(6)) { $0.limits.peers = 3 }
        network.checkLinks()
        let late = network.start(4)
        late.session.invite(at: MeshNetwork.address(0)) { late.probe.outcomes.append($0) }
        try network.run(.seconds(30))
        #expect(late.probe.failure?.cause == .full && late.connected.isEmpty)
    }
}
