import Nigh
import Testing

/// Channels as programs and their libraries use them, over memory.
@Suite("A channel", .timeLimit(.minutes(15))) struct ChannelTests {
    private let network = TestNetwork()

    private struct Note: Codable, Equatable, Sendable { var text: String }

    @Test func `A channel, the session and another channel each get their own messages only`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let (red, blue) = (try puma.channel("red"), try puma.channel("blue"))
            let (lynxRed, lynxBlue) = (try lynx.channel("red"), try lynx.channel("blue"))
            try await red.send(Note(text: "for red"), to: asLynx)
            try await asLynx.send(Note(text: "for the program"))
            try await blue.broadcast(Note(text: "for blue"))
            try await red.send(bytes: [7], to: asLynx)
            #expect(try await lynx.messages(of: Note.self).first().content.text == "for the program")
            let note = try await lynxRed.messages(of: Note.self).first()
            #expect(note.content == Note(text: "for red") && note.sender.name == "Puma")
            #expect(try await lynxBlue.messages(of: Note.self).first().content.text == "for blue")
            let message = try await lynxRed.messages.first()
            #expect(message.bytes == [7] && message.sender == puma.id)
            await puma.close()
            await lynx.close()
            #expect(await lynxRed.messages.first { _ in true } == nil)
            await #expect(throws: NighError.self) { try await red.send("late", to: asLynx) }
            #expect(throws: NighError.self) { try puma.channel("late") }
        }
    }

    @Test func `A channel is open while somebody reads it, and reports unreadable messages`() async throws {
        try await network.pair { puma, lynx, asLynx in
            do { _ = try lynx.channel("red") }
            let events = lynx.events
            let red = try puma.channel("red")
            try await red.send(bytes: Array("no JSON".utf8), to: asLynx)
            try await red.send(Note(text: "fine"), to: asLynx)
            // The loop alone keeps this channel open.
            for await note in try lynx.channel("red").messages(of: Note.self) {
                #expect(note.content == Note(text: "fine"))
                break
            }
            for await case .messageUnreadable(let sender, _) in events {
                #expect(sender.name == "Puma")
                break
            }
        }
    }

    @Test func `A channel has streams of its own, also from before the other side opened it`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let red = try puma.channel("red")
            let stream = try await red.openStream(named: "camera", to: asLynx)
            try await stream.write([1, 2, 3])
            stream.finish()
            try await red.send(bytes: [7], to: asLynx)
            let (handled, continuation) = AsyncStream.makeStream(of: Int.self)
            let lynxRed = try lynx.channel("red") { bytes, origin in continuation.yield(bytes.byteCount) }
            #expect(try await handled.first() == 1)
            let arrived = try await lynxRed.streams.first()
            #expect(arrived.name == "red/camera")
            var bytes: [UInt8] = []
            for try await piece in arrived { bytes += piece.bytes }
            #expect(bytes == [1, 2, 3])
            let late = try await red.openStream(named: "late", to: asLynx)
            lynxRed.close()
            for await stream in lynxRed.streams { #expect(stream.name == "red/late") }
            red.close()
            await #expect(throws: NighError.self) { _ = try await red.openStream(named: "later", to: asLynx) }
            withExtendedLifetime(late) {}
        }
    }

    @Test func `Messages of several tasks arrive whole, and each task's in order`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let (red, lynxRed) = (try puma.channel("red"), try lynx.channel("red"))
            async let sent: Void = withThrowingTaskGroup { group in
                for task in UInt8(0)..<4 {
                    group.addTask {
                        for number in 0..<200 {
                            let size = 2 + (number * 7_919 + Int(task)) % 40_000
                            let content = [task, UInt8(number)] + [UInt8](repeating: task, count: size)
                            try await red.send(bytes: content, to: asLynx)
                        }
                    }
                }
                try await group.waitForAll()
            }
            var next = [0, 0, 0, 0]
            for await message in lynxRed.messages {
                let bytes = message.bytes
                #expect(Int(bytes[1]) == next[Int(bytes[0])])
                #expect(bytes.dropFirst(2).allSatisfy { $0 == bytes[0] })
                next[Int(bytes[0])] += 1
                if next == [200, 200, 200, 200] { break }
            }
            try await sent
        }
    }
}
