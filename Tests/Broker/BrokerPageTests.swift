import NighCore
import NighTestKit
import Testing

@testable import NighBroker

/// Tests that the code does what docs/reference/PROTOCOL.md says of pipes of packets and of brokers.
@Suite struct BrokerPageTests {
    @Test func `the example of a pipe over a broker is what the code sends and understands`() throws {
        let lines = Self.example()
        try #require(lines.count == 4)
        let end = { (place: String, token: String) in
            BrokerMessage.PipeEnd(
                replyAddress: try #require(BrokerReplyAddress(place)), token: token, window: 65_536,
                longestPacket: 4_096)
        }
        let messages = [BrokerMessage.open(try end("puma.7f", "1")), .opened(try end("lynx.c0", "a"))]
        for (message, line) in zip(messages, lines) {
            #expect(message.bytes == line && BrokerMessage(ByteSlice(line)) == message)
        }
        let now = Moment(nanoseconds: 0)
        var puma = SequencedStream(.init(packet: 4_096, window: 65_536), theirWindow: 65_536, at: now)
        var preface = ByteQueue()
        preface.append(ByteSlice(lines[2].dropFirst(SequencedStream.headLength)))
        puma.write(&preface)
        #expect(puma.nextPacket(at: now) == lines[2])
        #expect(lines[3] == SequencedStream.abort && puma.receive(ByteSlice(lines[3]), at: now) == .aborted)
    }

    @Test func `announcements and questions are read as they were written, and hostile ones are not read`()
        throws
    {
        let peer = Identity.ephemeral(seed: 5).peerID
        let address = BrokerAddress(identity: "\(peer)", peer: "\(peer)", service: "chat")
        let advertisement = Advertisement(
            service: "chat", peer: peer, name: DisplayName(fitting: "Puma"),
            info: try DiscoveryInfo(["room": "4"]), isFull: true)
        let place = try #require(BrokerReplyAddress("puma.7f"))
        let messages: [BrokerMessage] = [
            .here(address, again: .seconds(37), advertisement), .gone(address), .who(place), .refused,
        ]
        for message in messages {
            #expect(BrokerMessage(ByteSlice(message.bytes)) == message)
            for count in message.bytes.indices where message != .refused || count == 0 {
                let cut = BrokerMessage(ByteSlice(message.bytes.prefix(count)))
                #expect(cut != message)
            }
        }
        // Nobody can make this session publish under a subject of their own making.
        for text in ["a.*", "a.>", "*.b", "a", "a.b.c", "a..b", "A.b", "a. b", ""] {
            #expect(BrokerReplyAddress(text) == nil, "\(text)")
        }
    }

    private static func example() -> [[UInt8]] {
        let lines = RepositoryFile.text(of: "docs/reference/PROTOCOL.md").split(
            separator: "\n", omittingEmptySubsequences: false)
        let section = lines.drop { $0 != "### 2.9 Over a message broker" }.drop { $0 != "```" }.dropFirst()
        return section.prefix { $0 != "```" }.map {
            $0.split(separator: " ").compactMap { UInt8($0, radix: 16) }
        }
    }
}
