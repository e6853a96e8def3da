import NighCore
import NighMemory
import NighTestKit
import Testing

/// Tests pairs whose client injects faults.
struct FaultyTransportTests {
    private func makePair(_ spec: String) throws -> (Pair, FaultControl) {
        let plan = try FaultPlan(parsing: spec)
        let pair = try Pair(client: { FaultyTransport($0, plan: plan) })
        return (pair, (pair.client.transport as! FaultyTransport).control)
    }

    private static let payload = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }

    @Test(arguments: [("out", 200, 0), ("in", 0, 200), ("both", 200, 200)])
    func `Delay holds bytes in the chosen directions`(_ direction: String, _ outgoing: Int, _ incoming: Int)
        throws
    {
        let (pair, _) = try makePair("delay=200ms,direction=\(direction)")
        let (client, server) = try pair.connect()
        client.send([1])
        server.send([2])
        var elapsed = 0
        for (end, time) in [(server, outgoing), (client, incoming)].sorted(by: { $0.1 < $1.1 })
        where time > elapsed {
            try pair.loop.run(for: .milliseconds(time - elapsed - 1))
            #expect(end.received == [])
            try pair.loop.run(for: .milliseconds(1))
            elapsed = time
            #expect(end.received.count == 1)
        }
        try pair.loop.runQueued()
        #expect(server.received == [1] && client.received == [2])
    }

    @Test func `Jitter keeps the order`() throws {
        let (pair, _) = try makePair("delay=10ms,jitter=50ms")
        let (client, server) = try pair.connect()
        for byte in 0..<200 as Range<UInt8> { client.send([byte]) }
        try pair.loop.run(for: .milliseconds(60))
        #expect(server.received == Array(0..<200))
    }

    @Test func `Rate sets the pace and slows the writer`() throws {
        let (pair, _) = try makePair("rate=10k,direction=out")
        let (client, server) = try pair.connect()
        client.send(Self.payload.prefix(40_960))
        #expect(client.pipe.writableBytes < 0)
        #expect(client.pipe.counters.bytesWaiting == 40_960)
        try pair.loop.run(for: .seconds(2))
        #expect((20_000...20_480).contains(server.receivedCount))
        #expect(client.log == [])
        try pair.loop.run(for: .seconds(2))
        #expect(server.received == Array(Self.payload.prefix(40_960)))
        #expect(client.log == ["writable"])
    }

    @Test func `Rate also holds back the other end`() throws {
        let (pair, _) = try makePair("rate=10k,direction=in")
        let (client, server) = try pair.connect()
        for _ in 0..<8 { server.send(Array(repeating: 5, count: 100_000)) }
        try pair.loop.run(for: .seconds(1))
        #expect((9_000...10_240).contains(client.receivedCount))
        #expect(server.pipe.writableBytes < 0)
    }

    @Test(arguments: ["out", "in"])
    func `Splits cut into pieces and keep the bytes`(_ direction: String) throws {
        let (pair, _) = try makePair("split=100,direction=\(direction)")
        let (client, server) = try pair.connect()
        let (from, to) = direction == "out" ? (client, server) : (server, client)
        from.send(Self.payload)
        try pair.loop.runQueued()
        #expect(to.received == Self.payload)
        #expect(to.sliceCount > 1_500)
    }

    @Test func `Flips change about the requested share of bytes`() throws {
        let (pair, _) = try makePair("flip=1/100,direction=out")
        let (client, server) = try pair.connect()
        client.send(Self.payload)
        try pair.loop.runQueued()
        let wrong = zip(server.received, Self.payload).filter { $0 != $1 }
        #expect((800...1_200).contains(wrong.count))
        #expect(wrong.allSatisfy { ($0 ^ $1).nonzeroBitCount == 1 })
        #expect(server.received.count == Self.payload.count)
    }

    @Test(arguments: [
        ("1/\(Int.max)", 0), ("\(Int.max)/\(Int.max)", 100_000), ("\(Int.max / 2 + 1)/\(Int.max)", 50_000),
    ])
    func `Flips may have any odds`(_ odds: String, _ count: Int) throws {
        let (pair, _) = try makePair("flip=\(odds),direction=out")
        let (client, server) = try pair.connect()
        client.send(Self.payload)
        try pair.loop.runQueued()
        let wrong = zip(server.received, Self.payload).count { $0 != $1 }
        #expect(abs(wrong - count) <= count / 2)
    }

    @Test func `A random cut occurs at its stated rate`() throws {
        func age(_ spec: String) throws -> Int? {
            let (pair, control) = try makePair(spec)
            _ = try pair.connect()
            for second in 0..<2_000 {
                guard !control.pipes.isEmpty else { return second }
                try pair.loop.run(for: .seconds(1))
            }
            return nil
        }
        let ages = try (1...60).compactMap { try age("cut=5%,seed=\($0)") }
        #expect(ages.count == 60)
        // The expected mean is 20 s. The mean of 60 draws is hardly ever outside this range.
        #expect((14...27).contains(ages.reduce(0, +) / 60), "\(ages)")
        #expect(try age("cut=all") == 1)
        #expect(try age("") == nil)
    }

    @Test func `One seed gives the same faults twice`() throws {
        func run(_ seed: Int) throws -> ([UInt8], Int) {
            let (pair, _) = try makePair("flip=1/100,split=50,jitter=5ms,seed=\(seed)")
            let (client, server) = try pair.connect()
            client.send(Self.payload)
            try pair.loop.run(for: .milliseconds(5))
            return (server.received, server.sliceCount)
        }
        #expect(try run(3) == run(3))
        #expect(try run(3) != run(4))
    }

    @Test func `A planned stall loses nothing`() throws {
        let (pair, control) = try makePair("stall-after=1s,stall-for=2s")
        let (client, server) = try pair.connect()
        try pair.loop.run(for: .milliseconds(1_500))
        client.send([1])
        server.send([2])
        try pair.loop.run(for: .milliseconds(1_499))
        #expect(server.received == [] && client.received == [])
        #expect(control.pipes[0].heldBytes == 2)
        try pair.loop.run(for: .milliseconds(1))
        #expect(server.received == [1] && client.received == [2])
    }

    @Test func `A planned cut is reported as a lost link`() throws {
        let (pair, _) = try makePair("cut-after=5s")
        let (client, server) = try pair.connect()
        try pair.loop.run(for: .milliseconds(4_999))
        #expect(client.log == [])
        try pair.loop.run(for: .milliseconds(1))
        #expect(client.log == ["closed: the link was lost"])
        #expect(server.log == ["closed"])
    }

    @Test(arguments: ["out", "in"])
    func `Truncation passes exactly the given number of bytes`(_ direction: String) throws {
        let (pair, _) = try makePair("cut-after-bytes=1000,direction=\(direction)")
        let (client, server) = try pair.connect()
        let (from, to) = direction == "out" ? (client, server) : (server, client)
        from.send(Self.payload.prefix(600))
        try pair.loop.runQueued()
        #expect(client.log == [])
        from.send(Self.payload[600...])
        try pair.loop.runQueued()
        #expect(to.received == Array(Self.payload.prefix(1000)))
        #expect(client.log == ["closed: the link was lost"])
        #expect(server.log.last?.hasPrefix("closed") == true)
    }

    @Test func `Vanishing bytes are not reported`() throws {
        let (pair, control) = try makePair("vanish-after=1s,direction=in")
        let (client, server) = try pair.connect()
        try pair.loop.run(for: .seconds(1))
        client.send([1])
        server.send([2])
        try pair.loop.runUntilIdle()
        #expect(server.received == [1] && client.received == [])
        #expect(control.pipes[0].mute == .incoming)
        server.pipe.close(.now)
        try pair.loop.runUntilIdle()
        #expect(client.log == [])
    }

    @Test func `Dials are refused held or delayed`() throws {
        let (pair, control) = try makePair("refuse=all")
        pair.client.dial(Pair.serverAddress)
        try pair.loop.runQueued()
        #expect(pair.client.takeLog() == ["failed 1: nobody listens there"])
        control.plan = try FaultPlan(parsing: "hang=all")
        pair.client.dial(Pair.serverAddress, timeout: .seconds(2))
        try pair.loop.run(for: .milliseconds(1_999))
        #expect(pair.client.takeLog() == [])
        try pair.loop.run(for: .milliseconds(1))
        #expect(pair.client.takeLog() == ["failed 2: no answer in time"])
        control.plan = try FaultPlan(parsing: "dial-delay=1s")
        pair.client.dial(Pair.serverAddress, timeout: .seconds(2))
        try pair.loop.run(for: .milliseconds(999))
        #expect(pair.client.takeLog() == [])
        try pair.loop.run(for: .milliseconds(1))
        #expect(pair.client.takeLog() == ["dialled 3"])
        pair.client.dial(Pair.serverAddress, timeout: .milliseconds(500))
        try pair.loop.run(for: .milliseconds(500))
        #expect(pair.client.takeLog() == ["failed 4: no answer in time"])
        pair.client.transport.cancelDial(pair.client.dial(Pair.serverAddress))
        try pair.loop.runUntilIdle()
        #expect(pair.client.takeLog() == [])
    }

    @Test func `A refusal chance affects some dials`() throws {
        let (pair, _) = try makePair("refuse=1/3,seed=5")
        for _ in 0..<300 { pair.client.dial(Pair.serverAddress) }
        try pair.loop.runQueued()
        let failures = pair.client.takeLog().filter { $0.hasPrefix("failed") }.count
        #expect((70...130).contains(failures))
    }

    @Test func `Closing waits for what is held`() throws {
        let (pair, _) = try makePair("delay=1s")
        let (client, server) = try pair.connect()
        client.send([1, 2])
        client.pipe.close(.afterWriting)
        try pair.loop.run(for: .milliseconds(999))
        #expect(server.received == [] && server.log == [] && client.log == [])
        try pair.loop.run(for: .milliseconds(1))
        #expect(server.received == [1, 2])
        #expect(server.log == ["ended", "closed"] && client.log == ["drained"])
        #expect(pair.loop.pending.timers == 0)
    }

    @Test func `After close(.afterWriting) a pipe is drained once, whatever faults come before or after`()
        throws
    {
        let faults: [(FaultControl) -> Void] = [{ $0.cut() }, { $0.block() }, { $0.stall() }, { _ in }]
        for isBefore in [true, false] {
            for fault in faults {
                let (pair, control) = try makePair("delay=100ms")
                let (client, _) = try pair.connect()
                client.send([1, 2])
                if isBefore { fault(control) }
                client.pipe.close(.afterWriting)
                client.pipe.close(.now)
                #expect(client.log == [])
                if !isBefore { fault(control) }
                try pair.loop.run(for: .seconds(30))
                #expect(client.log == ["drained"])
                #expect(client.pipe.counters.bytesWaiting == 0)
            }
        }
    }

    @Test func `A pipe that is closed while its end is under way is drained, and not closed`() throws {
        let (pair, _) = try makePair("delay=100ms,direction=in")
        let (client, server) = try pair.connect()
        server.pipe.close(.now)
        try pair.loop.run(for: .milliseconds(50))
        client.pipe.close(.afterWriting)
        try pair.loop.run(for: .seconds(30))
        #expect(client.log == ["drained"])
    }

    @Test func `The registry wraps any entry`() throws {
        let plan = try FaultPlan(parsing: "refuse=all")
        let entry = FaultyTransport.registryEntry(wrapping: MemoryTransport.registryEntry, plan: plan)
        let transport = try TransportRegistry([entry]).make(TransportSpec(parsing: "memory:hub=wrapped"))
        #expect(transport is FaultyTransport)
        #expect(transport.diagnose().last?.finding == "refuse=all")
    }
}
