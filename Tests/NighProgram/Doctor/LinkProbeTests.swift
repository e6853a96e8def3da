import NighCore
import NighTestKit
import Testing

@testable import nigh

/// A probe whose other side is a link that the test drives, without encryption.
@Suite("A probe of a link") final class LinkProbeTests {
    /// Keeps what is written, and counts how often reading is paused and resumed.
    private final class StubPipe: Pipe {
        let localAddress: TransportAddress? = nil
        let remoteAddress: TransportAddress? = nil
        let counters = PipeCounters()
        var writableBytes = 1 << 20
        private(set) var handler: (any PipeHandler)?
        private(set) var written: [UInt8] = []
        private(set) var pauses = 0
        private(set) var resumptions = 0

        func start(handler: any PipeHandler) { self.handler = handler }
        func write(_ queue: inout ByteQueue) {
            written += queue.bytes
            queue.removeAll()
        }
        func pauseReading() { pauses += 1 }
        func resumeReading() { resumptions += 1 }
        func close(_ mode: PipeCloseMode) {}

        func takeWritten() -> [UInt8] {
            defer { written = [] }
            return written
        }
    }

    private let loop = VirtualEventLoop()
    private let pipe = StubPipe()
    private var peer: LinkMachine
    private let reports = Reports()

    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Reports: @unchecked Sendable {
        var pongs = 0
        var end: NighError??
    }

    init() throws {
        var plan = LinkProbe.Plan(
            identity: .ephemeral(seed: 1), service: "test", name: DisplayName(fitting: "Doctor"))
        plan.isEncrypted = false
        plan.pings = 2
        let hello = Hello(
            peer: Identity.ephemeral(seed: 2).peerID, incarnation: 1, service: "test",
            name: DisplayName(fitting: "Lynx"), maximumFrame: Hello.leastMaximumFrame,
            maximumMessage: Hello.leastMaximumFrame)
        peer = LinkMachine(
            side: .accepting, hello: hello,
            timings: LinkTimings(handshake: .seconds(60), pingAfter: .seconds(60), loseAfter: .seconds(60)),
            now: loop.now)
        try LinkProbe(pipe, over: "stub", plan, on: loop) { [reports] event in
            switch event {
            case .pongReceived: reports.pongs += 1
            case .ended(let error): reports.end = .some(error)
            default: break
            }
        }
        try loop.runQueued()
        try receive(answer())
        // The answer to the first ping is lost.
        _ = answer()
    }

    /// Returns what the peer writes once it has read everything from the probe.
    private func answer() -> [UInt8] {
        peer.receive(ByteSlice(pipe.takeWritten()), now: loop.now)
        while peer.next(now: loop.now) != nil {}
        return outgoing()
    }

    private func outgoing() -> [UInt8] {
        var bytes = ByteQueue()
        peer.gather(into: &bytes, budget: 1 << 20)
        return bytes.bytes
    }

    private func receive(_ bytes: [UInt8]) throws {
        pipe.handler?.pipe(pipe, received: ByteSlice(bytes))
        try loop.runQueued()
    }

    /// Has the peer send a ping. Returns its size on the wire.
    private func ping() throws -> Int {
        peer.ping(token: 1, payload: [], now: loop.now)
        let frame = outgoing()
        try receive(frame)
        return frame.count
    }

    @Test func `reads no more from a peer that asks without end and does not read the answers`() throws {
        pipe.writableBytes = 0
        _ = pipe.takeWritten()
        var received = 0
        var byteCount = 0
        while pipe.pauses == 0, received < 100_000 {
            byteCount += try ping()
            received += 1
        }
        #expect(pipe.pauses == 1)
        #expect(pipe.takeWritten().isEmpty)
        pipe.writableBytes = 1 << 20
        pipe.handler?.pipeBecameWritable(pipe)
        try loop.runQueued()
        #expect(pipe.resumptions == 1)
        #expect(pipe.takeWritten().count >= byteCount)
    }

    @Test func `ends when a ping is not answered in time, whatever else comes`() throws {
        for _ in 0..<4 {
            try loop.run(for: .seconds(1))
            _ = try ping()
        }
        #expect(reports.end == nil)
        try loop.run(for: .seconds(1))
        #expect(reports.pongs == 0)
        #expect(reports.end??.cause == .timedOut && reports.end??.stage == .pinging)
    }
}
