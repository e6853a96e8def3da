import Nigh
import Synchronization
import Testing

/// Connections of several sessions, as programs see them, over memory.
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

    /// Members of a mesh, which find each other by no discovery: all but the first invite the first.
    private func mesh(
        of count: Int, configure: (Int, inout SessionSettings) -> Void
    ) async throws -> [Session] {
        let sessions = try (0..<count).map { index in
            try session("m\(index)") {
                $0.topology = .mesh
                $0.browses = false
                $0.connectsAutomatically = true
                configure(index, &$0)
            }
        }
        for session in sessions.dropFirst() { try await invite("memory://m0", from: session) }
        return sessions
    }

    /// Waits until each of the sessions is connected to all others of them, and to nobody else.
    private func waitUntilAllAreConnected(_ sessions: some Sequence<Session>) async {
        for session in sessions {
            await wait(until: session, isConnectedTo: sessions.filter { $0 !== session })
        }
    }

    @Test func `A mesh connects a session only to members that its program accepts`() async throws {
        let sessions = try await mesh(of: 4) { index, settings in
            if index == 1 { settings.meshMembers = .chosen { $0.name != "m3" } }
        }
        await wait(until: sessions[2], isConnectedTo: [sessions[0], sessions[1], sessions[3]])
        // Whichever of the two would ask first, the one that wants the other is declined.
        for await event in sessions[3].events {
            guard case .automaticInvitationFailed(let peer, let error) = event, peer.id == sessions[1].id
            else { continue }
            #expect("\(error)".contains("does not accept this peer"))
            break
        }
        for index in [1, 3] { await wait(until: sessions[index], isConnectedTo: [sessions[0], sessions[2]]) }
        for session in sessions { await session.close() }
    }

    @Test func `A mesh that is full shows that before a newcomer asks`() async throws {
        let sessions = try await mesh(of: 3) { $1.limits.peers = 2 }
        await waitUntilAllAreConnected(sessions)
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

    @Test func `A mesh connects all with all, although each newcomer asks only one of them`() async throws {
        let asking = Mutex<[String]>([])
        let sessions = try await mesh(of: 5) { index, settings in
            settings.info = ["seat": "\(index)"]
            settings.connectsAutomatically = false
            guard index == 0 else { return }
            settings.onEvent = { event in
                guard case .invited(let invitation) = event else { return }
                asking.withLock { $0.append(invitation.peer.name) }
                invitation.accept()
            }
        }
        await waitUntilAllAreConnected(sessions)
        // The peers themselves say everything that discovery would show, also when it changes.
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
            let message = try await session.messages(of: String.self).first()
            #expect(message.content == "to all of them" && message.sender.id == sessions[3].id)
        }
        // The one that the others have met by goes, and the mesh stays.
        await sessions[0].close()
        await waitUntilAllAreConnected(sessions.dropFirst())
        #expect(asking.withLock { $0.sorted() } == ["m1", "m2", "m3", "m4"])
        for session in sessions { await session.close() }
    }

    @Test func `Guests of a host see the host only`() async throws {
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
