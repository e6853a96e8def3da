import NighTestKit
import Testing

@testable import NighCore

@Suite("The messages of one peer") struct PeerMessagesTests {
    @Test(
        "have a sequence of their own if the program wants it, whichever way it reads the others', and it ends with the conversation",
        .timeLimit(.minutes(15)), arguments: [SessionProbe.Reading.inbox, .handler])
    func ownSequence(reading: SessionProbe.Reading) async throws {
        let place = Neighbourhood()
        let (first, hub) = try place.pair(reading)
        let third = place.join("third")
        try place.run(.seconds(1))
        third.invite(hub)
        try place.run(.seconds(1))

        let separate = try #require(hub.session.separateMessages(of: first.id))
        #expect(hub.session.separateMessages(of: hub.id) == nil)
        // Whole messages, one in pieces, and an unreliable one.
        let sent = [[1], [UInt8](repeating: 2, count: 40_000), [3]]
        for message in sent { try first.session.trySend(message, to: hub.id) }
        try first.session.trySend([4], to: hub.id, .unreliable)
        try third.session.trySend([5], to: hub.id)
        try place.run(.seconds(1))
        var received: [Message] = []
        while let message = separate.poll() { received.append(message) }
        #expect(received.allSatisfy { $0.sender == first.id })
        let reliable = received.filter(\.origin.isReliable).map {
            [$0.bytes[0], UInt8(clamping: $0.bytes.count / 1_000)]
        }
        #expect(reliable == [[1, 0], [2, 40], [3, 0]])
        #expect(received.filter { !$0.origin.isReliable }.map(\.bytes) == [[4]])
        let others = reading == .inbox ? hub.session.messages.poll()?.bytes : hub.messages.last?.bytes
        #expect(others == [5] && hub.session.messages.poll() == nil)

        // A second call gives the same sequence.
        let again = try #require(hub.session.separateMessages(of: first.id))
        try first.session.trySend([8], to: hub.id)
        try place.run(.seconds(1))
        #expect(again.poll()?.bytes == [8] && separate.poll() == nil)

        // What is not read holds up its own peer, and comes before the end.
        for _ in 0..<2_000 { try first.session.trySend([UInt8](repeating: 6, count: 1_000), to: hub.id) }
        try place.run(.seconds(1))
        try third.session.trySend([7], to: hub.id)
        try place.run(.seconds(1))
        #expect(hub.statistics.peers[first.id]?.bytesUnread ?? 0 > 0)
        #expect((reading == .inbox ? hub.session.messages.poll()?.bytes : hub.messages.last?.bytes) == [7])
        first.session.disconnect(hub.id) { _ in }
        var count = 0
        for _ in 0..<10 {
            try place.run(.seconds(1))
            while separate.poll() != nil { count += 1 }
        }
        #expect(count == 2_000)
        let end = await separate.next()
        #expect(end == nil)
    }
}
