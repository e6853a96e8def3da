import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Unreliable messages as datagrams, between two sessions in virtual time.
@Suite("Unreliable messages as datagrams") struct DatagramTests {
    private let network = SimulatedNetwork()

    private func pair(
        plan: FaultPlan = .none, security: SessionSecurity = .encrypted
    ) throws -> (puma: SessionProbe, lynx: SessionProbe) {
        let (puma, lynx) = try network.connectedPair(("Puma", "Lynx"), plan: plan) {
            $0.datagrams = true
            $0.security = security
        }
        return (puma, lynx)
    }

    /// Two sessions whose path is open. The first message of Puma, which opened it, travelled within the link.
    private func pairWithPath(
        security: SessionSecurity = .encrypted
    ) throws -> (puma: SessionProbe, lynx: SessionProbe) {
        let (puma, lynx) = try pair(security: security)
        try openPath(puma, lynx)
        return (puma, lynx)
    }

    private func openPath(_ puma: SessionProbe, _ lynx: SessionProbe) throws {
        try puma.session.trySend([0], to: lynx.id, .unreliable)
        try network.run(for: .seconds(1))
        #expect(puma.peer(lynx.id)?.hasDatagrams == true)
    }

    private func counts(_ member: SessionProbe, _ other: SessionProbe) throws -> DatagramStatistics {
        try #require(member.statistics.peers[other.id]?.datagrams)
    }

    /// The number in the first two bytes of a message.
    private func number(_ message: SessionProbe.Received) -> Int {
        Int(message.bytes[0]) << 8 | Int(message.bytes[1])
    }

    /// Sends this message again and again, a tenth of a second apart.
    private func send(_ bytes: [UInt8], times: Int, from puma: SessionProbe, to lynx: SessionProbe) throws {
        for _ in 0..<times {
            try puma.session.trySend(bytes, to: lynx.id, .unreliable)
            try network.run(for: .milliseconds(100))
        }
    }

    @Test(arguments: [true, false])
    func `travel as packets once the path has been tried, encrypted or not`(isEncrypted: Bool) throws {
        let (puma, lynx) = try pairWithPath(security: isEncrypted ? .encrypted : .none)
        for number in 1...100 {
            try puma.session.trySend([UInt8(number)], to: lynx.id, .unreliable)
            try lynx.session.trySend([UInt8(number)], to: puma.id, .unreliable)
            try network.run(for: .milliseconds(10))
        }
        #expect(lynx.messages.map(\.bytes) == (0...100).map { [UInt8($0)] })
        #expect(lynx.messages.allSatisfy { !$0.origin.isReliable })
        #expect(puma.messages.map(\.bytes) == (1...100).map { [UInt8($0)] })
        #expect(try counts(puma, lynx).messagesSent == 100 && counts(lynx, puma).messagesReceived == 100)
        #expect(try counts(puma, lynx).rejected == 0)
        // With the first one, which travelled within the link.
        #expect(try lynx.counts(of: puma).unreliableReceived == 101)
    }

    @Test(arguments: [true, false])
    func `travel within the link to a peer that has no such path`(isTheOther: Bool) throws {
        let puma = network.join("puma") { $0.datagrams = isTheOther }
        let lynx = network.join("lynx") { $0.datagrams = !isTheOther }
        try network.connect(puma, lynx)
        for number in 0..<10 as Range<UInt8> {
            try puma.session.trySend([number], to: lynx.id, .unreliable)
            try network.run(for: .milliseconds(200))
        }
        #expect(lynx.messages.map(\.bytes) == (0..<10).map { [UInt8($0)] })
        #expect(puma.peer(lynx.id)?.hasDatagrams == false)
    }

    @Test func `are in neither direction delivered twice or out of order, whatever packets do`() throws {
        let (puma, lynx) = try pair(plan: try FaultPlan(parsing: "jitter=40ms,loss=1/10,duplicate=1/5"))
        try puma.session.trySend([0, 0], to: lynx.id, .unreliable)
        try network.run(for: .seconds(2))
        for number in 1...1_000 {
            try puma.session.trySend([UInt8(number >> 8), UInt8(number & 255)], to: lynx.id, .unreliable)
            try network.run(for: .milliseconds(10))
        }
        try network.run(for: .seconds(1))
        let numbers = lynx.messages.map(number)
        #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
        // A tenth is lost at each end, and what comes late is dropped.
        #expect(numbers.count > 200)
        let (sent, received) = (try counts(puma, lynx), try counts(lynx, puma))
        #expect(sent.packetsLost > 50 && received.duplicates > 50 && received.late > 50)
    }

    @Test func `of keys that wait for a path count as dropped when its link is lost`() throws {
        let (puma, lynx) = try pairWithPath()
        for key in 0..<64 as Range<UInt8> {
            let value = [UInt8](repeating: key, count: 1_000)
            try puma.session.trySend(value, to: lynx.id, .newest(key: key))
        }
        puma.faults.cut()
        try network.run(for: .seconds(5))
        #expect(puma.state(of: lynx.id) == .connected)
        let arrived = lynx.messages.count { $0.bytes.count == 1_000 }
        let dropped = try puma.counts(of: lynx).unreliableDropped
        #expect(dropped > 0 && arrived + Int(dropped) <= 64)
    }

    @Test func `go on when the other side's address changes, and where long packets do not pass`() throws {
        let (puma, lynx) = try pairWithPath()
        puma.faults.plan = try FaultPlan(parsing: "rebind=3s,mtu=1300")
        for number in 1...1_000 {
            let message =
                [UInt8(number >> 8), UInt8(number & 255)] + [UInt8](repeating: 0, count: number % 3 * 1_000)
            try puma.session.trySend(message, to: lynx.id, .unreliable)
            try lynx.session.trySend([1], to: puma.id, .unreliable)
            try network.run(for: .milliseconds(10))
        }
        let numbers = lynx.messages.dropFirst().map(number)
        #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
        // Three times something is lost, until the other side is seen at its new address.
        #expect(numbers.count > 950, "\(numbers.count)")
        #expect(try counts(puma, lynx).moves == 3)
        #expect(puma.peer(lynx.id)?.hasDatagrams == true)
    }

    @Test func `travel within the link within a second after packets stop to pass, until they pass`() throws {
        let (puma, lynx) = try pairWithPath()
        puma.faults.plan.loss = .all
        let changes = { puma.events.count { if case .peerChanged = $0 { true } else { false } } }
        let before = changes()
        try send([1], times: 12, from: puma, to: lynx)
        #expect(puma.peer(lynx.id)?.hasDatagrams == false && changes() == before + 1)
        let received = lynx.messages.count
        try send([2], times: 30, from: puma, to: lynx)
        #expect(lynx.messages.count == received + 30 && changes() == before + 1)
        puma.faults.plan = .none
        try send([3], times: 40, from: puma, to: lynx)
        #expect(puma.peer(lynx.id)?.hasDatagrams == true && changes() == before + 2)
        #expect(lynx.messages.count { $0.bytes == [3] } == 40)
    }

    @Test func `with a key that wait for room on a path travel within the link when it closes`() throws {
        let (puma, lynx) = try pairWithPath()
        puma.faults.plan.loss = .all
        let link = try #require(puma.link(to: lynx.id))
        // More than the path carries: some wait at any time.
        for _ in 0..<200 where link.datagrams?.isOpen == true {
            for key in 0..<16 as Range<UInt8> {
                let value = [UInt8](repeating: key, count: 8_000)
                try puma.session.trySend(value, to: lynx.id, .newest(key: key))
            }
            try network.run(for: .milliseconds(10))
        }
        try network.run(for: .seconds(1))
        #expect(puma.peer(lynx.id)?.hasDatagrams == false && link.datagrams?.heldByteCounts.waiting == 0)
        let keys = lynx.messages.dropFirst().map { $0.bytes[0] }
        #expect(!keys.isEmpty && Set(keys).count == keys.count)
    }

    @Test func `do not wait for a link that is stalled, nor end when it is replaced`() throws {
        let (puma, lynx) = try pairWithPath()
        puma.faults.cut()
        try network.run(for: .seconds(2))
        #expect(puma.peer(lynx.id)?.hasDatagrams == false)
        try openPath(puma, lynx)
        try puma.session.trySend([9], to: lynx.id, .unreliable)
        try network.run(for: .milliseconds(100))
        #expect(lynx.messages.last?.bytes == [9])
        #expect(try counts(puma, lynx).messagesSent == 1)
    }

    @Test func `cost an idle peer no packets and no timers`() throws {
        let (puma, lynx) = try pairWithPath()
        try network.run(for: .seconds(20))
        let before = try counts(puma, lynx)
        try network.run(for: .seconds(120))
        #expect(try counts(puma, lynx) == before)
    }
}
