import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import NighRelays

@Suite("Two peers that only a third one can reach") struct RelayTests {
    private let network = RelayNetwork()

    @Test func `exchange messages of every size through it, both ways and in order`() throws {
        let (a, b, c) = try network.makeRelayedPair()
        let sizes = [4, 100, 8_192, 16_384, 70_000, 300_000]
        for (number, size) in sizes.enumerated() {
            try a.send(number, size: size, to: c)
            try c.send(100 + number, size: size, to: a)
        }
        try network.run(.seconds(1))
        #expect(c.numbers(from: a) == Array(sizes.indices))
        #expect(a.numbers(from: c) == sizes.indices.map { $0 + 100 })
        #expect(c.probe.messages.map(\.bytes.count) == sizes)
        #expect(b.probe.messages.isEmpty)
        #expect(b.counts.pipes == 1 && b.counts.pipesEver == 1)
        #expect(b.counts.bytes > 2 * sizes.reduce(0, +))
        try network.close()
        #expect(b.counts.pipes == 0)
    }

    @Test func `send five megabytes in streams through it, which arrive unchanged`() throws {
        let (a, _, c) = try network.makeRelayedPair()
        let content = (0..<(5 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        let out = try a.openStream("much", for: .program, to: c)
        var sent = 0
        var received: [UInt8] = []
        var hasEnded = false
        for _ in 0..<2_000 where !hasEnded {
            if sent < content.count {
                sent += try out.tryWrite(ByteSlice(content[sent..<min(sent + 100_000, content.count)]))
                if sent == content.count { out.finish() }
            }
            try network.run(.milliseconds(10))
            reading: while let stream = c.streams.first {
                switch stream.poll() {
                case .bytes(let bytes): received += bytes.bytes
                case .end:
                    hasEnded = true
                    break reading
                case .nothing: break reading
                case .failed(let error): throw error
                }
            }
        }
        #expect(hasEnded && received == content)
    }

    @Test func `stop sending when the other one takes nothing, and lose nothing`() throws {
        let (a, b, c) = try network.makeRelayedPair { $0.timings.loseAfter = .seconds(600) }
        c.faults[1]?.stall(.all, .incoming)
        var sent = 0
        while (try? a.send(sent, size: 10_000, to: c)) != nil { sent += 1 }
        #expect(sent > 400)
        try network.run(.seconds(5))
        let taken = try #require(a.probe.statistics.peers[b.id]).streamBytesSent
        // The carrier's window, the bytes that it holds, and those that it has to send.
        #expect(taken > 100_000 && taken < 1 << 20, "\(taken)")
        #expect(b.relays.carrier.heldByteCount <= 2 * (64 << 10))
        c.faults[1]?.release()
        try network.run(.seconds(5))
        #expect(c.numbers(from: a) == Array(0..<sent))
    }

    @Test(arguments: [SessionSecurity.encrypted, .none])
    func `are not read by it`(security: SessionSecurity) throws {
        let observer = ByteCollector()
        var count = 0
        let (a, _, c) = try network.makeRelayedPair {
            $0.security = security
            count += 1
            if count == 2 { $0.layers.append(observer) }
        }
        let secret = Array("a sentence for one peer only".utf8)
        for _ in 0..<100 { try a.session.trySend(secret + [UInt8](repeating: 0, count: 50), to: c.id) }
        try network.run(.seconds(1))
        #expect(c.probe.messages.count == 100 && observer.bytes.count > 10_000)
        // Without encryption the carrier sees it, which shows that this test looks at the right bytes.
        #expect(observer.contains(secret) == (security == .none))
    }

    @Test func `are told within a minute when it dies, and nobody else can reach both`() throws {
        let (a, b, c) = try network.makeRelayedPair()
        b.session.crash()
        try network.run(.seconds(60))
        for (member, other) in [(a, c), (c, a)] {
            #expect(!member.isConnected(to: other))
            #expect(member.probe.states(of: other.id).contains(.disconnected))
            #expect(member.probe.lastCause(of: other.id) != nil)
        }
    }

    @Test func `go on through another one when it dies, and nothing is lost or doubled`() throws {
        let (a, b, c) = try network.makeRelayedPair()
        let spare = network.join(on: 0, 1)
        try network.connect(a, spare, c)
        network.tell(a, of: c, through: spare)
        var sent = 0
        for step in 0..<600 {
            if step == 50 { b.session.crash() }
            for _ in 0..<3 {
                for (one, other) in [(a, c), (c, a)] { try one.send(sent, size: 500, to: other) }
                sent += 1
            }
            try network.run(.milliseconds(100))
        }
        try network.run(.seconds(5))
        for numbers in [c.numbers(from: a), a.numbers(from: c)] { #expect(numbers == Array(0..<sent)) }
        #expect(!a.probe.states(of: c.id).contains(.disconnected) && spare.counts.pipes == 1)
    }

    @Test func `move to a direct route as soon as one works, and nothing is lost or doubled`() throws {
        let (a, b, c) = (network.join(on: 0, 2), network.join(on: 0, 1), network.join(on: 1, 2))
        for member in [a, c] { member.faults[2]?.block(dials: .refuse) }
        try network.connect(a, b, c)
        network.tell(a, of: c, through: b)
        #expect(try network.invite(c, from: a) == nil)
        #expect(a.transport(to: c) == "via")
        var sent = 0
        for step in 0..<600 {
            if step == 50 { for member in [a, c] { member.faults[2]?.unblock() } }
            for (one, other) in [(a, c), (c, a)] { try one.send(sent, size: 2_000, to: other) }
            sent += 1
            try network.run(.milliseconds(100))
        }
        try network.run(.seconds(1))
        #expect(a.transport(to: c) == "way2" && c.transport(to: a) == "way2")
        for numbers in [c.numbers(from: a), a.numbers(from: c)] { #expect(numbers == Array(0..<sent)) }
        #expect(a.probe.states(of: c.id).last == .connected && b.counts.pipes == 0)
    }

    /// In every order of the three PeerIDs, because a session leaves its peers in that order.
    @Test(
        arguments: [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] as [[UInt64]],
        [true, false])
    func `tell each other when one of them closes, like peers with a link of their own`(
        numbers: [UInt64], isFirst: Bool
    ) throws {
        let (a, b, c) = try network.makeRelayedPair(numbers: numbers)
        let (leaving, staying) = isFirst ? (a, c) : (c, a)
        try leaving.send(7, size: 100_000, to: staying)
        nonisolated(unsafe) var isClosed = false  // the loop is virtual: one thread
        leaving.session.close { isClosed = true }
        try network.run(.seconds(1))
        #expect(isClosed && staying.numbers(from: leaving) == [7])
        #expect(staying.probe.lastCause(of: leaving.id)?.cause == .peerLeft)
        #expect(!staying.probe.states(of: leaving.id).contains(.reconnecting))
        #expect(b.probe.lastCause(of: leaving.id)?.cause == .peerLeft && b.counts.pipes == 0)
    }

    @Test func `lose the pipe at once when one of them ends its conversation with the carrier`() throws {
        let (a, b, c) = try network.makeRelayedPair()
        a.session.disconnect(b.id)
        try network.run(.milliseconds(500))
        #expect(!a.isConnected(to: b) && b.counts.pipes == 0)
        #expect(a.probe.state(of: c.id) == .reconnecting && c.probe.state(of: a.id) == .reconnecting)
    }

    @Test func `close in bounded time when the carrier answers no more`() throws {
        let (a, _, _) = try network.makeRelayedPair { $0.timings.linger = .seconds(2) }
        a.faults[0]?.block()
        let (loop, begun) = (network.loop, network.loop.now)
        nonisolated(unsafe) var closed: Moment?  // the loop is virtual: one thread
        a.session.close { closed = loop.now }
        try network.run(.seconds(30))
        let time = try #require(closed) - begun
        #expect(time <= .seconds(2) + Moment.Span(a.session.configuration.timings.goodbye))
    }

    @Test(arguments: 0..<10 as Range<UInt64>)
    func `keep their conversation on a bad line`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let plan = try FaultPlan(parsing: "delay=5ms,jitter=20ms")
        let (a, b, c) = try network.makeRelayedPair(plan: plan)
        var sent = 0
        for _ in 0..<150 {
            switch Int.random(in: 0..<12, using: &random) {
            case 0: a.faults[0]?.cut()
            case 1: b.faults[1]?.cut()
            default:
                for (one, other) in [(a, c), (c, a)] {
                    try one.send(sent, size: Int.random(in: 4..<40_000, using: &random), to: other)
                }
                sent += 1
            }
            try network.run(.milliseconds(Int64.random(in: 0..<300, using: &random)))
        }
        try network.run(.seconds(20))
        for numbers in [c.numbers(from: a), a.numbers(from: c)] { #expect(numbers == Array(0..<sent)) }
    }
}

/// Collects all bytes that pass on a session's links.
private final class ByteCollector: SessionLayer, LinkObserver, @unchecked Sendable {
    // Confined to the virtual loop.
    private(set) var bytes: [UInt8] = []

    func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) {
        switch event {
        case .received(let slice), .sent(let slice): bytes += slice.bytes
        default: break
        }
    }

    func contains(_ wanted: [UInt8]) -> Bool {
        bytes.indices.dropLast(wanted.count - 1).contains { start in
            bytes[start] == wanted[0] && bytes[start..<(start + wanted.count)].elementsEqual(wanted)
        }
    }
}
