import NighCore
import NighTestKit
import Testing

@testable import NighSerial

/// Tests sessions while the line fails and returns, and while it is slow.
@Suite struct SerialSessionTests {
    private let loop = VirtualEventLoop()

    private func wait(within time: Duration = .seconds(30), _ condition: @escaping () -> Bool) throws {
        #expect(try loop.run(until: condition, within: time))
    }

    /// Waits until each of the two is in this state for the other one.
    private func wait(
        for state: PeerState, _ puma: SessionProbe, _ lynx: SessionProbe, within time: Duration = .seconds(30)
    ) throws {
        try wait(within: time) { puma.state(of: lynx.id) == state && lynx.state(of: puma.id) == state }
    }

    private func closeAll(_ probes: SessionProbe...) throws {
        for probe in probes { probe.session.close {} }
        try loop.run(for: .seconds(10))
    }

    @Test func `a cable that is pulled for five seconds ends no conversation, and no message is lost`() throws
    {
        let line = SimulatedLine(on: loop)
        let (puma, lynx) = (line.session("Puma", at: 0), line.session("Lynx", at: 1))
        try wait(for: .available, puma, lynx)
        puma.session.invite(lynx.id) { _ in }
        try wait(for: .connected, puma, lynx)
        line.isPulled = true
        try puma.session.trySend([1, 2, 3], to: lynx.id)
        try wait(for: .reconnecting, puma, lynx, within: .seconds(4))
        try loop.run(for: .seconds(1))
        line.isPulled = false
        try wait(within: .seconds(3)) {
            lynx.messages.map(\.bytes) == [[1, 2, 3]] && puma.state(of: lynx.id) == .connected
        }
        #expect(!puma.states(of: lynx.id).contains(.disconnected))
        #expect(!lynx.states(of: puma.id).contains(.disconnected))
        try closeAll(puma, lynx)
    }

    @Test func `a peer that closes its session becomes unavailable within 2 s, although no line reports it`()
        throws
    {
        let line = SimulatedLine(on: loop)
        let (puma, lynx) = (line.session("Puma", at: 0), line.session("Lynx", at: 1))
        try wait { puma.state(of: lynx.id) == .available }
        lynx.session.close {}
        try wait(within: .seconds(2)) { puma.state(of: lynx.id) == .unavailable }
        try closeAll(puma)
    }

    @Test(arguments: SerialRate.known) func `two peers meet and exchange a message at any rate`(baud: Int)
        throws
    {
        let line = SimulatedLine(on: loop, baud: baud)
        let (puma, lynx) = (line.session("Puma", at: 0), line.session("Lynx", at: 1))
        try wait(for: .available, puma, lynx)
        let seen = loop.now
        puma.session.invite(lynx.id) { _ in }
        try wait(for: .connected, puma, lynx)
        // A handshake may take 10 s.
        #expect(loop.now - seen < .seconds(4))
        try puma.session.trySend([UInt8](repeating: 7, count: 100), to: lynx.id)
        try wait { lynx.messages.count == 1 }
        #expect(!puma.states(of: lynx.id).contains(.reconnecting))
        #expect(!lynx.states(of: puma.id).contains(.reconnecting))
        try closeAll(puma, lynx)
    }
}
