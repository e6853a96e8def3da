import Nigh
import NighTestKit
import Testing

/// Groups as programs use them, over memory.
@Suite("A group", .timeLimit(.minutes(15))) struct GroupTests {
    /// Only the sessions of one test meet.
    private let network = "memory:hub=groups-\(UInt64.random(in: 0 ... .max))"

    private func sessions(_ names: String...) async throws -> [Session] {
        let sessions = try names.map { name in
            try Session(service: "teams", name: name, transports: network) { settings in
                settings.identity = .temporary
                settings.connectsAutomatically = true
            }
        }
        for session in sessions {
            for await peers in session.peerLists where peers.count(where: \.isConnected) == names.count - 1 {
                break
            }
        }
        return sessions
    }

    /// Waits until a group has these members.
    private func wait(for members: [Session], in group: Group) async {
        for await list in group.memberLists where list.map(\.id) == members.map(\.id).sorted() { break }
    }

    @Test("carries values between its members, and shows who they are")
    func values() async throws {
        let sessions = try await sessions("Puma", "Lynx", "Hare")
        let (puma, lynx, hare) = (sessions[0], sessions[1], sessions[2])
        let red = try await puma.join("red")
        let asLynx = try await lynx.join("red", context: [4])
        let blue = try await hare.join("blue")
        await wait(for: [lynx], in: red)
        await wait(for: [puma], in: asLynx)
        #expect(red.members.map(\.name) == ["Lynx"] && blue.members.isEmpty && puma.groupNames == ["red"])
        try await red.send("for red")
        try await puma.broadcast("for all")
        try await red.send(bytes: [1, 2, 3])
        try await blue.send("for nobody")
        for await message in asLynx.messages(of: String.self) {
            #expect(message.content == "for red" && message.sender.id == puma.id)
            break
        }
        #expect(await asLynx.messages.next()?.bytes == [1, 2, 3])
        for await message in hare.messages(of: String.self) {
            #expect(message.content == "for all")
            break
        }
        await red.leave()
        #expect(puma.groupNames == [] && red.members.isEmpty)
        await wait(for: [], in: asLynx)
        await #expect(throws: PartialSendError.self) { try await red.send("too late") }
        for session in sessions { await session.close() }
        #expect(await asLynx.messages.next() == nil)
    }

    @Test("takes a message without an error when a member leaves while the message waits for room")
    func leavesWhileFull() async throws {
        let sessions = try await sessions("Puma", "Lynx")
        let (puma, lynx) = (sessions[0], sessions[1])
        let red = try await puma.join("red")
        let asLynx = try await lynx.join("red")
        await wait(for: [lynx], in: red)
        let sending = Task {
            while !red.members.isEmpty {
                try await red.send(bytes: [UInt8](repeating: 7, count: 64 << 10))
            }
        }
        await puma.fill(red.members[0])
        await lynx.close()
        try await sending.value
        withExtendedLifetime(asLynx) {}
        await puma.close()
    }

    @Test("keeps out whom a member does not accept, and tells both")
    func admission() async throws {
        let sessions = try await sessions("Puma", "Lynx")
        let (puma, lynx) = (sessions[0], sessions[1])
        // Lynx is there first, so that it hears of every answer.
        let refused = try await lynx.join("red")
        let green = try await lynx.join("green")
        let (refusals, greenRefusals) = (refused.events, green.events)
        let red = try await puma.join("red", admitting: .chosen { _, context in context == [7] })
        _ = try await puma.join("green", admitting: .paired)
        for await case .refused(let peer, let error) in refusals {
            #expect(peer.id == puma.id)
            #expect(error.cause == .declined("the program there does not accept this peer"))
            break
        }
        for await case .refused(_, let error) in greenRefusals {
            #expect(error.cause == .declined("the group is for paired devices only"))
            break
        }
        #expect(refused.members.isEmpty && red.members.isEmpty)
        await refused.leave()
        // What was left stays left, whatever is joined later.
        await #expect(throws: PartialSendError.self) { try await refused.send("late") }
        let accepted = try await lynx.join("red", context: [7])
        await wait(for: [puma], in: accepted)
        await wait(for: [lynx], in: red)
        // A reader that comes later hears of the members, too.
        for await case .joined(let peer, let context) in red.events {
            #expect(peer.id == lynx.id && context == [7])
            break
        }
        await refused.leave()
        #expect(refused.members.isEmpty && lynx.groupNames == ["green", "red"])
        await #expect(throws: PartialSendError.self) { try await refused.send("late") }
        try await accepted.send("here")
        for await message in red.messages(of: String.self) {
            #expect(message.content == "here")
            break
        }
        for session in sessions { await session.close() }
    }

    @Test("says which names and sizes are not allowed")
    func mistakes() async throws {
        let sessions = try await sessions("Puma", "Lynx")
        let puma = sessions[0]
        _ = try await puma.join("red")
        await #expect(throws: NighError.self) { try await puma.join("red") }
        await #expect(throws: NighError.self) { try await puma.join("") }
        await #expect(throws: NighError.self) {
            try await puma.join("big", context: [UInt8](repeating: 0, count: 1_025))
        }
        #expect(puma.groupNames == ["red"])
        for session in sessions { await session.close() }
        await #expect(throws: NighError.self) { try await puma.join("late") }
    }
}
