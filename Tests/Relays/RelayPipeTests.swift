import NighCore
import NighMemory
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

    let loop = VirtualEventLoop(workLimit: 200_000)
    let sessions: [Session]
    let faults: [FaultControl]
    private(set) var first: End!
    private(set) var second: End!
    /// The pipes that are over.
    private(set) var ended = 0

    init() throws {
        let hub = MemoryHub()
        let loop = loop
        nonisolated(unsafe) var incoming: ByteStream?  // the loop is virtual: one thread
        let transports = (0..<2).map { FaultyTransport(MemoryTransport(hub: hub, address: "m\($0)")) }
        faults = transports.map(\.control)
        sessions = transports.enumerated().map { index, transport in
            var configuration = SessionConfiguration(
                service: "pipes", name: DisplayName(fitting: "m\(index)"))
            configuration.seed = UInt64(index)
            configuration.layers = [TestLayer(streams: .relay) { incoming = $0 }]
            let session = Session(
                configuration, identity: .ephemeral(seed: UInt64(index + 1)), transports: [transport],
                loop: loop)
            session.start(onEvent: { event in
                if case .invited(let invitation) = event { invitation.accept() }
            })
            return session
        }
        try loop.run(for: .seconds(1))
        sessions[0].invite(sessions[1].id) { _ in }
        try loop.run(for: .seconds(1))
        nonisolated(unsafe) var outgoing: ByteStream?  // the loop is virtual: one thread
        sessions[0].openStream(named: "pipe", to: sessions[1].id, for: .relay) { outgoing = try? $0.get() }
        try loop.run(for: .seconds(1))
        first = end(try #require(outgoing))
        second = end(try #require(incoming))
    }

    private func end(_ stream: ByteStream) -> End {
        let address = RelayAddress(carrier: stream.peer, peer: Identity.ephemeral(seed: 9).peerID)
        return End(RelayPipe(stream, at: address, on: loop) { [unowned self] _ in ended += 1 })
    }

    func start() throws {
        first.start()
        second.start()
        try run()
    }

    func run(_ duration: Duration = .seconds(1)) throws { try loop.run(for: duration) }
}

@Suite("A relayed pipe") struct RelayPipeTests {
    private let content = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }

    @Test("calls no handler from inside a call, and carries all bytes both ways")
    func bothWays() throws {
        let pair = try PipePair()
        try pair.start()
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

    @Test("delivers everything before its end, and closes in good order, after close(.afterWriting)")
    func closing() throws {
        let pair = try PipePair()
        try pair.start()
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

    @Test("closed on both sides at once loses nothing that was written, and drains both")
    func closedByBoth() throws {
        let pair = try PipePair()
        try pair.start()
        for end in [pair.first!, pair.second!] {
            end.write([1, 2, 3])
            end.pipe.close(.afterWriting)
        }
        try pair.run()
        #expect(pair.first.notes == [.drained] && pair.second.notes == [.drained])
        #expect(pair.sessions[0].inspection(of: pair.sessions[1].id)?.streams == 0)
    }

    @Test("reports that it drained after 10 s if the other side takes nothing")
    func lingering() throws {
        let pair = try PipePair()
        try pair.start()
        pair.second.pipe.pauseReading()
        pair.first.write(content)
        pair.first.pipe.close(.afterWriting)
        try pair.run(.seconds(9))
        #expect(pair.first.notes == [] && pair.first.pipe.counters.bytesWaiting > 0)
        try pair.run(.seconds(2))
        #expect(pair.first.notes == [.drained] && pair.first.pipe.counters.bytesWaiting == 0)
    }

    @Test("is lost at once on the other side after close(.now), and calls nobody on this one")
    func closingNow() throws {
        let pair = try PipePair()
        try pair.start()
        pair.first.pipe.close(.now)
        try pair.run()
        #expect(pair.first.notes == [])
        #expect(pair.second.notes == [.closed(.linkLost)])
        #expect(pair.ended == 2)
    }

    @Test("delivers nothing while it is paused, and slows the other side")
    func pausing() throws {
        let pair = try PipePair()
        try pair.start()
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

    @Test("breaks, with the loss of a link as its cause, when the conversation that carries it ends")
    func conversationEnds() throws {
        for isPaused in [false, true] {
            let pair = try PipePair()
            try pair.start()
            if isPaused { pair.second.pipe.pauseReading() }
            pair.sessions[0].disconnect(pair.sessions[1].id)
            try pair.run()
            for end in [pair.first!, pair.second!] { #expect(end.notes == [.closed(.linkLost)]) }
        }
    }

    @Test("sleeps while nothing passes, also after one side has stopped reading")
    func sleeping() throws {
        let pair = try PipePair()
        try pair.start()
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
