import NighTestKit
import Testing

@testable import NighCore

/// Tests that the statistics, which people read, are what happened.
@Suite struct StatisticsTests {
    private let place = Neighbourhood()

    private func sendSome(_ puma: Session, to lynx: PeerID) throws {
        for count in [10, 0, 20_000] { try puma.trySend([UInt8](repeating: 1, count: count), to: lynx) }
        try puma.trySend([UInt8](repeating: 2, count: 15_000), to: lynx, .reliable(.bulk))
        try puma.trySend(ByteSlice([UInt8](repeating: 3, count: 300)), to: lynx, .reliable(.bulk))
        for count in [7, 8, 9] {
            try puma.trySend([UInt8](repeating: 4, count: count), to: lynx, .unreliable)
        }
        try place.run(.seconds(1))
    }

    @Test func metricsAreThoseOfTheirPageAndHaveTheCounts() async throws {
        let page = try ProtocolPage("metrics.md")
        func rows<Source>(_ definitions: [Metric.Definition<Source>]) -> [[String]] {
            definitions.map { ["`\($0.name)`", $0.unit, $0.isCounter ? "counter" : "gauge"] }
        }
        let header = "| name | unit | kind | what it counts |"
        #expect(
            try page.table(header, in: "Of the session").map { Array($0.prefix(3)) } == rows(Metric.ofSession)
        )
        #expect(try page.table(header, in: "Of each peer").map { Array($0.prefix(3)) } == rows(Metric.ofPeer))

        let (puma, lynx) = try place.pair(.handler)
        try sendSome(puma.session, to: lynx.id)
        let metrics = puma.statistics.metrics
        let sent = try #require(metrics.first { $0.name == "bytes_sent" })
        #expect(sent.value == 35_310 && sent.labels == ["peer": lynx.id.description] && sent.isCounter)
        #expect(metrics.first { $0.name == "peers_connected" }?.value == 1)
    }

    @Test(arguments: [SessionProbe.Reading.handler, .inbox])
    func messagesAndTheirBytesAreCountedAtBothEnds(_ reading: SessionProbe.Reading) throws {
        let (puma, lynx) = try place.pair(reading)
        try sendSome(puma.session, to: lynx.id)
        let sent = try #require(puma.statistics.peers[lynx.id])
        #expect(sent.messagesSent == 5 && sent.bytesSent == 35_310)
        #expect(sent.unreliableSent == 3 && sent.unreliableDropped == 0)
        #expect(sent.messagesReceived == 0 && sent.unreliableReceived == 0 && sent.messagesResent == 0)
        #expect(sent.bytesWaiting == 0 && sent.bytesUnread == 0)
        let received = try #require(lynx.statistics.peers[puma.id])
        #expect(received.messagesReceived == 5 && received.bytesReceived == 35_310)
        #expect(received.unreliableReceived == 3 && received.unreliableUnread == 0)
        // Includes a frame header for each message.
        #expect(received.bytesUnread == (reading == .inbox ? 35_310 + 24 + 8 * 4 : 0))
        #expect(received.messagesSent == 0 && received.reconnects == 0)
        var read = 0
        while lynx.session.messages.poll() != nil { read += 1 }
        #expect(read == (reading == .inbox ? 8 : 0))
    }

    @Test("Messages count as read at once, even if there are too few to notify the peer")
    func reading() throws {
        let (puma, lynx) = try place.pair(.inbox)
        for _ in 0..<10 { try puma.session.trySend([UInt8](repeating: 1, count: 100), to: lynx.id) }
        try place.run(.seconds(1))
        let all = 10 * (100 + FrameHeader.byteCount)
        #expect(lynx.statistics.peers[puma.id]?.bytesUnread == all)
        while lynx.session.messages.poll() != nil {}
        #expect(lynx.statistics.peers[puma.id]?.bytesUnread == 0)
    }

    @Test("Messages read after the end of a conversation no longer count as unread")
    func readingLate() throws {
        let (puma, lynx) = try place.pair(.inbox)
        try sendSome(puma.session, to: lynx.id)
        puma.session.disconnect(lynx.id)
        try place.run(.seconds(1))
        #expect(lynx.state(of: puma.id) == .available)
        #expect(lynx.statistics.peers[puma.id]?.bytesUnread == 35_310 + 24 + 8 * 4)
        while lynx.session.messages.poll() != nil {}
        try place.loop.runQueued()
        #expect(lynx.statistics.peers[puma.id]?.bytesUnread == 0)
    }

    @Test("Statistics requested between reads delay no sender")
    func askingWhileReading() throws {
        let (puma, lynx) = try place.pair(.inbox) { $0.limits.receiveWindow = 16 << 10 }
        var sent = 0
        var read = 0
        while read < 400 {
            while sent < 400,
                (try? puma.session.trySend([UInt8](repeating: 1, count: 1_000), to: lynx.id)) != nil
            {
                sent += 1
            }
            try place.run(.milliseconds(10))
            let message = try #require(
                lynx.session.messages.poll(), "\(read) were read, and nothing more comes")
            #expect(message.bytes.count == 1_000)
            read += 1
            #expect(lynx.statistics.peers[puma.id]?.bytesUnread ?? -1 >= 0)
        }
    }

    @Test func resentMessagesAreCountedSeparately() throws {
        let (puma, lynx) = try place.pair()
        puma.faults.stall(.all, .outgoing)
        for _ in 0..<3 { try puma.session.trySend([1], to: lynx.id) }
        try place.run(.milliseconds(200))
        puma.faults.cut()
        puma.faults.release()
        try place.run(.seconds(5))
        let sent = try #require(puma.statistics.peers[lynx.id])
        #expect(sent.messagesSent == 3 && sent.messagesResent == 3 && sent.reconnects == 1)
        #expect(lynx.statistics.peers[puma.id]?.messagesReceived == 3)
    }

    @Test("Unreliable messages stay counted when their link and the conversation are over")
    func unreliableMessagesOfEarlierLinks() throws {
        let (puma, lynx) = try place.pair { $0.datagrams = false }
        for _ in 0..<3 { try puma.session.trySend([1], to: lynx.id, .unreliable) }
        try place.run(.seconds(1))
        puma.faults.cut()
        try place.run(.seconds(5))
        #expect(puma.state(of: lynx.id) == .connected)
        #expect(puma.statistics.peers[lynx.id]?.unreliableSent == 3)
        try puma.session.trySend([1], to: lynx.id, .unreliable)
        try place.run(.seconds(1))
        #expect(puma.statistics.peers[lynx.id]?.unreliableSent == 4)
        puma.session.disconnect(lynx.id) { _ in }
        try place.run(.seconds(1))
        #expect(puma.statistics.peers[lynx.id]?.unreliableSent == 4)
        #expect(puma.statistics.linksEnded["left"] == 1 && puma.statistics.linksEnded["peer left"] == nil)
        #expect(lynx.statistics.linksEnded["peer left"] == 1)
    }

    @Test func aRoundTripHasALastAMinimumAndASmoothedValue() {
        var roundTrip = RoundTrip()
        for milliseconds in [80, 40, 120] as [Int64] { roundTrip.record(.milliseconds(milliseconds)) }
        #expect(roundTrip.last == .milliseconds(120))
        #expect(roundTrip.minimum == .milliseconds(40))
        #expect(roundTrip.smoothed == .microseconds((75_000 * 7 + 120_000) / 8))
    }
}
