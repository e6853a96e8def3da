import Nigh
import Testing

/// Groups as programs use them, over memory.
@Suite("A group", .timeLimit(.minutes(15))) struct GroupTests {
    private let network = TestNetwork()

    /// Waits until a group has these members.
    private func wait(for members: [Session], in group: Group) async {
        for await list in group.memberLists where list.map(\.id) == members.map(\.id).sorted() { break }
    }

    @Test func `A group carries values between its members, and shows who they are`() async throws {
        try await network.pair { puma, lynx, _ in
            let hare = try network.session("Hare")
            for session in [puma, lynx, hare] {
                for await peers in session.peerLists where peers.count(where: \.isConnected) == 2 { break }
            }
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
            let message = try await asLynx.messages(of: String.self).first()
            #expect(message.content == "for red" && message.sender.id == puma.id)
            #expect(await asLynx.messages.next()?.bytes == [1, 2, 3])
            #expect(try await hare.messages(of: String.self).first().content == "for all")
            await red.leave()
            #expect(puma.groupNames == [] && red.members.isEmpty)
            await wait(for: [], in: asLynx)
            await #expect(throws: PartialSendError.self) { try await red.send("too late") }
            await lynx.close()
            #expect(await asLynx.messages.next() == nil)
            await hare.close()
        }
    }

    @Test func `A group takes a message whose receiver leaves while it waits for room`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let (red, lynxRed) = (try await puma.join("red"), try await lynx.join("red"))
            await wait(for: [lynx], in: red)
            let sending = Task {
                while !red.members.isEmpty {
                    try await red.send(bytes: [UInt8](repeating: 7, count: 64 << 10))
                }
            }
            await puma.fill(asLynx)
            await lynx.close()
            try await sending.value
            withExtendedLifetime(lynxRed) {}
        }
    }

    @Test func `A group keeps out a peer that a member does not accept, and tells both`() async throws {
        try await network.pair { puma, lynx, _ in
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
            // A group that was left stays left, whatever is joined later.
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
            #expect(try await red.messages(of: String.self).first().content == "here")
        }
    }

    @Test func `A group with a name or a context that is not allowed is refused`() async throws {
        let puma = try network.session("Puma")
        _ = try await puma.join("red")
        await #expect(throws: NighError.self) { try await puma.join("red") }
        await #expect(throws: NighError.self) { try await puma.join("") }
        await #expect(throws: NighError.self) {
            try await puma.join("big", context: [UInt8](repeating: 0, count: 1_025))
        }
        #expect(puma.groupNames == ["red"])
        await puma.close()
    }
}
