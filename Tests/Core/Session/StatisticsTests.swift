import NighTestKit
import Testing

@testable import NighCore

/// Tests that the statistics, which people read, are what happened.
@Suite struct StatisticsTests {
    private let network = SimulatedNetwork()

    private func sendSome(_ puma: Session, to lynx: PeerID) throws {
        for count in [10, 0, 20_000] { try puma.trySend([UInt8](repeating: 1, count: count), to: lynx) }
        try puma.trySend([UInt8](repeating: 2, count: 15_000), to: lynx, .reliable(.bulk))
        try puma.trySend(ByteSlice([UInt8](repeating: 3, count: 300)), to: lynx, .reliable(.bulk))
        for count in [7, 8, 9] {
            try puma.trySend([UInt8](repeating: 4, count: count), to: lynx, .unreliable)
        }
        try network.run(for: .seconds(1))
    }

    @Test func `Metrics are those of their page and have the counts`() async throws {
        let page = ProtocolPage("metrics.md")
        func rows<Source>(_ definitions: [Metric.Definition<Source>]) -> [[String]] {
            definitions.map { ["`\($0.name)`", $0.unit, $0.isCounter ? "counter" : "gauge"] }
        }
        let header = "| name | unit | kind | what it counts |"
        func documented(_ section: String) throws -> [[String]] {
            try page.table(header, in: section).map { Array($0.prefix(3)) }
        }
        #expect(try documented("Of the session") == rows(Metric.ofSession))
        #expect(try documented("Of each peer") == rows(Metric.ofPeer))

        let (puma, lynx) = try network.connectedPair(reading: .handler)
        try sendSome(puma.session, to: lynx.id)
        let metrics = puma.statistics.metrics
        let sent = try #require(metrics.first { $0.name == "bytes_sent" })
        #expect(sent.value == 35_310 && sent.labels == ["peer": lynx.id.description] && sent.isCounter)
        #expect(metrics.first { $0.name == "peers_connected" }?.value == 1)
    }

    @Test(arguments: [SessionProbe.Reading.handler, .inbox])
    func `Messages and their bytes are counted at both ends`(_ reading: SessionProbe.Reading) throws {
        let (puma, lynx) = try network.connectedPair(reading: reading)
        try sendSome(puma.session, to: lynx.id)
        let sent = try puma.counts(of: lynx)
        #expect(sent.messagesSent == 5 && sent.bytesSent == 35_310)
        #expect(sent.unreliableSent == 3 && sent.unreliableDropped == 0)
        #expect(sent.messagesReceived == 0 && sent.unreliableReceived == 0 && sent.messagesResent == 0)
        #expect(sent.bytesWaiting == 0 && sent.bytesUnread == 0)
        let received = try lynx.counts(of: puma)
        #expect(received.messagesReceived == 5 && received.bytesReceived == 35_310)
        #expect(received.unreliableReceived == 3 && received.unreliableUnread == 0)
        // Includes a frame header for each message.
        #expect(received.bytesUnread == (reading == .inbox ? 35_310 + 24 + 8 * 4 : 0))
        #expect(received.messagesSent == 0 && received.reconnects == 0)
        #expect(lynx.readAll().count == (reading == .inbox ? 8 : 0))
    }

    @Test(arguments: [false, true])
    func `Messages count as read at once, also after the end of their conversation`(isOver: Bool) throws {
        let (puma, lynx) = try network.connectedPair(reading: .inbox)
        // Too few to notify the peer.
        for _ in 0..<10 { try puma.session.trySend([UInt8](repeating: 1, count: 100), to: lynx.id) }
        if isOver { puma.session.disconnect(lynx.id) }
        try network.run(for: .seconds(1))
        #expect(lynx.state(of: puma.id) == (isOver ? .available : .connected))
        #expect(try lynx.counts(of: puma).bytesUnread == 10 * (100 + FrameHeader.byteCount))
        _ = lynx.readAll()
        if isOver { try network.loop.runQueued() }
        #expect(try lynx.counts(of: puma).bytesUnread == 0)
    }

    @Test func `Statistics requested between reads delay no sender`() throws {
        let (puma, lynx) = try network.connectedPair(reading: .inbox) { $0.limits.receiveWindow = 16 << 10 }
        var sent = 0
        var read = 0
        while read < 400 {
            while sent < 400,
                (try? puma.session.trySend([UInt8](repeating: 1, count: 1_000), to: lynx.id)) != nil
            {
                sent += 1
            }
            try network.run(for: .milliseconds(10))
            let message = try #require(
                lynx.session.messages.poll(), "\(read) were read, and nothing more comes")
            #expect(message.bytes.count == 1_000)
            read += 1
            #expect(try lynx.counts(of: puma).bytesUnread >= 0)
        }
    }

    @Test func `Unreliable messages that find no room with a slow reader are counted, and no others suffer`()
        throws
    {
        let (puma, lynx) = try network.connectedPair(reading: .inbox) {
            $0.datagrams = false
            $0.limits.receiveWindow = 16 << 10
        }
        for number in 0..<20 as Range<UInt8> {
            let message = [UInt8](repeating: number, count: 1_000)
            try puma.session.trySend(message, to: lynx.id, .unreliable)
        }
        try network.run(for: .seconds(1))
        try puma.session.trySend([20], to: lynx.id, .unreliable)
        try puma.session.trySend([21], to: lynx.id)
        try network.run(for: .seconds(1))
        #expect(try lynx.counts(of: puma).unreliableUnread == 4)
        for number in Array(0..<17) + [21] as [UInt8] {
            #expect(lynx.session.messages.poll()?.bytes.first == number)
        }
        #expect(lynx.session.messages.poll() == nil)
        try network.loop.runQueued()
        #expect(try lynx.counts(of: puma).bytesUnread == 0)
    }

    /// A long message is not copied, and a short one is encoded once for all.
    @Test(arguments: [10, 40_000])
    func `A message to several peers is counted for each`(length: Int) throws {
        let puma = network.join()
        let others = (0..<2).map { _ in network.join() }
        for other in others { try network.connect(puma, other) }
        let message = ByteSlice([UInt8](repeating: 1, count: length))
        for _ in 0..<2 { try puma.session.trySend(message, to: others.map(\.id)) }
        try network.run(for: .seconds(1))
        for other in others {
            let sent = try puma.counts(of: other)
            #expect(sent.messagesSent == 2 && sent.bytesSent == 2 * length)
            #expect(try other.counts(of: puma).messagesReceived == 2)
        }
    }

    @Test func `Resent messages are counted separately`() throws {
        let (puma, lynx) = try network.connectedPair()
        puma.faults.stall(.all, .outgoing)
        for _ in 0..<3 { try puma.session.trySend([1], to: lynx.id) }
        try network.run(for: .milliseconds(200))
        puma.faults.cut()
        puma.faults.release()
        try network.run(for: .seconds(5))
        let sent = try puma.counts(of: lynx)
        #expect(sent.messagesSent == 3 && sent.messagesResent == 3 && sent.reconnects == 1)
        #expect(try lynx.counts(of: puma).messagesReceived == 3)
    }

    @Test func `Unreliable messages stay counted when their link and the conversation are over`() throws {
        let (puma, lynx) = try network.connectedPair { $0.datagrams = false }
        for _ in 0..<3 { try puma.session.trySend([1], to: lynx.id, .unreliable) }
        try network.run(for: .seconds(1))
        puma.faults.cut()
        try network.run(for: .seconds(5))
        #expect(puma.state(of: lynx.id) == .connected)
        #expect(try puma.counts(of: lynx).unreliableSent == 3)
        try puma.session.trySend([1], to: lynx.id, .unreliable)
        try network.run(for: .seconds(1))
        #expect(try puma.counts(of: lynx).unreliableSent == 4)
        puma.session.disconnect(lynx.id) { _ in }
        try network.run(for: .seconds(1))
        #expect(try puma.counts(of: lynx).unreliableSent == 4)
        #expect(puma.statistics.linksEnded["left"] == 1 && puma.statistics.linksEnded["peer left"] == nil)
        #expect(lynx.statistics.linksEnded["peer left"] == 1)
    }

    @Test func `A round trip has a last a minimum and a smoothed value`() {
        var roundTrip = RoundTrip()
        for milliseconds in [80, 40, 120] as [Int64] { roundTrip.record(.milliseconds(milliseconds)) }
        #expect(roundTrip.last == .milliseconds(120))
        #expect(roundTrip.minimum == .milliseconds(40))
        #expect(roundTrip.smoothed == .microseconds((75_000 * 7 + 120_000) / 8))
    }
}
