import NighCore
import NighMemory
import NighTestKit
import NighUV
import Testing

/// Tests what is reported for a transport on a loop that it cannot run on, in virtual time.
@Suite struct UnsupportedLoopTests {
    private final class Session: TransportEvents {
        var conditions: [TransportCondition] = []
        var failedDials: [DialID] = []

        func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
            failedDials.append(dial)
        }
        func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
            conditions.append(condition)
        }
        func routeFound(_ sighting: Sighting, by transport: any Transport) {}
        func routeChanged(_ sighting: Sighting, by transport: any Transport) {}
        func routeLost(_ address: TransportAddress, by transport: any Transport) {}
        func addressKnown(_ address: TransportAddress, by transport: any Transport) {}
        func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {}
        func advertised(as name: DisplayName, by transport: any Transport) {}
        func advertisingFailed(_ error: NighError, by transport: any Transport) {}
        func browsingFailed(_ error: NighError, by transport: any Transport) {}
        func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {}
    }

    @Test("Dials fail in a later turn, but for those that were cancelled before")
    func dials() throws {
        let (loop, transport, session) = (VirtualEventLoop(), MemoryTransport(), Session())
        let unsupported = UnsupportedLoop(loop, session, for: transport)
        let dials = (1...3).map { DialID(number: $0) }
        for dial in dials { unsupported.refuse(dial, by: transport) }
        unsupported.cancel(dials[1])
        #expect(session.conditions.isEmpty && session.failedDials.isEmpty)
        try loop.run(for: .milliseconds(1))
        #expect(session.conditions.count == 1 && session.failedDials == [dials[0], dials[2]])
        // One that was reported is over.
        unsupported.cancel(dials[0])
        try loop.run(for: .milliseconds(1))
        #expect(session.failedDials.count == 2)
    }
}
