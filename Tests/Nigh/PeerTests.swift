import Nigh
import NighTestKit
import Testing

/// Snapshots of peers, and what their methods act on.
@Suite("A snapshot of a peer", .timeLimit(.minutes(15))) struct PeerTests {
    private let network = "memory:hub=peers-\(UInt64.random(in: 0 ... .max))"

    private func session(_ name: String) throws(NighError) -> Session {
        try Session(service: "chat", name: name, transports: network) { $0.identity = .temporary }
    }

    private func found(in session: Session) async throws -> Peer {
        for await case .peerFound(let peer) in session.events { return peer }
        throw NighError(.connecting, .timedOut)
    }

    private func accept(in session: Session) -> Task<Void, Never> {
        let events = session.events
        return Task {
            for await case .invited(let invitation) in events { invitation.accept() }
        }
    }

    @Test("sends into the conversation that there is now, however many there were since")
    func laterConversation() async throws {
        let (puma, lynx) = (try session("Puma"), try session("Lynx"))
        let accepting = accept(in: lynx)
        let early = try await found(in: puma)
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
        await lynx.close()
        await puma.close()
        await accepting.value
    }

    @Test("shows what was, and equals each other snapshot of its peer")
    func snapshot() async throws {
        let (puma, lynx) = (try session("Puma"), try session("Lynx"))
        let accepting = accept(in: lynx)
        let early = try await found(in: puma)
        try await early.invite()
        let late = puma.peer(early.id)
        #expect(early.state == .available && early.transport == nil)
        #expect(late.state == .connected && late.transport == "memory")
        #expect(early == late && Set([early, late]).count == 1)
        #expect(early.name == "Lynx" && early.id == lynx.id)
        await lynx.close()
        await puma.close()
        await accepting.value
    }

    @Test("does not keep its session")
    func dropped() async throws {
        let lynx = try session("Lynx")
        var puma: Session? = try session("Puma")
        let accepting = accept(in: lynx)
        let peer = try await found(in: #require(puma))
        try await peer.invite()
        let events = lynx.events
        puma = nil
        for await case .disconnected(_, let error) in events {
            #expect(error.cause == .peerLeft)
            break
        }
        let error = await #expect(throws: NighError.self) { try await peer.invite() }
        #expect(error?.cause == .closed && error?.stage == .inviting)
        await lynx.close()
        await accepting.value
    }
}
