import NighTestKit
import Testing

@testable import NighCore

/// A probe whose other side is the test, which writes bytes without encryption.
@Suite("A probe of a link") struct LinkProbeTests {
    private let loop = VirtualEventLoop()
    private let transport = ScriptedTransport()
    private let pipe: ScriptedPipe
    private let reports = Reports()

    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Reports: @unchecked Sendable {
        var pongs = 0
        var end: NighError??
    }

    init() throws {
        pipe = ScriptedPipe(of: transport)
        pipe.room = 1 << 20
        var plan = LinkProbe.Plan(
            identity: .ephemeral(seed: 1), service: "test", name: DisplayName(fitting: "Doctor"))
        plan.isEncrypted = false
        plan.pings = 2
        try LinkProbe(pipe, over: "scripted", plan, on: loop) { [reports] event in
            switch event {
            case .pongReceived: reports.pongs += 1
            case .ended(let error): reports.end = .some(error)
            default: break
            }
        }
        try loop.runQueued()
        try receive(ScriptedPeer.preface)
        try receive(Frames.frame(.hello, ScriptedPeer.hello.payload))
    }

    private func receive(_ bytes: [UInt8]) throws {
        pipe.receive(bytes)
        try loop.runQueued()
    }

    private static func ping(_ token: UInt8) -> [UInt8] {
        Frames.frame(.ping, [UInt8](repeating: 0, count: 7) + [token])
    }

    private func count(of call: String) -> Int { transport.calls.count { $0.hasPrefix(call) } }

    @Test func `reads no more from a peer that asks without end and does not read the answers`() throws {
        pipe.room = 0
        _ = pipe.takeWritten()
        var received = 0
        while count(of: "pauseReading") == 0, received < 100_000 {
            try receive(Self.ping(1))
            received += 1
        }
        #expect(count(of: "pauseReading") == 1)
        #expect(pipe.takeWritten().isEmpty)
        pipe.room = 1 << 20
        pipe.handler?.pipeBecameWritable(pipe)
        try loop.runQueued()
        #expect(count(of: "resumeReading") == 1)
        #expect(pipe.takeWritten().count >= received * Self.ping(1).count)
    }

    @Test func `ends when a ping is not answered in time, whatever else comes`() throws {
        for _ in 0..<4 {
            try loop.run(for: .seconds(1))
            try receive(Self.ping(1))
        }
        #expect(reports.end == nil)
        try loop.run(for: .seconds(1))
        #expect(reports.pongs == 0)
        #expect(reports.end??.cause == .timedOut && reports.end??.stage == .pinging)
    }
}
