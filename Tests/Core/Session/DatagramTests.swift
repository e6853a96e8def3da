import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Unreliable messages beside the link, between two sessions in virtual time.
@Suite("Unreliable messages beside a link") struct DatagramTests {
    private func pair(
        in place: Neighbourhood, plan: FaultPlan = .none, security: SessionSecurity = .encrypted,
        reading: SessionProbe.Reading = .handler
    ) throws -> (puma: SessionProbe, lynx: SessionProbe) {
        let (first, second) = try place.pair(reading, plan: plan) {
            $0.datagrams = true
            $0.security = security
        }
        return (first, second)
    }

    /// Opens the path with a first message, which still travels within the link.
    private func open(_ place: Neighbourhood, _ puma: SessionProbe, _ lynx: SessionProbe) throws {
        try puma.session.trySend([0], to: lynx.id, .unreliable)
        try place.run(.seconds(1))
        #expect(puma.peer(lynx.id)?.hasDatagrams == true)
    }

    private func counts(_ member: SessionProbe, _ other: SessionProbe) throws -> DatagramStatistics {
        try #require(member.statistics.peers[other.id]?.datagrams)
    }

    @Test("travel as packets once the path has been tried, encrypted or not", arguments: [true, false])
    func path(isEncrypted: Bool) throws {
        let place = Neighbourhood()
        let (puma, lynx) = try pair(in: place, security: isEncrypted ? .encrypted : .none)
        try open(place, puma, lynx)
        for number in 1...100 {
            try puma.session.trySend([UInt8(number)], to: lynx.id, .unreliable)
            try lynx.session.trySend([UInt8(number)], to: puma.id, .unreliable)
            try place.run(.milliseconds(10))
        }
        #expect(lynx.messages.map(\.bytes) == (0...100).map { [UInt8($0)] })
        #expect(lynx.messages.allSatisfy { !$0.origin.isReliable })
        #expect(puma.messages.map(\.bytes) == (1...100).map { [UInt8($0)] })
        #expect(try counts(puma, lynx).messagesSent == 100 && counts(lynx, puma).messagesReceived == 100)
        #expect(try counts(puma, lynx).rejected == 0)
    }

    @Test("travel within the link to a peer that has no such path", arguments: [true, false])
    func withoutPath(isTheOther: Bool) throws {
        let place = Neighbourhood()
        let puma = place.join("puma") { $0.datagrams = isTheOther }
        let lynx = place.join("lynx") { $0.datagrams = !isTheOther }
        try place.run(.seconds(1))
        puma.invite(lynx)
        try place.run(.seconds(1))
        for number in 0..<10 as Range<UInt8> {
            try puma.session.trySend([number], to: lynx.id, .unreliable)
            try place.run(.milliseconds(200))
        }
        #expect(lynx.messages.map(\.bytes) == (0..<10).map { [UInt8($0)] })
        #expect(puma.peer(lynx.id)?.hasDatagrams == false)
    }

    @Test("are in neither direction delivered twice or out of order, whatever happens to packets")
    func faults() throws {
        let place = Neighbourhood()
        var plan = FaultPlan()
        plan.jitter = .milliseconds(40)
        plan.loss = .init(1, outOf: 10)
        plan.duplicate = .init(1, outOf: 5)
        let (puma, lynx) = try pair(in: place, plan: plan)
        try puma.session.trySend([0, 0], to: lynx.id, .unreliable)
        try place.run(.seconds(2))
        for number in 1...1_000 {
            try puma.session.trySend([UInt8(number >> 8), UInt8(number & 255)], to: lynx.id, .unreliable)
            try place.run(.milliseconds(10))
        }
        try place.run(.seconds(1))
        let numbers = lynx.messages.map { Int($0.bytes[0]) << 8 | Int($0.bytes[1]) }
        #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
        // A tenth is lost at each end, and what comes late is dropped.
        #expect(numbers.count > 200)
        let (sent, received) = (try counts(puma, lynx), try counts(lynx, puma))
        #expect(sent.packetsLost > 50 && received.duplicates > 50 && received.late > 50)
    }

    @Test("go on when the other side's address changes, and where long packets do not pass")
    func rebinding() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try pair(in: place)
        try open(place, puma, lynx)
        var plan = FaultPlan()
        plan.rebind = .seconds(3)
        plan.packetLimit = 1_300
        puma.faults.plan = plan
        for number in 1...1_000 {
            let message =
                [UInt8(number >> 8), UInt8(number & 255)] + [UInt8](repeating: 0, count: number % 3 * 1_000)
            try puma.session.trySend(message, to: lynx.id, .unreliable)
            try lynx.session.trySend([1], to: puma.id, .unreliable)
            try place.run(.milliseconds(10))
        }
        let numbers = lynx.messages.dropFirst().map { Int($0.bytes[0]) << 8 | Int($0.bytes[1]) }
        #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
        // Three times something is lost, until the other side is seen at its new address.
        #expect(numbers.count > 950, "\(numbers.count)")
        #expect(try counts(puma, lynx).moves == 3)
        #expect(puma.peer(lynx.id)?.hasDatagrams == true)
    }

    @Test("longer than a packet arrive whole or not at all", arguments: [0, 1, 1_150, 1_151, 8_192])
    func sizes(_ count: Int) throws {
        let place = Neighbourhood()
        let (puma, lynx) = try pair(in: place, reading: .inbox)
        try puma.session.trySend([0], to: lynx.id, .unreliable)
        try place.run(.seconds(1))
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        try puma.session.trySend(bytes, to: lynx.id, .unreliable)
        try place.run(.seconds(1))
        #expect(lynx.session.messages.poll()?.payload.bytes == [0])
        let message = lynx.session.messages.poll()
        #expect(message?.payload.bytes == bytes && message?.origin.isReliable == false)
        #expect(try counts(puma, lynx).messagesSent == 1)
    }

    @Test(
        "travel within the link within a second after packets have stopped to pass, and as packets again later"
    )
    func blocked() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try pair(in: place)
        try open(place, puma, lynx)
        var plan = FaultPlan()
        plan.loss = .all
        puma.faults.plan = plan
        let changes = { puma.events.count { if case .peerChanged = $0 { true } else { false } } }
        let before = changes()
        for _ in 0..<12 {
            try puma.session.trySend([1], to: lynx.id, .unreliable)
            try place.run(.milliseconds(100))
        }
        #expect(puma.peer(lynx.id)?.hasDatagrams == false)
        #expect(changes() == before + 1)
        let received = lynx.messages.count
        for _ in 0..<30 {
            try puma.session.trySend([2], to: lynx.id, .unreliable)
            try place.run(.milliseconds(100))
        }
        #expect(lynx.messages.count == received + 30)
        #expect(changes() == before + 1)
        puma.faults.plan = .none
        for _ in 0..<40 {
            try puma.session.trySend([3], to: lynx.id, .unreliable)
            try place.run(.milliseconds(100))
        }
        #expect(puma.peer(lynx.id)?.hasDatagrams == true)
        #expect(changes() == before + 2)
        #expect(lynx.messages.count { $0.bytes == [3] } == 40)
    }

    @Test("with a key, which waited for room on a path, travel within the link when packets stop to pass")
    func stranded() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try pair(in: place)
        try open(place, puma, lynx)
        var plan = FaultPlan()
        plan.loss = .all
        puma.faults.plan = plan
        let path = try #require(puma.session.driver.machine.peers[lynx.id]?.link?.datagrams)
        // More than the path carries: some wait at any time.
        for _ in 0..<200 where path.isOpen {
            for key in 0..<16 as Range<UInt8> {
                let value = [UInt8](repeating: key, count: 8_000)
                try puma.session.trySend(value, to: lynx.id, .newest(key: key))
            }
            try place.run(.milliseconds(10))
        }
        try place.run(.seconds(1))
        #expect(puma.peer(lynx.id)?.hasDatagrams == false && path.heldByteCounts.waiting == 0)
        let keys = lynx.messages.dropFirst().map { $0.bytes[0] }
        #expect(!keys.isEmpty && Set(keys).count == keys.count)
    }

    @Test("do not wait for a link that is stalled, nor end when it is replaced")
    func links() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try pair(in: place)
        try open(place, puma, lynx)
        puma.faults.cut()
        try place.run(.seconds(2))
        #expect(puma.peer(lynx.id)?.hasDatagrams == false)
        try open(place, puma, lynx)
        try puma.session.trySend([9], to: lynx.id, .unreliable)
        try place.run(.milliseconds(100))
        #expect(lynx.messages.last?.bytes == [9])
        #expect(try counts(puma, lynx).messagesSent == 1)
    }

    @Test("cost an idle peer no packets and no timers")
    func idle() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try pair(in: place)
        try open(place, puma, lynx)
        try place.run(.seconds(20))
        let before = try counts(puma, lynx)
        try place.run(.seconds(120))
        #expect(try counts(puma, lynx) == before)
    }
}
