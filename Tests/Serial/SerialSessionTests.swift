import NighLoop
import NighTestKit
import Testing

@testable import NighSerial

/// Tests sessions while the line fails and returns, and while it is slow.
@Suite struct SerialSessionTests {
    private let loop = VirtualEventLoop()

    private final class Record: @unchecked Sendable {  // Confined to the one loop.
        var states: [PeerState] = []
        var messages: [[UInt8]] = []
    }

    private func session(_ name: String, at end: Int, of line: SimulatedLine) -> (LowLevelSession, Record) {
        let configuration = SessionConfiguration(
            service: "line-test", name: DisplayName(fitting: name), role: .peer)
        let session = LowLevelSession(
            configuration, identity: .ephemeral(seed: UInt64(end + 1)), transports: [line.makeTransport(end)],
            loop: loop)
        let record = Record()
        session.start(
            onEvent: { event in
                if case .invited(let invitation) = event { invitation.accept() }
                if let peer = event.stateChange?.peer { record.states.append(peer.state) }
            }, onMessage: { bytes, _ in record.messages.append(bytes.withUnsafeBytes { Array($0) }) })
        return (session, record)
    }

    private func wait(within time: Duration = .seconds(30), _ condition: @escaping () -> Bool) throws {
        #expect(try loop.run(until: condition, within: time))
    }

    private func closeAll(_ sessions: LowLevelSession...) throws {
        for session in sessions { session.close {} }
        try loop.run(for: .seconds(10))
    }

    @Test("a cable that is pulled for five seconds ends no conversation, and no message is lost")
    func pulled() throws {
        let line = SimulatedLine(on: loop)
        let (puma, pumaSaw) = session("Puma", at: 0, of: line)
        let (lynx, lynxSaw) = session("Lynx", at: 1, of: line)
        try wait { pumaSaw.states.last == .available && lynxSaw.states.last == .available }
        puma.invite(lynx.id) { _ in }
        try wait { pumaSaw.states.last == .connected && lynxSaw.states.last == .connected }
        line.isPulled = true
        try puma.trySend([1, 2, 3], to: lynx.id)
        try wait(within: .seconds(4)) {
            pumaSaw.states.last == .reconnecting && lynxSaw.states.last == .reconnecting
        }
        try loop.run(for: .seconds(1))
        line.isPulled = false
        try wait(within: .seconds(3)) {
            lynxSaw.messages == [[1, 2, 3]] && pumaSaw.states.last == .connected
        }
        #expect(!pumaSaw.states.contains(.disconnected) && !lynxSaw.states.contains(.disconnected))
        try closeAll(puma, lynx)
    }

    @Test("a peer that closes its session becomes unavailable within 2 s, although no line reports it")
    func leaves() throws {
        let line = SimulatedLine(on: loop)
        let (puma, pumaSaw) = session("Puma", at: 0, of: line)
        let (lynx, _) = session("Lynx", at: 1, of: line)
        try wait { pumaSaw.states.last == .available }
        lynx.close {}
        try wait(within: .seconds(2)) { pumaSaw.states.last == .unavailable }
        try closeAll(puma)
    }

    @Test("two peers meet and exchange a message at any rate", arguments: SerialRate.known)
    func anyRate(baud: Int) throws {
        let line = SimulatedLine(on: loop, baud: baud)
        let (puma, pumaSaw) = session("Puma", at: 0, of: line)
        let (lynx, lynxSaw) = session("Lynx", at: 1, of: line)
        try wait { pumaSaw.states.last == .available && lynxSaw.states.last == .available }
        let seen = loop.now
        puma.invite(lynx.id) { _ in }
        try wait { pumaSaw.states.last == .connected && lynxSaw.states.last == .connected }
        let connected = loop.now
        try puma.trySend([UInt8](repeating: 7, count: 100), to: lynx.id)
        try wait { lynxSaw.messages.count == 1 }
        // A handshake may take 10 s.
        #expect(connected - seen < .seconds(4))
        #expect(!pumaSaw.states.contains(.reconnecting) && !lynxSaw.states.contains(.reconnecting))
        try closeAll(puma, lynx)
    }
}
