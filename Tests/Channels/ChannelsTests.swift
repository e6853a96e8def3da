import NighChannels
import NighCore
import NighTestKit
import Testing

/// Two sessions with channels, and what became of the messages of the first.
private final class Pair {
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    final class Sent: @unchecked Sendable {
        /// The messages that were accepted, and why others were not.
        var count = 0
        var causes: [NighError.Cause] = []
    }

    private let sessions: VirtualPair<Channels>
    let sent = Sent()

    init(lynxHasChannels: Bool = true) throws {
        sessions = try VirtualPair(lynxHasLayer: lynxHasChannels) {
            $0.limits.message = 100_000
        } layer: {
            Channels()
        }
    }

    var puma: VirtualPair<Channels>.Member { sessions.puma }
    var lynx: VirtualPair<Channels>.Member { sessions.lynx }

    func run(_ time: Duration = .seconds(2)) throws { try sessions.run(time) }
    func close() throws { try sessions.close() }

    /// Sends messages in one task. Notes in `sent` why one was not sent.
    @discardableResult
    func send(_ messages: [[UInt8]], through port: ChannelPort) -> Task<Void, Never> {
        Task(executorPreference: sessions.loop) { [sent, peer = sessions.asPumaSeesLynx] in
            do throws(NighError) {
                for message in messages {
                    try await port.send(ByteSlice(message), to: peer)
                    sent.count += 1
                }
            } catch {
                sent.causes.append(error.cause)
            }
        }
    }
}

extension ChannelPort {
    /// The messages that have come and are not read.
    fileprivate func readAll() -> [[UInt8]] {
        var messages: [[UInt8]] = []
        while let message = poll() { messages.append(message.bytes) }
        return messages
    }
}

private func numbered(_ number: Int, size: Int) -> [UInt8] {
    [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
        + [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size - 2)
}

@Suite("Channels of sessions") struct ChannelsTests {
    @Test("carry messages of every size once and in order, while the link is cut again and again")
    func cuts() throws {
        let pair = try Pair()
        let (red, asLynx) = (try pair.puma.layer.open("red"), try pair.lynx.layer.open("red"))
        let messages = (0..<300).map { numbered($0, size: 2 + $0 * 331 % 99_000) }
        pair.send(messages, through: red)
        var received: [[UInt8]] = []
        for _ in 0..<40 {
            try pair.run(.milliseconds(700))
            received += asLynx.readAll()
            pair.puma.faults.cut()
        }
        try pair.run(.seconds(30))
        for _ in 0..<300 where received.count < messages.count {
            received += asLynx.readAll()
            try pair.run(.milliseconds(100))
        }
        #expect(received == messages && pair.sent.causes.isEmpty)
        try pair.close()
    }

    @Test("wait for a program that opens the channel later, and slow their sender down until it reads")
    func slowReader() throws {
        let pair = try Pair()
        let (red, blue) = (try pair.puma.layer.open("red"), try pair.puma.layer.open("blue"))
        let messages = (0..<400).map { numbered($0, size: 10_000) }
        let sending = pair.send(messages, through: red)
        try pair.run()
        let statistics = try #require(pair.puma.session.inspection(of: pair.lynx.session.id))
        #expect(statistics.streams == 1)
        // Nobody reads red, so blue must not wait.
        let asLynxBlue = try pair.lynx.layer.open("blue")
        pair.send([[1], [2]], through: blue)
        try pair.run()
        #expect(asLynxBlue.readAll() == [[1], [2]])
        let asLynx = try pair.lynx.layer.open("red")
        try pair.run()
        var received = asLynx.readAll()
        #expect(received.count < 100, "\(received.count) messages were kept for a program that did not read")
        for _ in 0..<400 where received.count < messages.count {
            try pair.run(.milliseconds(50))
            received += asLynx.readAll()
        }
        #expect(received == messages)
        try pair.run()
        #expect(pair.sent.causes.isEmpty && !sending.isCancelled)
        try pair.close()
    }

    @Test("take a message whole or not at all when the task that sends it is cancelled")
    func cancelled() throws {
        let pair = try Pair()
        let (red, asLynx) = (try pair.puma.layer.open("red"), try pair.lynx.layer.open("red"))
        let first = pair.send((0..<200).map { numbered($0, size: 50_000) }, through: red)
        try pair.run()
        first.cancel()
        try pair.run()
        #expect(pair.sent.causes == [.cancelled])
        pair.send([numbered(1_000, size: 99_999), numbered(1_001, size: 2)], through: red)
        var received: [[UInt8]] = []
        for _ in 0..<200 {
            try pair.run(.milliseconds(50))
            received += asLynx.readAll()
        }
        let numbers = received.map { Int($0[0]) << 8 | Int($0[1]) }
        #expect(
            numbers.dropLast(2).elementsEqual(0..<(numbers.count - 2)) && numbers.suffix(2) == [1_000, 1_001])
        #expect(received.allSatisfy { $0.count == 50_000 || $0.count == 99_999 || $0.count == 2 })
        try pair.close()
    }

    @Test("still carry what was sent before their end")
    func lastMessage() throws {
        let pair = try Pair()
        let (red, asLynx) = (try pair.puma.layer.open("red"), try pair.lynx.layer.open("red"))
        let messages = (0..<20).map { numbered($0, size: 99_000) }
        pair.send(messages, through: red)
        try pair.run()
        // The last message that was accepted is on its way in part, and the next one waits.
        let accepted = pair.sent.count
        #expect((3..<20).contains(accepted))
        pair.puma.layer.close(red)
        var received: [[UInt8]] = []
        for _ in 0..<100 {
            try pair.run(.milliseconds(20))
            received += asLynx.readAll()
        }
        #expect(received == Array(messages.prefix(accepted)) && pair.sent.causes.count == 1)
        try pair.close()
    }

    @Test("are refused with a clear error by a peer that has none, whose conversation goes on")
    func unsupported() throws {
        let pair = try Pair(lynxHasChannels: false)
        let red = try pair.puma.layer.open("red")
        pair.send([[1]], through: red)
        try pair.run()
        #expect(pair.sent.causes == [.unsupported("channels")])
        #expect(pair.puma.session.connectedPeerIDs == [pair.lynx.session.id])
        try pair.close()
    }

    @Test("refuse a message that is too long, and go on")
    func tooLong() throws {
        let pair = try Pair()
        let (red, asLynx) = (try pair.puma.layer.open("red"), try pair.lynx.layer.open("red"))
        pair.send([[UInt8](repeating: 0, count: 100_001)], through: red)
        try pair.run()
        #expect(pair.sent.causes == [.messageTooLarge(size: 100_001, limit: 100_000)])
        pair.send([[]], through: red)
        try pair.run()
        #expect(asLynx.readAll() == [[]])
        try pair.close()
    }

    @Test("end the stream of a peer that announces a message longer than allowed, and nothing else")
    func hostile() throws {
        let pair = try Pair()
        let (red, asLynx) = (try pair.puma.layer.open("red"), try pair.lynx.layer.open("red"))
        nonisolated(unsafe) var stream: ByteStream?
        pair.puma.session.openStream(named: "red", to: pair.lynx.session.id, for: .channel) {
            stream = try? $0.get()
        }
        _ = try stream?.tryWrite(ByteSlice([0xff, 0xff, 0xff, 0xff, 1, 2, 3]))
        try pair.run()
        #expect(throws: NighError.self) { try stream?.tryWrite(ByteSlice([1])) }
        pair.send([[7]], through: red)
        try pair.run()
        #expect(asLynx.readAll() == [[7]])
        try pair.close()
    }

    @Test("have names of their own, which can be used anew after their end")
    func names() throws {
        let pair = try Pair()
        let red = try pair.lynx.layer.open("red")
        #expect(throws: NighError.self) { try pair.lynx.layer.open("red") }
        #expect(throws: NighError.self) { try pair.lynx.layer.open("") }
        #expect(throws: NighError.self) { try pair.lynx.layer.open("a\nb") }
        #expect(throws: NighError.self) { try pair.lynx.layer.open("a/b") }
        pair.lynx.layer.close(red)
        let again = try pair.lynx.layer.open("red")
        let asPuma = try pair.puma.layer.open("red")
        pair.send([[1]], through: asPuma)
        try pair.run()
        #expect(again.readAll() == [[1]])
        // One that is closed tells those who send in it, once.
        pair.lynx.layer.close(again)
        try pair.run()
        pair.send([[2]], through: asPuma)
        try pair.run()
        #expect(pair.sent.causes == [.streamCancelled("it is closed")])
        let third = try pair.lynx.layer.open("red")
        pair.send([[3]], through: asPuma)
        try pair.run()
        #expect(third.readAll() == [[3]])
        try pair.close()
        #expect(throws: NighError.self) { try pair.lynx.layer.open("late") }
    }

    @Test("keep only so many streams of channels that nobody opens")
    func bounded() throws {
        let pair = try Pair()
        nonisolated(unsafe) var streams: [ByteStream] = []
        for number in 0..<Channels.waitingLimit + 10 {
            pair.puma.session.openStream(named: "c\(number)", to: pair.lynx.session.id, for: .channel) {
                if let stream = try? $0.get() { streams.append(stream) }
            }
        }
        try pair.run()
        let refused = streams.count { (try? $0.tryWrite(ByteSlice([0, 0, 0, 0]))) == nil }
        #expect(streams.count - refused <= Channels.waitingLimit)
        try pair.close()
    }
}
