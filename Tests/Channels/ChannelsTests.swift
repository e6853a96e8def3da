import NighChannels
import NighCore
import NighMemory
import NighTestKit
import Testing

/// Two sessions with channels, in virtual time, over a network that a test disturbs.
private final class Pair {
    /// One session, and what it has read.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    final class Member: @unchecked Sendable {
        let session: Session
        let channels = Channels()
        let faults: FaultControl
        var causes: [NighError.Cause] = []
        /// The messages that were accepted.
        var sent = 0

        init(_ name: String, _ hub: MemoryHub, _ loop: VirtualEventLoop, hasChannels: Bool, seed: UInt64) {
            let transport = FaultyTransport(MemoryTransport(hub: hub, address: name))
            var configuration = SessionConfiguration(service: "channels", name: DisplayName(fitting: name))
            configuration.seed = seed
            configuration.limits.message = 100_000
            if hasChannels { configuration.layers = [channels] }
            session = Session(
                configuration, identity: .ephemeral(seed: seed), transports: [transport], loop: loop)
            faults = transport.control
            session.start(onEvent: { event in
                if case .invited(let invitation) = event { invitation.accept() }
            })
        }
    }

    let loop = VirtualEventLoop()
    let puma: Member
    let lynx: Member

    init(lynxHasChannels: Bool = true) throws {
        let hub = MemoryHub()
        puma = Member("puma", hub, loop, hasChannels: true, seed: 1)
        lynx = Member("lynx", hub, loop, hasChannels: lynxHasChannels, seed: 2)
        try run()
        puma.session.invite(lynx.session.id) { _ in }
        try run()
    }

    func run(_ time: Duration = .seconds(2)) throws { try loop.run(for: time) }

    /// Sends messages in one task. Notes in `causes` why one was not sent.
    @discardableResult
    func send(_ messages: [[UInt8]], through port: ChannelPort) -> Task<Void, Never> {
        Task(executorPreference: loop) { [puma, lynx] in
            do throws(NighError) {
                let peer = puma.session.peer(lynx.session.id)
                for message in messages {
                    try await port.send(ByteSlice(message), to: peer)
                    puma.sent += 1
                }
            } catch {
                puma.causes.append(error.cause)
            }
        }
    }

    func close() throws {
        for member in [puma, lynx] { member.session.close {} }
        try run(.seconds(10))
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
        let (red, asLynx) = (try pair.puma.channels.open("red"), try pair.lynx.channels.open("red"))
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
        #expect(received == messages && pair.puma.causes.isEmpty)
        try pair.close()
    }

    @Test("wait for a program that opens the channel later, and slow their sender down until it reads")
    func slowReader() throws {
        let pair = try Pair()
        let (red, blue) = (try pair.puma.channels.open("red"), try pair.puma.channels.open("blue"))
        let messages = (0..<400).map { numbered($0, size: 10_000) }
        let sending = pair.send(messages, through: red)
        try pair.run()
        let statistics = try #require(pair.puma.session.inspection(of: pair.lynx.session.id))
        #expect(statistics.streams == 1)
        // Nobody reads red, so blue must not wait.
        let asLynxBlue = try pair.lynx.channels.open("blue")
        pair.send([[1], [2]], through: blue)
        try pair.run()
        #expect(asLynxBlue.readAll() == [[1], [2]])
        let asLynx = try pair.lynx.channels.open("red")
        try pair.run()
        var received = asLynx.readAll()
        #expect(received.count < 100, "\(received.count) messages were kept for a program that did not read")
        for _ in 0..<400 where received.count < messages.count {
            try pair.run(.milliseconds(50))
            received += asLynx.readAll()
        }
        #expect(received == messages)
        try pair.run()
        #expect(pair.puma.causes.isEmpty && !sending.isCancelled)
        try pair.close()
    }

    @Test("take a message whole or not at all when the task that sends it is cancelled")
    func cancelled() throws {
        let pair = try Pair()
        let (red, asLynx) = (try pair.puma.channels.open("red"), try pair.lynx.channels.open("red"))
        let first = pair.send((0..<200).map { numbered($0, size: 50_000) }, through: red)
        try pair.run()
        first.cancel()
        try pair.run()
        #expect(pair.puma.causes == [.cancelled])
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
        let (red, asLynx) = (try pair.puma.channels.open("red"), try pair.lynx.channels.open("red"))
        let messages = (0..<20).map { numbered($0, size: 99_000) }
        pair.send(messages, through: red)
        try pair.run()
        // The last message that was accepted is on its way in part, and the next one waits.
        let accepted = pair.puma.sent
        #expect((3..<20).contains(accepted))
        pair.puma.channels.close(red)
        var received: [[UInt8]] = []
        for _ in 0..<100 {
            try pair.run(.milliseconds(20))
            received += asLynx.readAll()
        }
        #expect(received == Array(messages.prefix(accepted)) && pair.puma.causes.count == 1)
        try pair.close()
    }

    @Test("are refused with a clear error by a peer that has none, whose conversation goes on")
    func unsupported() throws {
        let pair = try Pair(lynxHasChannels: false)
        let red = try pair.puma.channels.open("red")
        pair.send([[1]], through: red)
        try pair.run()
        #expect(pair.puma.causes == [.unsupported("channels")])
        #expect(pair.puma.session.connectedPeerIDs == [pair.lynx.session.id])
        try pair.close()
    }

    @Test("refuse a message that is too long, and go on")
    func tooLong() throws {
        let pair = try Pair()
        let (red, asLynx) = (try pair.puma.channels.open("red"), try pair.lynx.channels.open("red"))
        pair.send([[UInt8](repeating: 0, count: 100_001)], through: red)
        try pair.run()
        #expect(pair.puma.causes == [.messageTooLarge(size: 100_001, limit: 100_000)])
        pair.send([[]], through: red)
        try pair.run()
        #expect(asLynx.readAll() == [[]])
        try pair.close()
    }

    @Test("end the stream of a peer that announces a message longer than allowed, and nothing else")
    func hostile() throws {
        let pair = try Pair()
        let (red, asLynx) = (try pair.puma.channels.open("red"), try pair.lynx.channels.open("red"))
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
        let red = try pair.lynx.channels.open("red")
        #expect(throws: NighError.self) { try pair.lynx.channels.open("red") }
        #expect(throws: NighError.self) { try pair.lynx.channels.open("") }
        #expect(throws: NighError.self) { try pair.lynx.channels.open("a\nb") }
        pair.lynx.channels.close(red)
        let again = try pair.lynx.channels.open("red")
        let asPuma = try pair.puma.channels.open("red")
        pair.send([[1]], through: asPuma)
        try pair.run()
        #expect(again.readAll() == [[1]])
        // One that is closed tells those who send in it, once.
        pair.lynx.channels.close(again)
        try pair.run()
        pair.send([[2]], through: asPuma)
        try pair.run()
        #expect(pair.puma.causes == [.streamCancelled("it is closed")])
        let third = try pair.lynx.channels.open("red")
        pair.send([[3]], through: asPuma)
        try pair.run()
        #expect(third.readAll() == [[3]])
        try pair.close()
        #expect(throws: NighError.self) { try pair.lynx.channels.open("late") }
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
