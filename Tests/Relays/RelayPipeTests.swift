import NighCore
import NighTestKit
import Testing

@testable import NighRelays

/// Two pipes over the two ends of one stream, and what their handlers were told.
private final class PipePair {
    final class End: PipeHandler {
        enum Note: Equatable {
            case bytes, writable, ended, drained
            case closed(NighError.Cause?)
        }

        let pipe: RelayPipe
        var notes: [Note] = []
        var received: [UInt8] = []
        var whenReceived: () -> Void = {}

        init(_ pipe: RelayPipe) { self.pipe = pipe }

        private func note(_ note: Note) { if note != .bytes || notes.last != .bytes { notes.append(note) } }

        func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
            received += bytes.bytes
            #expect(pipe.counters.bytesReceived == received.count)
            note(.bytes)
            whenReceived()
        }
        func pipeBecameWritable(_ pipe: any Pipe) {
            #expect(pipe.writableBytes > 0)
            note(.writable)
        }
        func pipeEnded(_ pipe: any Pipe) { note(.ended) }
        func pipeClosed(_ pipe: any Pipe, error: NighError?) {
            #expect(error == nil || error?.transport == "via")
            note(.closed(error?.cause))
        }
        func pipeDrained(_ pipe: any Pipe) {
            #expect(pipe.counters.bytesWaiting == 0)
            note(.drained)
        }

        func write(_ bytes: [UInt8]) {
            var queue = ByteQueue()
            queue.append(ByteSlice(bytes))
            pipe.write(&queue)
            #expect(queue.isEmpty)
        }

        func start() { pipe.start(handler: self) }
    }

    private let network = SimulatedNetwork(on: VirtualEventLoop(workLimit: 200_000))
    let sessions: [Session]
    private(set) var first: End!
    private(set) var second: End!
    /// The pipes that are over.
    private(set) var ended = 0

    var loop: VirtualEventLoop { network.loop }

    init() throws {
        nonisolated(unsafe) var incoming: ByteStream?  // the loop is virtual: one thread
        let members = try network.connectedPair {
            $0.layers = [TestLayer(streams: .relay) { incoming = $0 }]
        }
        sessions = [members.first.session, members.second.session]
        let outgoing = try sessions[0].reference.openStream(named: "pipe", to: sessions[1].id, for: .relay)
        try run()
        first = end(outgoing)
        second = end(try #require(incoming))
        for end in [first!, second!] { end.start() }
        try run()
    }

    private func end(_ stream: ByteStream) -> End {
        let address = RelayAddress(carrier: stream.peer, peer: Identity.ephemeral(seed: 9).peerID)
        return End(RelayPipe(stream, at: address, on: loop) { [unowned self] _ in ended += 1 })
    }

    func run(_ duration: Duration = .seconds(1)) throws { try network.run(for: duration) }
}

@Suite("A relayed pipe") struct RelayPipeTests {
    private let content = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }

    @Test func `calls no handler from inside a call, and carries all bytes both ways`() throws {
        let pair = try PipePair()
        pair.first.write(content)
        pair.second.write(Array(content.reversed()))
        #expect(pair.first.notes == [] && pair.second.notes == [])
        #expect(pair.first.pipe.counters.bytesWritten == content.count)
        #expect(pair.first.pipe.counters.bytesWaiting > 0 && pair.first.pipe.writableBytes < 0)
        try pair.run()
        #expect(pair.second.received == content)
        #expect(pair.first.received == content.reversed())
        #expect(pair.first.pipe.counters.bytesWaiting == 0)
        #expect(pair.first.notes.filter { $0 == .writable }.count == 1)
    }

    @Test
    func `delivers everything before its end, and closes in good order, after close(.afterWriting)`() throws {
        let pair = try PipePair()
        pair.first.write(content)
        pair.first.pipe.close(.afterWriting)
        #expect(pair.first.notes == [])
        // Dropped, because the other side does not read it.
        pair.second.write(content)
        try pair.run()
        #expect(pair.second.received == content)
        #expect(pair.second.notes.filter { $0 != .writable } == [.bytes, .ended, .closed(nil)])
        #expect(pair.first.notes == [.drained])
        #expect(pair.ended == 2)
        try pair.run(.seconds(30))
        #expect(pair.first.notes == [.drained])
    }

    @Test func `closed on both sides at once loses nothing that was written, and drains both`() throws {
        let pair = try PipePair()
        for end in [pair.first!, pair.second!] {
            end.write([1, 2, 3])
            end.pipe.close(.afterWriting)
        }
        try pair.run()
        #expect(pair.first.notes == [.drained] && pair.second.notes == [.drained])
        #expect(pair.sessions[0].inspection(of: pair.sessions[1].id)?.streams == 0)
    }

    @Test func `reports that it drained after 10 s if the other side takes nothing`() throws {
        let pair = try PipePair()
        pair.second.pipe.pauseReading()
        pair.first.write(content)
        pair.first.pipe.close(.afterWriting)
        try pair.run(.seconds(9))
        #expect(pair.first.notes == [] && pair.first.pipe.counters.bytesWaiting > 0)
        try pair.run(.seconds(2))
        #expect(pair.first.notes == [.drained] && pair.first.pipe.counters.bytesWaiting == 0)
    }

    @Test func `is lost at once on the other side after close(.now), and calls nobody on this one`() throws {
        let pair = try PipePair()
        pair.first.pipe.close(.now)
        try pair.run()
        #expect(pair.first.notes == [])
        #expect(pair.second.notes == [.closed(.linkLost)])
        #expect(pair.ended == 2)
    }

    @Test func `delivers nothing while it is paused, and slows the other side`() throws {
        let pair = try PipePair()
        pair.second.pipe.pauseReading()
        pair.first.write(content)
        try pair.run()
        #expect(pair.second.received.isEmpty)
        #expect(pair.first.pipe.counters.bytesWaiting > 400_000)
        pair.second.whenReceived = { [unowned pair] in pair.second.pipe.pauseReading() }
        pair.second.pipe.resumeReading()
        try pair.run()
        #expect(pair.second.received.count > 0 && pair.second.received.count <= 32 << 10)
        pair.second.whenReceived = {}
        pair.second.pipe.resumeReading()
        try pair.run()
        #expect(pair.second.received == content)
    }

    @Test
    func `breaks, with the loss of a link as its cause, when the conversation that carries it ends`() throws {
        for isPaused in [false, true] {
            let pair = try PipePair()
            if isPaused { pair.second.pipe.pauseReading() }
            pair.sessions[0].disconnect(pair.sessions[1].id)
            try pair.run()
            for end in [pair.first!, pair.second!] { #expect(end.notes == [.closed(.linkLost)]) }
        }
    }

    @Test func `sleeps while nothing passes, also after one side has stopped reading`() throws {
        let pair = try PipePair()
        pair.second.pipe.pauseReading()
        pair.first.write(content)
        pair.first.pipe.close(.afterWriting)
        // Throws if the pipes take turn after turn, waiting for each other.
        try pair.run(.milliseconds(500))
        let before = pair.loop.workDone
        try pair.run(.milliseconds(500))
        #expect(pair.loop.workDone - before < 20)
    }
}
