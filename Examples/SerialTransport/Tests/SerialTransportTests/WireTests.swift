import NighLoop
import NighTestKit
import Testing

@testable import SerialTransport

/// What happens to sessions when the wire itself fails and returns.
@Suite struct WireTests {
    private let loop = VirtualEventLoop()

    private func session(_ name: String, at end: Int, of wire: SimulatedWire) -> (LowLevelSession, Record) {
        let configuration = SessionConfiguration(
            service: "wire-test", name: DisplayName(fitting: name), role: .peer)
        let session = LowLevelSession(
            configuration, identity: .ephemeral(seed: UInt64(end + 1)), transports: [wire.transport(end)],
            loop: loop)
        let record = Record()
        session.start(
            onEvent: { event in
                if case .invited(let invitation) = event { invitation.accept() }
                if let peer = event.stateChange?.peer { record.states.append(peer.state) }
            }, onMessage: { bytes, _ in record.messages.append(bytes.withUnsafeBytes { Array($0) }) })
        return (session, record)
    }

    private final class Record: @unchecked Sendable {  // Confined to the one loop.
        var states: [PeerState] = []
        var messages: [[UInt8]] = []
    }

    private func wait(_ condition: @escaping () -> Bool, within time: Duration = .seconds(30)) throws {
        #expect(try loop.run(until: condition, within: time))
    }

    @Test("a cable that is pulled for five seconds ends no conversation, and no message is lost")
    func pulled() throws {
        let wire = SimulatedWire(on: loop)
        let (puma, pumaSaw) = session("Puma", at: 0, of: wire)
        let (lynx, lynxSaw) = session("Lynx", at: 1, of: wire)
        try wait { pumaSaw.states.last == .available && lynxSaw.states.last == .available }
        puma.invite(lynx.id) { _ in }
        try wait { pumaSaw.states.last == .connected && lynxSaw.states.last == .connected }
        wire.isPulled = true
        try puma.trySend([1, 2, 3], to: lynx.id)
        let bothNotice = { pumaSaw.states.last == .reconnecting && lynxSaw.states.last == .reconnecting }
        try wait(bothNotice, within: .seconds(4))
        try loop.run(for: .seconds(1))
        wire.isPulled = false
        let hasResumed = { lynxSaw.messages == [[1, 2, 3]] && pumaSaw.states.last == .connected }
        try wait(hasResumed, within: .seconds(3))
        #expect(!pumaSaw.states.contains(.disconnected) && !lynxSaw.states.contains(.disconnected))
        puma.close {}
        lynx.close {}
        try loop.run(for: .seconds(10))
    }

    @Test("a peer that closes its session becomes unavailable within 2 s, although no wire reports it")
    func leaves() throws {
        let wire = SimulatedWire(on: loop)
        let (puma, pumaSaw) = session("Puma", at: 0, of: wire)
        let (lynx, _) = session("Lynx", at: 1, of: wire)
        try wait { pumaSaw.states.last == .available }
        lynx.close {}
        try wait({ pumaSaw.states.last == .unavailable }, within: .seconds(2))
        puma.close {}
        try loop.run(for: .seconds(10))
    }
}
