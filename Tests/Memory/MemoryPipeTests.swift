import NighCore
import NighMemory
import NighTestKit
import Testing

struct MemoryPipeTests {
    @Test func `A pipe that is never read loses what was written`() throws {
        let pair = try Pair()
        let (client, server) = try pair.connect()
        server.pipe.pauseReading()
        client.send([1, 2, 3])
        client.pipe.close(.afterWriting)
        try pair.loop.runUntilIdle()
        #expect(server.received == [])
        #expect(server.log == ["closed: the link was lost"] && client.log == ["drained"])
        #expect(pair.loop.now == Moment(nanoseconds: 0) + MemoryTransport.lingerTime)
    }

    @Test func `Closing ends the wait of a lingering peer`() throws {
        let pair = try Pair()
        let (client, server) = try pair.connect()
        server.pipe.pauseReading()
        client.send([1, 2, 3])
        client.pipe.close(.afterWriting)
        server.pipe.close(.now)
        try pair.loop.runQueued()
        #expect(pair.loop.pending.timers == 0)
        #expect(client.log == ["drained"] && server.log == [])
    }

    @Test func `Both close at once with bytes under way`() throws {
        let pair = try Pair()
        let (client, server) = try pair.connect()
        client.send([1])
        server.send([2])
        client.pipe.close(.afterWriting)
        server.pipe.close(.afterWriting)
        try pair.loop.runQueued()
        #expect(pair.loop.pending.timers == 0)
        #expect(client.log == ["drained"] && server.log == ["drained"])
    }

    @Test func `Closing now drops unread bytes`() throws {
        let pair = try Pair()
        let (client, server) = try pair.connect()
        client.pipe.close(.now)
        try pair.loop.runQueued()
        #expect(server.log == ["closed"])
        let (second, accepted) = try pair.connect()
        second.send([1])
        second.pipe.close(.now)
        try pair.loop.runQueued()
        #expect(accepted.log == ["closed: the link was lost"])
        #expect(accepted.received == [])
    }

    @Test func `A full pipe reports when it is writable again`() throws {
        let pair = try Pair()
        let (client, server) = try pair.connect()
        server.pipe.pauseReading()
        #expect(client.pipe.writableBytes == MemoryTransport.defaultHighWaterMark)
        client.send(Array(repeating: 0, count: MemoryTransport.defaultHighWaterMark + 5))
        #expect(client.pipe.writableBytes == -5)
        #expect(client.pipe.counters.bytesWaiting == MemoryTransport.defaultHighWaterMark + 5)
        try pair.loop.runUntilIdle()
        #expect(client.log == [] && server.receivedCount == 0)
        server.pipe.resumeReading()
        try pair.loop.runUntilIdle()
        #expect(client.log == ["writable"])
        #expect(client.pipe.writableBytes == MemoryTransport.defaultHighWaterMark)
        #expect(server.pipe.counters.bytesReceived == server.receivedCount)
    }

    @Test func `Pausing in a callback holds the remaining bytes`() throws {
        let pair = try Pair()
        let (client, server) = try pair.connect()
        server.onReceive { [pipe = server.pipe] _ in pipe.pauseReading() }
        for _ in 0..<3 { client.send([1, 2]) }
        try pair.loop.runQueued()
        #expect(server.receivedCount == 2)
        server.pipe.resumeReading()
        server.pipe.resumeReading()
        try pair.loop.runQueued()
        #expect(server.receivedCount == 4)
    }

    @Test func `Slices pass by reference`() throws {
        let pair = try Pair()
        let (client, server) = try pair.connect()
        let slice = ByteSlice(Array(repeating: 9, count: 1000))
        var place: UnsafeRawPointer?
        server.onReceive { place = $0.withUnsafeBytes(\.baseAddress) }
        var queue = ByteQueue()
        queue.append(slice)
        client.pipe.write(&queue)
        #expect(queue.isEmpty)
        try pair.loop.runQueued()
        #expect(place == slice.withUnsafeBytes(\.baseAddress))
    }
}
