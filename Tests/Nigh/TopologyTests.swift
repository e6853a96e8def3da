import Nigh
import NighTestKit
import Testing

/// Who is connected to whom, as programs see it, over memory.
@Suite("A topology", .timeLimit(.minutes(15))) struct TopologyTests {
    private let hub = "topologies-\(UInt64.random(in: 0 ... .max))"

    private func session(
        _ name: String, configure: (inout SessionSettings) -> Void
    ) throws -> Session {
        try Session(service: "shapes", name: name, transports: "memory:hub=\(hub),address=\(name)") {
            $0.identity = .temporary
            configure(&$0)
        }
    }

    /// Invites the session at an address, where it may not listen yet.
    private func invite(_ address: String, from session: Session) async throws {
        while true {
            do {
                _ = try await session.invite(at: address)
                return
            } catch  where error.stage == .connecting {
                await Task.yield()
            }
        }
    }

    /// Waits until a session is connected to these others, and to nobody else.
    private func wait(until session: Session, isConnectedTo others: [Session]) async {
        let expected = Set(others.map(\.id))
        for await peers in session.peerLists where Set(peers.filter(\.isConnected).map(\.id)) == expected {
            break
        }
    }

    @Test(
        "of a mesh connects a session only to the members that its program accepts, whoever introduces them")
    func meshMembers() async throws {
        let sessions = try (0..<4).map { index in
            try session("m\(index)") {
                $0.topology = .mesh
                $0.browses = false
                $0.connectsAutomatically = true
                if index == 1 { $0.meshMembers = .chosen { $0.name != "m3" } }
            }
        }
        for session in sessions.dropFirst() { try await invite("memory://m0", from: session) }
        await wait(until: sessions[2], isConnectedTo: [sessions[0], sessions[1], sessions[3]])
        // Whichever of the two would ask first, the one that wants the other is declined.
        for await event in sessions[3].events {
            guard case .automaticInvitationFailed(let peer, let error) = event, peer.id == sessions[1].id
            else { continue }
            #expect("\(error)".contains("does not accept this peer"))
            break
        }
        await wait(until: sessions[1], isConnectedTo: [sessions[0], sessions[2]])
        await wait(until: sessions[3], isConnectedTo: [sessions[0], sessions[2]])
        for session in sessions { await session.close() }
    }

    @Test("of a mesh shows to a newcomer that the mesh has as many members as it may have, before it asks")
    func fullMesh() async throws {
        let sessions = try (0..<3).map { index in
            try session("m\(index)") {
                $0.topology = .mesh
                $0.browses = false
                $0.limits.peers = 2
                $0.connectsAutomatically = true
            }
        }
        for session in sessions.dropFirst() { try await invite("memory://m0", from: session) }
        for session in sessions {
            await wait(until: session, isConnectedTo: sessions.filter { $0 !== session })
        }
        let newcomer = try session("newcomer") { $0.topology = .mesh }
        for await peers in newcomer.peerLists where peers.count(where: \.isFull) == 3 { break }
        await #expect(throws: NighError.self) { try await newcomer.peers[0].invite() }
        await sessions[2].close()
        for await peers in newcomer.peerLists where peers.count(where: \.isFull) == 0 && peers.count == 2 {
            break
        }
        _ = try await newcomer.peers[0].invite()
        await wait(until: newcomer, isConnectedTo: Array(sessions.prefix(2)))
        for session in sessions.prefix(2) + [newcomer] { await session.close() }
    }

    @Test(
        "of a mesh connects all with all, although each newcomer knows only one of them and asks only that one"
    )
    func mesh() async throws {
        let sessions = try (0..<5).map { index in
            try session("m\(index)") {
                $0.topology = .mesh
                $0.browses = false
                $0.info = ["seat": "\(index)"]
            }
        }
        let events = sessions[0].events
        let host = Task { () -> [String] in
            var asking: [String] = []
            for await event in events {
                guard case .invited(let invitation) = event else { continue }
                asking.append(invitation.peer.name)
                invitation.accept()
            }
            return asking
        }
        for session in sessions.dropFirst() { try await invite("memory://m0", from: session) }
        for session in sessions {
            await wait(until: session, isConnectedTo: sessions.filter { $0 !== session })
        }
        // What discovery would show, the peers say themselves, also when it changes.
        for await peers in sessions[3].peerLists where peers.contains(where: { $0.info == ["seat": "4"] }) {
            break
        }
        try sessions[4].advertise(["seat": "none"])
        for await peers in sessions[3].peerLists where peers.contains(where: { $0.info == ["seat": "none"] })
        {
            break
        }
        try await sessions[3].broadcast("to all of them")
        for session in sessions where session !== sessions[3] {
            for await message in session.messages(of: String.self) {
                #expect(message.content == "to all of them" && message.sender.id == sessions[3].id)
                break
            }
        }
        // The one that the others have met by goes, and the mesh stays.
        await sessions[0].close()
        for session in sessions.dropFirst() {
            await wait(until: session, isConnectedTo: sessions.dropFirst().filter { $0 !== session })
        }
        #expect(await host.value.sorted() == ["m1", "m2", "m3", "m4"])
        for session in sessions { await session.close() }
    }

    @Test("of a host and its guests shows guests the host only")
    func hostAndGuests() async throws {
        let host = try session("host") {
            $0.browses = false
            $0.connectsAutomatically = true
        }
        let guests = try ["first", "second"].map { name in
            try session(name) {
                $0.advertises = false
                $0.connectsAutomatically = true
            }
        }
        await wait(until: host, isConnectedTo: guests)
        for guest in guests {
            await wait(until: guest, isConnectedTo: [host])
            #expect(guest.peers.map(\.id) == [host.id])
        }
        for session in [host] + guests { await session.close() }
    }
}
