import Nigh
import Testing

/// Snapshots of peers, and what their methods act on.
@Suite("A snapshot of a peer", .timeLimit(.minutes(15))) struct PeerTests {
    private let network = TestNetwork()

    /// Runs `body` with Puma, which has found Lynx. Lynx accepts every invitation.
    private func meet(_ body: (_ puma: Session, _ lynx: Session, _ early: Peer) async throws -> Void)
        async throws
    {
        let puma = try network.session("Puma", connects: false)
        let lynx = try network.session("Lynx", connects: false)
        let events = lynx.events
        let accepting = Task {
            for await case .invited(let invitation) in events { invitation.accept() }
        }
        try await body(puma, lynx, try await puma.foundPeer())
        await lynx.close()
        await puma.close()
        await accepting.value
    }

    @Test func `A snapshot sends into the conversation that there is now`() async throws {
        try await meet { puma, lynx, early in
            #expect(!early.isConnected)
            var during: Peer?
            for number in UInt8(0)..<3 {
                try await early.invite()
                for peer in [early, during ?? early, puma.peer(early.id)] {
                    try await peer.send(bytes: [number])
                    #expect(await lynx.messages.next()?.bytes == [number])
                }
                during = during ?? puma.peer(early.id)
                try await early.disconnect()
                let error = await #expect(throws: NighError.self) { try await during?.send(bytes: [9]) }
                #expect(error?.stage == .sending && error?.peer == "Lynx (\(lynx.id.short))")
            }
        }
    }

    @Test func `A snapshot shows what was, and equals each other snapshot of its peer`() async throws {
        try await meet { puma, lynx, early in
            try await early.invite()
            let late = puma.peer(early.id)
            #expect(early.state == .available && early.transport == nil)
            #expect(late.state == .connected && late.transport == "memory")
            #expect(early == late && Set([early, late]).count == 1)
            #expect(early.name == "Lynx" && early.id == lynx.id)
        }
    }

    @Test func `A snapshot does not keep its session, which says goodbye`() async throws {
        let lynx = try network.session("Lynx")
        var puma: Session? = try network.session("Puma")
        let peer = try await #require(puma).connectedPeer()
        let events = lynx.events
        puma = nil
        #expect(await events.peerLeft()?.name == "Puma")
        let error = await #expect(throws: NighError.self) { try await peer.invite() }
        #expect(error?.cause == .closed && error?.stage == .inviting)
        await lynx.close()
    }
}
