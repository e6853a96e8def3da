import NighCore
import NighMemory
import NighTestKit
import Testing

struct FaultControlTests {
    /// A pair in which both ends inject faults.
    private func makePair() throws -> (Pair, client: FaultControl, server: FaultControl) {
        let pair = try Pair(server: { FaultyTransport($0) }, client: { FaultyTransport($0) })
        return (
            pair, (pair.client.transport as! FaultyTransport).control,
            (pair.server.transport as! FaultyTransport).control
        )
    }

    private let clientAddress = TransportAddress(scheme: "memory", value: "client")

    @Test func `Live pipes are listed`() throws {
        let (pair, client, server) = try makePair()
        let (first, _) = try pair.connect()
        _ = try pair.connect()
        #expect(client.pipes.map(\.number) == [1, 2])
        #expect(client.pipes.allSatisfy { !$0.isInbound && $0.remoteAddress == Pair.serverAddress })
        #expect(server.pipes.allSatisfy { $0.isInbound && $0.remoteAddress == clientAddress })
        first.pipe.close(.now)
        try pair.loop.runQueued()
        #expect(client.pipes.map(\.number) == [2])
        #expect(server.pipes.map(\.number) == [2])
    }

    @Test func `A cut affects one pipe an address or all`() throws {
        let (pair, client, server) = try makePair()
        let (first, _) = try pair.connect()
        let (second, _) = try pair.connect()
        client.cut(.pipe(1))
        #expect(first.log == [])
        try pair.loop.runQueued()
        #expect(first.log == ["closed: the link was lost"])
        #expect(second.log == [])
        client.cut(.address(clientAddress))
        try pair.loop.runQueued()
        #expect(second.log == [])
        server.cut(.address(clientAddress))
        try pair.loop.runQueued()
        #expect(second.log == ["closed"])
        let (third, _) = try pair.connect()
        client.cut()
        try pair.loop.runQueued()
        #expect(third.log == ["closed: the link was lost"])
        #expect(client.pipes.isEmpty && server.pipes.isEmpty)
    }

    @Test func `Closing a cut pipe reports nothing`() throws {
        let (pair, control, _) = try makePair()
        let (client, _) = try pair.connect()
        control.cut()
        client.pipe.close(.now)
        try pair.loop.runQueued()
        #expect(client.log == [])
    }

    @Test func `A block drops bytes and new dials time out`() throws {
        let (pair, control, _) = try makePair()
        let (client, server) = try pair.connect()
        control.block(.address(Pair.serverAddress))
        client.send([1])
        server.send([2])
        pair.client.dial(Pair.serverAddress, timeout: .seconds(3))
        try pair.loop.runUntilIdle()
        #expect(server.received == [] && client.received == [])
        #expect(client.log == [] && server.log == [])
        #expect(pair.client.log.last == "failed 2: no answer in time")
        control.unblock(.address(Pair.serverAddress))
        client.send([3])
        try pair.loop.runUntilIdle()
        #expect(server.received == [], "a stream with a hole must stay mute")
        #expect(control.pipes[0].mute == .both)
        let (again, accepted) = try pair.connect()
        again.send([4])
        try pair.loop.runUntilIdle()
        #expect(accepted.received == [4])
    }

    @Test func `A block may affect one direction`() throws {
        let (pair, control, _) = try makePair()
        let (client, server) = try pair.connect()
        control.block(.all, .outgoing, dials: .refuse)
        client.send([1])
        server.send([2])
        pair.client.dial(Pair.serverAddress)
        try pair.loop.runUntilIdle()
        #expect(server.received == [] && client.received == [2])
        #expect(pair.client.log.last == "failed 2: nobody listens there")
    }

    @Test func `An unused blocked pipe works again`() throws {
        let (pair, control, _) = try makePair()
        let (client, server) = try pair.connect()
        control.block()
        try pair.loop.run(for: .seconds(1))
        control.unblock()
        client.send([1])
        try pair.loop.runQueued()
        #expect(server.received == [1])
    }

    @Test func `Closing behind a block does not reach the other end`() throws {
        let (pair, control, _) = try makePair()
        let (client, server) = try pair.connect()
        control.block()
        client.pipe.close(.now)
        server.send([1])
        try pair.loop.runUntilIdle()
        #expect(server.log == [] && client.log == [] && client.received == [])
        control.unblock()
        try pair.loop.runUntilIdle()
        #expect(server.log == ["closed"])
        #expect(control.pipes.isEmpty)
    }

    @Test func `A dial into a block is not received`() throws {
        let (pair, _, control) = try makePair()
        control.block(.address(clientAddress))
        let before = pair.server.log.count
        pair.client.dial(Pair.serverAddress)
        try pair.loop.runQueued()
        #expect(pair.client.log.last == "dialled 1")
        #expect(pair.server.log.count == before)
        pair.client.lastPipe.send([1])
        try pair.loop.runQueued()
        #expect(pair.client.lastPipe.log == [])
        control.unblock()
        control.block(.all, dials: .refuse)
        try pair.loop.runQueued()
        pair.client.dial(Pair.serverAddress)
        try pair.loop.runQueued()
        #expect(pair.client.lastPipe.log == ["closed"])
    }

    @Test func `A stall holds bytes until the release`() throws {
        let (pair, control, _) = try makePair()
        let (client, server) = try pair.connect()
        control.stall(.address(Pair.serverAddress), .outgoing)
        client.send(Array(repeating: 1, count: 2_000_000))
        server.send([2])
        try pair.loop.runUntilIdle()
        #expect(server.received == [] && client.received == [2])
        #expect(client.pipe.writableBytes < 0)
        control.release()
        #expect(server.received == [])
        try pair.loop.runUntilIdle()
        #expect(server.receivedCount == 2_000_000)
        #expect(client.log == ["writable"])
    }

    @Test func `An incoming stall slows the other end`() throws {
        let (pair, control, _) = try makePair()
        control.stall()
        let (client, server) = try pair.connect()
        for _ in 0..<20 { server.send(Array(repeating: 1, count: 100_000)) }
        try pair.loop.runUntilIdle()
        #expect(client.received == [])
        #expect(server.pipe.writableBytes < 0)
        #expect(control.pipes[0].heldBytes < 1_500_000)
        control.release(.all)
        try pair.loop.runUntilIdle()
        #expect(client.receivedCount == 2_000_000)
        #expect(server.log == ["writable"])
    }

    @Test func `A new plan holds for open pipes`() throws {
        let (pair, control, _) = try makePair()
        let (client, server) = try pair.connect()
        try pair.loop.run(for: .seconds(2))
        control.plan = try FaultPlan(parsing: "delay=1s,cut-after=5s")
        client.send([1])
        try pair.loop.run(for: .milliseconds(999))
        #expect(server.received == [])
        try pair.loop.run(for: .milliseconds(1))
        #expect(server.received == [1])
        try pair.loop.run(for: .milliseconds(1_999))
        #expect(client.log == [])
        try pair.loop.run(for: .milliseconds(1))
        #expect(client.log == ["closed: the link was lost"])
    }

    @Test func `Nothing is left after shutdown`() throws {
        let (pair, control, _) = try makePair()
        let (client, server) = try pair.connect()
        control.plan = try FaultPlan(parsing: "delay=1s,cut-after=5s,stall-after=9s")
        client.send([1])
        server.send([2])
        pair.client.dial(Pair.serverAddress)
        pair.client.transport.shutdown()
        let log = pair.client.takeLog()
        try pair.loop.runUntilIdle()
        #expect(pair.client.takeLog() == [] && log.count == 1)
        #expect(client.log == [] && client.received == [])
        #expect(pair.loop.pending.timers == 0)
    }
}
