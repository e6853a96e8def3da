import Nigh
import NighTestKit
import Testing

/// Channels as programs and their libraries use them, over memory.
@Suite("A channel", .timeLimit(.minutes(15))) struct ChannelTests {
    private let network = "memory:hub=channels-\(UInt64.random(in: 0 ... .max))"

    private func pair() async throws -> (puma: Session, lynx: Session, asLynx: Peer) {
        func session(_ name: String) throws -> Session {
            try Session(service: "channels", name: name, transports: network) { settings in
                settings.identity = .temporary
                settings.connectsAutomatically = true
            }
        }
        let (puma, lynx) = (try session("Puma"), try session("Lynx"))
        for await case .connected(let peer) in puma.events { return (puma, lynx, peer) }
        throw NighError(.conversing, .notConnected)
    }

    private struct Note: Codable, Equatable, Sendable { var text: String }

    @Test("takes no messages of the session or of another channel, and they none of its own")
    func apart() async throws {
        let (puma, lynx, asLynx) = try await pair()
        let (red, blue) = (try puma.channel("red"), try puma.channel("blue"))
        let (lynxRed, lynxBlue) = (try lynx.channel("red"), try lynx.channel("blue"))
        try await red.send(Note(text: "for red"), to: asLynx)
        try await asLynx.send(Note(text: "for the program"))
        try await blue.broadcast(Note(text: "for blue"))
        try await red.send(bytes: [7], to: asLynx)
        for await note in lynx.messages(of: Note.self) {
            #expect(note.content == Note(text: "for the program"))
            break
        }
        for await note in lynxRed.messages(of: Note.self) {
            #expect(note.content == Note(text: "for red") && note.sender.name == "Puma")
            break
        }
        for await note in lynxBlue.messages(of: Note.self) {
            #expect(note.content == Note(text: "for blue"))
            break
        }
        for await message in lynxRed.messages {
            #expect(message.bytes == [7] && message.sender == puma.id)
            break
        }
        await puma.close()
        await lynx.close()
        #expect(await lynxRed.messages.first { _ in true } == nil)
        await #expect(throws: NighError.self) { try await red.send("late", to: asLynx) }
        #expect(throws: NighError.self) { try puma.channel("late") }
    }

    @Test("is closed when nobody uses it any more, and reports what it cannot read")
    func unreadable() async throws {
        let (puma, lynx, asLynx) = try await pair()
        do { _ = try lynx.channel("red") }
        let (red, lynxRed) = (try puma.channel("red"), try lynx.channel("red"))
        let events = lynx.events
        try await red.send(bytes: Array("no JSON".utf8), to: asLynx)
        try await red.send(Note(text: "fine"), to: asLynx)
        for await note in lynxRed.messages(of: Note.self) {
            #expect(note.content == Note(text: "fine"))
            break
        }
        for await case .messageUnreadable(let sender, _) in events {
            #expect(sender.name == "Puma")
            break
        }
        await puma.close()
        await lynx.close()
    }

    @Test("stays open while somebody reads its messages, although nobody else keeps it")
    func kept() async throws {
        let (puma, lynx, asLynx) = try await pair()
        let red = try puma.channel("red")
        try await red.send("hello", to: asLynx)
        for await message in try lynx.channel("red").messages(of: String.self) {
            #expect(message.content == "hello")
            break
        }
        await puma.close()
        await lynx.close()
    }

    @Test("has streams of its own, also from before the other side opened it, and handlers")
    func streams() async throws {
        let (puma, lynx, asLynx) = try await pair()
        let red = try puma.channel("red")
        let stream = try await red.openStream(named: "camera", to: asLynx)
        try await stream.write([1, 2, 3])
        stream.finish()
        try await red.send(bytes: [7], to: asLynx)
        let (handled, continuation) = AsyncStream.makeStream(of: Int.self)
        let lynxRed = try lynx.channel("red") { bytes, origin in continuation.yield(bytes.byteCount) }
        for await count in handled {
            #expect(count == 1)
            break
        }
        for await stream in lynxRed.streams {
            #expect(stream.name == "red/camera")
            var bytes: [UInt8] = []
            for try await piece in stream { bytes += piece.bytes }
            #expect(bytes == [1, 2, 3])
            break
        }
        let late = try await red.openStream(named: "late", to: asLynx)
        lynxRed.close()
        for await stream in lynxRed.streams {
            #expect(stream.name == "red/late")
        }
        red.close()
        await #expect(throws: NighError.self) { _ = try await red.openStream(named: "later", to: asLynx) }
        withExtendedLifetime(late) {}
        await puma.close()
        await lynx.close()
    }

    @Test("carries what several tasks send at once, each message whole and each task's in order")
    func tasks() async throws {
        let (puma, lynx, asLynx) = try await pair()
        let (red, lynxRed) = (try puma.channel("red"), try lynx.channel("red"))
        async let sent: Void = withThrowingTaskGroup { group in
            for task in UInt8(0)..<4 {
                group.addTask {
                    for number in 0..<200 {
                        let size = 2 + (number * 7_919 + Int(task)) % 40_000
                        try await red.send(
                            bytes: [task, UInt8(number)] + [UInt8](repeating: task, count: size), to: asLynx)
                    }
                }
            }
            try await group.waitForAll()
        }
        var next = [0, 0, 0, 0]
        for await message in lynxRed.messages {
            let bytes = message.bytes
            #expect(Int(bytes[1]) == next[Int(bytes[0])] && bytes.dropFirst(2).allSatisfy { $0 == bytes[0] })
            next[Int(bytes[0])] += 1
            if next == [200, 200, 200, 200] { break }
        }
        try await sent
        await puma.close()
        await lynx.close()
    }
}
