import NighLoop
import NighTestKit
import Synchronization
import Testing

@Suite("On a network that breaks")
struct BreakingNetworkTests {
    @Test(
        "messages arrive once and in order, although the link is cut under them"
    )
    func cut() throws {
        let loop = VirtualEventLoop()
        let hub = MemoryHub()
        let service: ServiceName = "test"
        let network = FaultyTransport(MemoryTransport(hub: hub))
        let puma = LowLevelSession(
            SessionConfiguration(
                service: service, name: DisplayName(fitting: "Puma")),
            identity: .ephemeral(), transports: [network], loop: loop)
        let lynx = LowLevelSession(
            SessionConfiguration(
                service: service, name: DisplayName(fitting: "Lynx")),
            identity: .ephemeral(), transports: [MemoryTransport(hub: hub)],
            loop: loop)
        let received = Mutex<[UInt8]>([])

        puma.start { event in
            if case .peerFound(let peer) = event {
                puma.invite(peer.id) { _ in }
            }
        }
        lynx.start { event in
            if case .invited(let invitation) = event { invitation.accept() }
        } onMessage: { bytes, _ in
            received.withLock { $0.append(bytes.unsafeLoad(as: UInt8.self)) }
        }
        #expect(
            try loop.run(
                until: { puma.connectedPeerIDs == [lynx.id] },
                within: .seconds(10)))

        for number in UInt8(0)..<100 {
            try puma.trySend([number], to: lynx.id)
            if number == 50 { network.control.cut() }
        }
        try loop.run(for: .seconds(30))
        #expect(received.withLock { $0 } == Array(0..<100))
        #expect(puma.connectedPeerIDs == [lynx.id])
    }
}
