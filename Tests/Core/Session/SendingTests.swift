import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite struct SendingTests {
    private let network = SimulatedNetwork()

    /// Room goes to the caller that has waited longest, whichever call sends the message.
    @Test func `A waiting sender is not overtaken`() throws {
        let (puma, lynx) = try network.connectedPair { $0.limits.sendBuffer = 1_000 }
        puma.faults.stall()
        try puma.session.trySend([UInt8](repeating: 1, count: 1_200), to: lynx.id)
        let port = try puma.session.directory.port(of: lynx.id)
        nonisolated(unsafe) var completed: [Int] = []  // the loop is virtual: one thread
        for number in 1...2 {
            port.waitForRoom(number: UInt64(number)) { _ in completed.append(number) }
        }
        puma.faults.release()
        try network.run(for: .seconds(1))
        #expect(completed == [1], "the second waits for the first")
        let bytes: [UInt8] = [1, 2, 3]
        #expect(throws: NighError.self) { try puma.session.trySend(bytes, to: lynx.id) }
        #expect(throws: NighError.self) { try puma.session.trySend(ByteSlice(bytes), to: lynx.id) }
        #expect(throws: PartialSendError.self) {
            try puma.session.trySend(ByteSlice(bytes), to: [lynx.id, lynx.id])
        }
        port.admitNextWaiter()
        #expect(completed == [1, 2])
        try puma.session.trySend(ByteSlice(bytes), to: lynx.id)
    }

    /// A task that is woken and finds no room has not had its turn: the next one must not be woken before it.
    @Test func `Waiting tasks send in the order in which they came`() throws {
        let (puma, lynx) = try network.connectedPair {
            $0.limits.sendBuffer = 100_000
            $0.limits.receiveWindow = 100_000
        }
        puma.faults.stall()
        let session = puma.session
        try session.trySend([UInt8](repeating: 0, count: 150_000), to: lynx.id)
        for number in 1...4 {
            Task(executorPreference: network.loop) {
                try await session.send([UInt8](repeating: UInt8(number), count: 150_000), to: lynx.id)
            }
            try network.loop.runQueued()
        }
        puma.faults.release()
        try network.run(for: .seconds(5))
        #expect(lynx.messages.map { $0.bytes.first } == [0, 1, 2, 3, 4])
    }

    @Test func `Every length arrives on both lanes`() throws {
        let (puma, lynx) = try network.connectedPair { $0.limits.sendBuffer = 8 << 20 }
        let lengths = [0, 1, 64, 4_096, 16_383, 16_384, 16_385, 32_768, 65_536, 300_000, 1_000_003]
        func content(_ length: Int) -> [UInt8] {
            (0..<length).map { UInt8(truncatingIfNeeded: $0 &+ length) }
        }
        for lane in Lane.allCases {
            for length in lengths {
                try puma.session.trySend(content(length), to: lynx.id, .reliable(lane))
            }
        }
        try network.run(for: .seconds(2))
        for lane in Lane.allCases {
            let received = lynx.messages.filter { $0.origin.lane == lane }
            #expect(received.map(\.bytes) == lengths.map(content))
        }
        #expect(try puma.counts(of: lynx).bytesWaiting == 0)
    }

    // MARK: Readers that do not read

    /// The sender is refused, and the peer is named; pings are answered. Later everything arrives, in order.
    @Test(arguments: Lane.allCases, [1_000, 300_000])
    func `A reader that comes late gets everything, and meanwhile its sender's buffer is full`(
        lane: Lane, size: Int
    ) throws {
        let (puma, lynx) = try network.connectedPair(reading: .inbox)
        let limits = SessionLimits()
        var accepted = 0
        var refusal: NighError?
        var pings: [Answer<Duration>] = []
        for _ in 0..<50 {
            do throws(NighError) {
                for _ in 0..<200 {
                    let message = [UInt8](repeating: UInt8(accepted & 0xFF), count: size)
                    try puma.session.trySend(message, to: lynx.id, .reliable(lane))
                    accepted += 1
                }
            } catch {
                refusal = error
            }
            pings.append(Answer())
            puma.session.ping(lynx.id, completion: pings.last!.take)
            try network.run(for: .milliseconds(200))
        }
        #expect(refusal?.cause == .bufferFull(limit: limits.sendBuffer))
        #expect(refusal?.description.contains(lynx.id.short) == true)
        #expect(try lynx.counts(of: puma).bytesUnread <= limits.receiveWindow + max(20_000, 2 * size))
        #expect(accepted * size <= limits.sendBuffer + limits.receiveWindow + max(40_000, 2 * size))
        for ping in pings { #expect(try #require(ping.result).get() < .milliseconds(5)) }

        var read: [Message] = []
        for _ in 0..<200 {
            read += lynx.readAll()
            try network.run(for: .milliseconds(10))
        }
        #expect(read.map(\.bytes.first) == (0..<accepted).map { UInt8($0 & 0xFF) })
        #expect(try lynx.counts(of: puma).bytesUnread <= limits.receiveWindow / 4)
        try puma.session.trySend([1], to: lynx.id)
    }

    /// Both directions of a new conversation accept a whole window at once, whichever side invited.
    @Test(arguments: [true, false])
    func `The first burst may fill the window`(inviterSends: Bool) throws {
        let (first, second) = try network.connectedPair()
        let (sender, receiver) = inviterSends ? (first, second) : (second, first)
        for _ in 0..<200 {
            try sender.session.trySend([UInt8](repeating: 1, count: 1_000), to: receiver.id)
        }
        try network.run(for: .seconds(1))
        #expect(receiver.messages.count == 200)
        #expect(first.state(of: second.id) == .connected && second.state(of: first.id) == .connected)
    }

    /// A program that polls is told that messages wait, after the event that the peer is connected.
    @Test func `Waiting messages are announced`() throws {
        let puma = network.join("Puma")
        let lynx = Session(
            SessionConfiguration(service: "test", name: DisplayName(fitting: "Lynx")),
            identity: .ephemeral(seed: 99), transports: [MemoryTransport(hub: network.hub())],
            loop: network.loop)
        nonisolated(unsafe) var seen: [String] = []  // the loop is virtual: one thread
        lynx.start(
            onEvent: { if case .connected = $0 { seen.append("connected") } },
            onWaitingMessages: { [weak lynx] in
                while let message = lynx?.messages.poll() { seen.append("\(message.bytes.count)") }
            })
        try network.run(for: .seconds(1))
        lynx.invite(puma.id) { _ in }
        try network.run(for: .seconds(1))
        for size in [0, 10, 100_000] {
            try puma.session.trySend([UInt8](repeating: 1, count: size), to: lynx.id)
        }
        try network.run(for: .seconds(1))
        #expect(seen == ["connected", "0", "10", "100000"])
    }

    /// Both sides must count a message in pieces exactly alike. Room that one side forgets never comes back to the
    /// other.
    @Test func `Pieces never exhaust the window`() throws {
        let (first, second) = try network.connectedPair { $0.limits.receiveWindow = 16 << 10 }
        let message = ByteSlice([UInt8](repeating: 7, count: 40_000))
        for _ in 0..<1_600 {
            try first.session.trySend(message, to: second.id)
            try network.loop.runQueued()
        }
        try network.run(for: .milliseconds(200))
        #expect(second.messages.count == 1_600)
        #expect(try first.counts(of: second).bytesWaiting == 0)
    }

    // MARK: Lanes

    @Test func `A small message on the main lane overtakes a bulk transfer`() throws {
        let (puma, lynx) = try network.connectedPair(plan: try FaultPlan(parsing: "rate=1m")) {
            $0.limits.sendBuffer = 32 << 20
            $0.limits.receiveWindow = 16 << 20
        }
        try puma.session.trySend([UInt8](repeating: 1, count: 8 << 20), to: lynx.id, .reliable(.bulk))
        try network.run(for: .seconds(1))
        let asked = network.loop.now
        try puma.session.trySend(Array("your move".utf8), to: lynx.id)
        try network.run(until: { lynx.messages.count > 0 }, within: .seconds(20))
        #expect(lynx.texts.first == "your move")
        #expect(network.loop.now - asked < .milliseconds(900))
        try network.run(for: .seconds(20))
        #expect(lynx.messages.count == 2)
    }

    @Test func `A full bulk lane leaves room on the main lane`() throws {
        let (puma, lynx) = try network.connectedPair()
        puma.faults.stall()
        puma.fill(lynx)
        try puma.session.trySend(Array("your move".utf8), to: lynx.id)
        puma.faults.release()
        try network.run(for: .seconds(5))
        #expect(lynx.texts.contains("your move"))
    }

    // MARK: Unreliable messages within the link

    @Test func `Unreliable messages are dropped not queued when the link is backed up`() throws {
        let (puma, lynx) = try network.connectedPair { $0.datagrams = false }
        try puma.session.trySend(Array("quick".utf8), to: lynx.id, .unreliable)
        try network.run(for: .milliseconds(10))
        #expect(lynx.texts == ["quick"] && lynx.messages.first?.origin.isReliable == false)

        puma.faults.stall()
        for number in 0..<2_000 {
            try puma.session.trySend(
                [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1_000), to: lynx.id, .unreliable)
            if number % 50 == 0 { try network.run(for: .milliseconds(1)) }
        }
        let dropped = try puma.counts(of: lynx).unreliableDropped
        #expect(dropped > 1_000)
        puma.faults.release()
        try network.run(for: .seconds(1))
        #expect(lynx.messages.count + dropped == 2_001)
    }

    /// Puma and Lynx, whose link takes no more bytes of Puma until the faults release it.
    private func pairWithBackedUpLink() throws -> (puma: SessionProbe, lynx: SessionProbe) {
        let (puma, lynx) = try network.connectedPair { $0.datagrams = false }
        puma.faults.stall()
        puma.fill(lynx)
        try network.run(for: .seconds(1))
        return (puma, lynx)
    }

    @Test func `Of each key the newest message waits for a link that is backed up`() throws {
        let (puma, lynx) = try pairWithBackedUpLink()
        for number in 0..<50 as Range<UInt8> {
            for key in 0..<3 as Range<UInt8> {
                try puma.session.trySend([key, number], to: lynx.id, .newest(key: key))
            }
            try network.run(for: .milliseconds(1))
        }
        #expect(lynx.messages.allSatisfy { $0.origin.isReliable })
        puma.faults.release()
        try network.run(for: .seconds(5))
        let values = lynx.messages.filter { !$0.origin.isReliable }.map(\.bytes)
        #expect(values == [[0, 49], [1, 49], [2, 49]])
        #expect(try puma.counts(of: lynx).unreliableDropped == 3 * 49)
        // Where there is room, each one travels.
        for number in 0..<3 as Range<UInt8> {
            try puma.session.trySend([9, number], to: lynx.id, .newest(key: 9))
            try network.run(for: .milliseconds(10))
        }
        #expect(lynx.messages.suffix(3).map(\.bytes) == [[9, 0], [9, 1], [9, 2]])
    }

    /// A pipe that was never backed up does not report room.
    @Test func `Messages of keys that do not fit into one write follow without anything else to send`() throws
    {
        let (puma, lynx) = try network.connectedPair { $0.datagrams = false }
        puma.faults.plan.bytesPerSecond = 100_000
        let values = (0..<16 as Range<UInt8>).map { [UInt8](repeating: $0, count: 8_192) }
        for value in values { try puma.session.trySend(value, to: lynx.id, .newest(key: value[0])) }
        // Less than the silence after which a ping leaves, which would take them along.
        try network.run(for: .seconds(4))
        #expect(lynx.messages.map(\.bytes) == values)
        #expect(try puma.counts(of: lynx).unreliableDropped == 0)
    }

    @Test func `Messages of keys that wait for a link that is lost count as dropped`() throws {
        let (puma, lynx) = try pairWithBackedUpLink()
        for key in 0..<3 as Range<UInt8> {
            try puma.session.trySend([key], to: lynx.id, .newest(key: key))
        }
        try network.run(for: .milliseconds(10))
        puma.faults.cut()
        puma.faults.release()
        try network.run(for: .seconds(5))
        #expect(puma.state(of: lynx.id) == .connected)
        #expect(lynx.messages.allSatisfy { $0.origin.isReliable })
        #expect(try puma.counts(of: lynx).unreliableDropped == 3)
    }

    @Test func `Unreliable messages are not sent again after a cut`() throws {
        let (puma, lynx) = try network.connectedPair()
        puma.faults.block()
        try puma.session.trySend(Array("into the void".utf8), to: lynx.id, .unreliable)
        try puma.session.trySend(Array("kept".utf8), to: lynx.id)
        try network.run(for: .milliseconds(10))
        puma.faults.cut()
        puma.faults.unblock()
        try network.run(for: .seconds(20))
        #expect(lynx.texts == ["kept"])
    }

    // MARK: Several peers, and handlers

    @Test func `Sending to all reaches all and reports the peers not reached`() throws {
        let host = network.join("Host", role: .server)
        let guests = (0..<3).map { network.join("Guest\($0)", role: .client) }
        for guest in guests { try network.connect(guest, host) }
        #expect(host.session.connectedPeerIDs == guests.map(\.id).sorted())
        try host.session.trySend(ByteSlice("to all".utf8), to: host.session.connectedPeerIDs)
        let stranger = Identity.ephemeral(seed: 99).peerID
        let error = #expect(throws: PartialSendError.self) {
            try host.session.trySend(ByteSlice("some".utf8), to: [guests[0].id, stranger, guests[2].id])
        }
        #expect(error?.failures.mapValues(\.cause) == [stranger: .notConnected])
        try network.run(for: .seconds(1))
        #expect(guests.map(\.texts) == [["to all", "some"], ["to all"], ["to all", "some"]])
    }

    @Test func `A handler may send and disconnect`() throws {
        let (puma, lynx) = try network.connectedPair()
        lynx.messageReaction = { bytes, origin, session in
            try? session.trySend(bytes.reversed(), to: origin.peer)
            if bytes == Array("bye".utf8) { session.disconnect(origin.peer) }
        }
        for text in ["one", "bye", "three"] { try puma.session.trySend(Array(text.utf8), to: lynx.id) }
        try network.run(for: .seconds(1))
        #expect(puma.texts.prefix(2) == ["eno", "eyb"])
        #expect(puma.lastCause(of: lynx.id)?.cause == .peerLeft)
    }

    @Test func `One turn writes for as long as the pipe has room`() throws {
        let peer = try ScriptedPeer.connected()
        peer.pipe.room = 1_000
        let messages = (0..<40 as Range<UInt8>).map { [UInt8](repeating: $0, count: 100) }
        for message in messages { try peer.session.trySend(message, to: ScriptedPeer.peer) }
        try peer.loop.runQueued()
        #expect(try peer.takeFrames() == messages.map { .init(.message, $0) })
    }

    // MARK: The messages of one peer

    private func readAll(_ messages: MessageSequence) -> [Message] {
        var all: [Message] = []
        while let message = messages.poll() { all.append(message) }
        return all
    }

    @Test(.timeLimit(.minutes(15)), arguments: [SessionProbe.Reading.inbox, .handler])
    func `One peer's messages have a sequence of their own if the program wants it`(
        reading: SessionProbe.Reading
    ) async throws {
        let (first, hub) = try network.connectedPair(reading: reading)
        let third = network.join("third")
        try network.connect(third, hub)
        let separate = try #require(hub.session.separateMessages(of: first.id))
        #expect(hub.session.separateMessages(of: hub.id) == nil)
        // Whole messages, one in pieces, and an unreliable one.
        let sent = [[1], [UInt8](repeating: 2, count: 40_000), [3]]
        for message in sent { try first.session.trySend(message, to: hub.id) }
        try first.session.trySend([4], to: hub.id, .unreliable)
        try third.session.trySend([5], to: hub.id)
        try network.run(for: .seconds(1))
        let received = readAll(separate)
        #expect(received.allSatisfy { $0.sender == first.id })
        #expect(received.filter(\.origin.isReliable).map(\.bytes) == sent)
        #expect(received.filter { !$0.origin.isReliable }.map(\.bytes) == [[4]])
        func nextOther() -> [UInt8]? {
            reading == .inbox ? hub.session.messages.poll()?.bytes : hub.messages.last?.bytes
        }
        #expect(nextOther() == [5] && hub.session.messages.poll() == nil)

        // A second call gives the same sequence.
        let again = try #require(hub.session.separateMessages(of: first.id))
        try first.session.trySend([8], to: hub.id)
        try network.run(for: .seconds(1))
        #expect(again.poll()?.bytes == [8] && separate.poll() == nil)

        // Unread messages hold up their own peer, and come before the end.
        for _ in 0..<2_000 { try first.session.trySend([UInt8](repeating: 6, count: 1_000), to: hub.id) }
        try network.run(for: .seconds(1))
        try third.session.trySend([7], to: hub.id)
        try network.run(for: .seconds(1))
        #expect(try hub.counts(of: first).bytesUnread > 0)
        #expect(nextOther() == [7])
        first.session.disconnect(hub.id) { _ in }
        var count = 0
        for _ in 0..<10 {
            try network.run(for: .seconds(1))
            count += readAll(separate).count
        }
        #expect(count == 2_000)
        #expect(await separate.next() == nil)
    }
}
