import NighChannels
import NighCore
import NighTestKit
import Testing

/// The outcomes of the messages that a test has sent.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
private final class Sent: @unchecked Sendable {
    /// The number of accepted messages, and why others were not.
    var count = 0
    var causes: [NighError.Cause] = []
}

/// Two sessions with channels, of which Puma sends and Lynx receives in the channel "red".
private struct Pair {
    let sessions: VirtualPair<Channels>
    let sent = Sent()

    init(lynxHasChannels: Bool = true) throws {
        sessions = try VirtualPair(lynxHasLayer: lynxHasChannels) {
            $0.limits.message = 100_000
        } layer: {
            Channels()
        }
    }

    /// Runs `body` with the channel of both, and closes the sessions.
    static func withRed(
        _ body: (_ pair: Pair, _ red: ChannelPort, _ asLynx: ChannelPort) throws -> Void
    ) throws {
        let pair = try Pair()
        try body(pair, pair.puma.layer.open("red"), pair.lynx.layer.open("red"))
        try pair.sessions.close()
    }

    var puma: VirtualPair<Channels>.Member { sessions.puma }
    var lynx: VirtualPair<Channels>.Member { sessions.lynx }

    func run(_ time: Duration = .seconds(2)) throws { try sessions.run(time) }

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

    /// Reads as time passes, up to this number of times. Returns what has come.
    func read(_ port: ChannelPort, times: Int, every time: Duration) throws -> [[UInt8]] {
        var received = port.readAll()
        for _ in 0..<times {
            try run(time)
            received += port.readAll()
        }
        return received
    }

    /// Opens a stream of a channel as a hostile program may.
    func openStream(named name: String) -> ByteStream? {
        try? puma.session.reference.openStream(named: name, to: lynx.session.id, for: .channel)
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
    @Test func `Channels carry messages of every size once and in order, while the link is cut`() throws {
        try Pair.withRed { pair, red, asLynx in
            let messages = (0..<300).map { numbered($0, size: 2 + $0 * 331 % 99_000) }
            pair.send(messages, through: red)
            var received: [[UInt8]] = []
            for _ in 0..<40 {
                received += try pair.read(asLynx, times: 1, every: .milliseconds(700))
                pair.puma.faults.cut()
            }
            try pair.run(.seconds(30))
            received += try pair.read(asLynx, times: 300, every: .milliseconds(100))
            #expect(received == messages && pair.sent.causes.isEmpty)
        }
    }

    @Test func `A channel waits for a program that opens it later, and slows its sender down`() throws {
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
        received += try pair.read(asLynx, times: 400, every: .milliseconds(50))
        #expect(received == messages)
        #expect(pair.sent.causes.isEmpty && !sending.isCancelled)
        try pair.sessions.close()
    }

    @Test func `A channel takes a message whole or not at all when its task is cancelled`() throws {
        try Pair.withRed { pair, red, asLynx in
            let first = pair.send((0..<200).map { numbered($0, size: 50_000) }, through: red)
            try pair.run()
            first.cancel()
            try pair.run()
            #expect(pair.sent.causes == [.cancelled])
            pair.send([numbered(1_000, size: 99_999), numbered(1_001, size: 2)], through: red)
            let received = try pair.read(asLynx, times: 200, every: .milliseconds(50))
            let numbers = received.map { Int($0[0]) << 8 | Int($0[1]) }
            #expect(numbers.dropLast(2).elementsEqual(0..<(numbers.count - 2)))
            #expect(numbers.suffix(2) == [1_000, 1_001])
            #expect(received.allSatisfy { [50_000, 99_999, 2].contains($0.count) })
        }
    }

    @Test func `A channel still carries what was sent before its end`() throws {
        try Pair.withRed { pair, red, asLynx in
            let messages = (0..<20).map { numbered($0, size: 99_000) }
            pair.send(messages, through: red)
            try pair.run()
            // The last message that was accepted is on its way in part, and the next one waits.
            let accepted = pair.sent.count
            #expect((3..<20).contains(accepted))
            pair.puma.layer.close(red)
            let received = try pair.read(asLynx, times: 100, every: .milliseconds(20))
            #expect(received == Array(messages.prefix(accepted)) && pair.sent.causes.count == 1)
        }
    }

    @Test func `A peer without channels refuses them with a clear error, and stays connected`() throws {
        let pair = try Pair(lynxHasChannels: false)
        let red = try pair.puma.layer.open("red")
        pair.send([[1]], through: red)
        try pair.run()
        #expect(pair.sent.causes == [.unsupported("channels")])
        #expect(pair.puma.session.connectedPeerIDs == [pair.lynx.session.id])
        try pair.sessions.close()
    }

    @Test func `A message that is too long is refused, and ends the stream of a peer that sends it`() throws {
        try Pair.withRed { pair, red, asLynx in
            pair.send([[UInt8](repeating: 0, count: 100_001)], through: red)
            try pair.run()
            #expect(pair.sent.causes == [.messageTooLarge(size: 100_001, limit: 100_000)])
            let stream = pair.openStream(named: "red")
            _ = try stream?.tryWrite(ByteSlice([0xff, 0xff, 0xff, 0xff, 1, 2, 3]))
            try pair.run()
            #expect(throws: NighError.self) { try stream?.tryWrite(ByteSlice([1])) }
            // Nothing else ends.
            pair.send([[], [7]], through: red)
            #expect(try pair.read(asLynx, times: 1, every: .seconds(2)) == [[], [7]])
        }
    }

    @Test func `A channel has a name of its own, which can be used anew after its end`() throws {
        try Pair.withRed { pair, asPuma, red in
            for name in ["red", "", "a\nb", "a/b"] {
                #expect(throws: NighError.self) { try pair.lynx.layer.open(name) }
            }
            pair.lynx.layer.close(red)
            let again = try pair.lynx.layer.open("red")
            pair.send([[1]], through: asPuma)
            #expect(try pair.read(again, times: 1, every: .seconds(2)) == [[1]])
            // One that is closed tells those who send in it, once.
            pair.lynx.layer.close(again)
            try pair.run()
            pair.send([[2]], through: asPuma)
            try pair.run()
            #expect(pair.sent.causes == [.streamCancelled("it is closed")])
            let third = try pair.lynx.layer.open("red")
            pair.send([[3]], through: asPuma)
            #expect(try pair.read(third, times: 1, every: .seconds(2)) == [[3]])
            try pair.sessions.close()
            #expect(throws: NighError.self) { try pair.lynx.layer.open("late") }
        }
    }

    @Test func `Only a limited number of streams wait for a channel that nobody opens`() throws {
        let pair = try Pair()
        let streams = (0..<Channels.waitingLimit + 10).compactMap { pair.openStream(named: "c\($0)") }
        try pair.run()
        let refused = streams.count { (try? $0.tryWrite(ByteSlice([0, 0, 0, 0]))) == nil }
        #expect(streams.count - refused <= Channels.waitingLimit)
        try pair.sessions.close()
    }
}
