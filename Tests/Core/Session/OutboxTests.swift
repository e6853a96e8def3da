import Testing

@testable import NighCore

/// Tests messages on their way between the program and the lanes, without a driver or a machine.
struct OutboxTests {
    private let pair = ConversationPair()
    private var conversation: Conversation { pair.first.conversation }

    private func arrived() throws -> [[UInt8]] {
        pair.first.gather(budget: 1 << 20)
        try pair.deliver(from: pair.first, to: pair.second)
        return pair.second.received[.main] ?? []
    }

    private func appendToLast(_ bytes: [UInt8], to peer: PeerID, _ outbox: inout Outbox) -> Outbox.Outcome {
        bytes.withUnsafeBytes { outbox.appendToLast($0, to: peer, on: .main, isNext: false) }
    }

    @Test func messagesStagedByOtherThreadsGoFirst() throws {
        try pair.startLink()
        var outbox = Outbox()
        try conversation.port.stage(ByteSlice([1]), on: .main, isNext: false)
        outbox.remember(conversation)
        #expect(appendToLast([2], to: conversation.peer, &outbox) == .notAppended)
        try outbox.append(ByteSlice([2]), to: conversation, on: .main, isNext: false)
        #expect(try arrived() == [[1], [2]])
    }

    @Test func theLastConversationIsCachedForTheNextMessage() throws {
        try pair.startLink()
        var outbox = Outbox()
        #expect(appendToLast([1], to: conversation.peer, &outbox) == .notAppended)
        outbox.remember(conversation)
        #expect(appendToLast([1], to: conversation.peer, &outbox) == .firstAppended)
        conversation.isAnnounced = true
        #expect(appendToLast([2], to: conversation.peer, &outbox) == .appended)
        #expect(appendToLast([3], to: pair.second.conversation.peer, &outbox) == .notAppended)
        #expect(try arrived() == [[1], [2]])
        #expect(conversation.statistics.messagesSent == 2)
        #expect(conversation.statistics.bytesSent == 2)
    }

    @Test func nothingIsSentToAPeerThatHasLeft() throws {
        try pair.startLink()
        var outbox = Outbox()
        outbox.remember(conversation)
        conversation.stopAccepting(NighError(.sending, .left))
        #expect(appendToLast([1], to: conversation.peer, &outbox) == .notAppended)
        #expect(outbox.lastConversation(with: conversation.peer) == nil)
        #expect(outbox.recipient(0, conversation.peer) { _ in conversation } == nil)
    }

    @Test func aBroadcastIsEncodedOnceAndItsRecipientsAreCached() throws {
        try pair.startLink()
        var outbox = Outbox()
        let others = [conversation, pair.second.conversation]
        let encoded = outbox.encode(ByteSlice([7, 8]), on: .main)
        var looks = 0
        for _ in 0..<2 {
            for (index, other) in others.enumerated() {
                let recipient = try #require(
                    outbox.recipient(index, other.peer) { _ in
                        looks += 1
                        return other
                    })
                #expect(recipient.takeUnretainedValue() === other)
                #expect(other.append(encoded, size: 2, on: .main))
            }
        }
        #expect(looks == 2)
        #expect(try arrived() == [[7, 8], [7, 8]])
        #expect(pair.second.conversation.port.outstanding == 2 * SendLane.cost(of: 2))
    }

    @Test func anUnreliableMessageWithoutALinkIsDroppedAndCounted() {
        let outbox = Outbox()
        let link = ([1, 2] as [UInt8]).withUnsafeBytes {
            outbox.send(unreliable: $0, .sequenced, to: conversation) { _ in 1_000 }
        }
        #expect(link == nil)
        #expect(conversation.statistics.unreliableDropped == 1)
    }
}
