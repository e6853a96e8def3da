import NighCore
import NighMemory
import NighTestKit
import NighUV
import Testing

/// Tests what is reported for a transport on a loop that it cannot run on, in virtual time.
@Suite struct UnsupportedLoopTests {
    @Test func `Dials fail in a later turn, but for those that were cancelled before`() throws {
        let (loop, transport, recorder) = (VirtualEventLoop(), MemoryTransport(), TransportRecorder())
        let unsupported = UnsupportedLoop(loop, recorder, for: transport)
        let dials = (1...3).map { DialID(number: $0) }
        for dial in dials { unsupported.refuse(dial, by: transport) }
        unsupported.cancel(dials[1])
        #expect(recorder.events.isEmpty)
        try loop.run(for: .milliseconds(1))
        let log = recorder.log
        #expect(log.first?.hasPrefix("down") == true)
        #expect(log.dropFirst().map { $0.prefix(8) } == ["failed 1", "failed 3"])
        // One that was reported is over.
        unsupported.cancel(dials[0])
        try loop.run(for: .milliseconds(1))
        #expect(recorder.log == log)
    }
}
