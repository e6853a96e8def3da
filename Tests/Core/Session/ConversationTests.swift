import Testing

@testable import NighCore

@Suite struct ConversationTests {
    @Test(arguments: 0..<30)
    func `Everything arrives once and in order over many links`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let pair = try ConversationPair(window: 20_000, frame: 8_192, buffer: 100_000)
        var sent: [ObjectIdentifier: [Lane: [[UInt8]]]] = [:]
        for _ in 0..<250 {
            let isFirst = generator.oneIn(2)
            let (from, to) = isFirst ? (pair.first, pair.second) : (pair.second, pair.first)
            switch Int.random(in: 0..<12, using: &generator) {
            case 0...4:
                let size = generator.oneIn(5) ? 30_000 : 200
                let bytes = [UInt8](
                    repeating: .random(in: 0...255, using: &generator),
                    count: .random(in: 0...size, using: &generator))
                let lane: Lane = generator.oneIn(3) ? .bulk : .main
                guard (try? from.send(bytes, on: lane)) != nil else { continue }
                sent[ObjectIdentifier(from), default: [:]][lane, default: []].append(bytes)
            case 5...7: from.gather(budget: .random(in: 0...30_000, using: &generator))
            case 8...9:
                try pair.deliver(from: from, to: to, atMost: .random(in: 0...20_000, using: &generator))
            case 10: try pair.acknowledge(from: to, to: from)
            default: if generator.oneIn(4) { try pair.startLink() }
            }
        }
        try pair.startLink()
        for _ in 0..<2_000 where !(pair.first.conversation.isDrained && pair.second.conversation.isDrained) {
            for (from, to) in [(pair.first, pair.second), (pair.second, pair.first)] {
                from.gather(budget: 10_000)
                try pair.deliver(from: from, to: to)
                try pair.acknowledge(from: to, to: from)
            }
        }
        for (from, to) in [(pair.first, pair.second), (pair.second, pair.first)] {
            #expect(from.conversation.isDrained)
            #expect(from.conversation.port.outstanding == 0)
            for lane in Lane.allCases {
                let isSame = to.received[lane] == sent[ObjectIdentifier(from)]?[lane] ?? []
                #expect(isSame, "seed \(seed), lane \(lane)")
            }
        }
    }

    /// A sender may have room for a quarter of the window and no more, so the receiver must not wait for its timer.
    @Test func `A quarter of the window is acknowledged at once`() throws {
        let pair = try ConversationPair(window: 4_000)
        try pair.first.send([UInt8](repeating: 1, count: 995))
        try pair.deliver(gathering: 10_000)
        #expect(pair.second.conversation.owesAcknowledgement)
        #expect(!pair.second.conversation.shouldAcknowledgeNow, "999 bytes with the frame's header")
        try pair.acknowledge()
        try pair.first.send([UInt8](repeating: 1, count: 996))
        try pair.deliver(gathering: 10_000)
        #expect(pair.second.conversation.shouldAcknowledgeNow)
    }

    /// A receiver must not wait for its timer either if the message is large, because its last piece may be small.
    @Test func `A message of a quarter of the window is acknowledged with its last piece`() throws {
        for (size, isAtOnce) in [(10_000, true), (9_999, false)] {
            let pair = try ConversationPair(window: 40_000, frame: 8_192)
            try pair.first.send([UInt8](repeating: 1, count: size))
            pair.first.gather(budget: 100_000)
            try pair.deliver(atMost: 8_192 + 12)
            try pair.acknowledge()
            try pair.deliver()
            #expect(pair.second.received[.main]?.map(\.count) == [size])
            #expect(pair.second.conversation.shouldAcknowledgeNow == isAtOnce, "\(size) bytes")
        }
    }

    @Test func `A bulk transfer delays the main lane by its share only`() throws {
        let pair = try ConversationPair(window: 4 << 20, buffer: 4 << 20)
        try pair.first.send([UInt8](repeating: 1, count: 1 << 20), on: .bulk)
        pair.first.gather(budget: 40_000)
        // Moves are sent while the file is in transit. Each leaves before more of the file than one turn's share.
        for move in 0..<50 {
            try pair.first.send([UInt8(move)], on: .main)
            let before = pair.first.wire.byteCount
            pair.first.gather(budget: 5_000)
            let fresh = Array(pair.first.wire.bytes.dropFirst(before))
            #expect(fresh.prefix(5).elementsEqual(Frames.frame(.message, [UInt8(move)])))
        }
        try pair.deliver()
        #expect(pair.second.received[.main]?.count == 50)
        #expect(pair.second.received[.bulk]?.count == 0)
        try pair.deliver(gathering: 2 << 20)
        #expect(pair.second.received[.bulk]?.map(\.count) == [1 << 20])
    }

    @Test func `A lane without credit does not hold up the other`() throws {
        let pair = try ConversationPair(window: 10_000, frame: 8_192)
        try pair.first.send([UInt8](repeating: 1, count: 100_000), on: .main)
        pair.first.gather(budget: 1 << 20)
        try pair.first.send([7], on: .bulk)
        try pair.deliver(gathering: 1 << 20)
        #expect(pair.second.received[.bulk] == [[7]])
    }

    @Test(arguments: Lane.allCases)
    func `Reading makes room on either lane`(lane: Lane) throws {
        let window = 20_000
        let pair = try ConversationPair(window: window, frame: 8_192)
        var sent = 0
        while sent < 1_000, (try? pair.first.send([UInt8](repeating: 1, count: 1_000), on: lane)) != nil {
            sent += 1
        }
        let reader = pair.second.conversation
        var reportCount = 0
        for _ in 0..<200 {
            pair.first.gather(budget: 1 << 20)
            let before = pair.second.order.count
            try pair.deliver()
            let fresh = pair.second.order.count - before
            reader.countUnread(fresh * 1_004)
            // An acknowledgement makes no room while nothing is read.
            try pair.acknowledge()
            #expect(reader.unread <= window + 8_192 + 8)
            // Then the program reads everything, one message at a time.
            var mustTell = false
            for _ in 0..<fresh {
                reader.countRead(1_004)
                if reader.shouldGrantNow { mustTell = true }
            }
            if mustTell {
                reportCount += 1
                try pair.acknowledge()
            }
        }
        #expect(pair.second.order.count == sent)
        #expect(reportCount > 1)
    }

    @Test func `An acknowledgement of a message that was not sent is refused and changes nothing`() throws {
        let pair = try ConversationPair()
        try pair.first.send([1])
        pair.first.gather(budget: 100)
        for (lane, claim) in [(0, 2), (0, UInt64.max), (1, 1), (1, 2), (1, .max)] {
            var standing = pair.second.conversation.standingForNewLink()
            standing.received[0] = 1
            standing.received[lane] = claim
            #expect(throws: WireError.malformed("the acknowledgement of a message that was not sent")) {
                try pair.first.conversation.apply(standing, pool: &pair.first.pool)
            }
            #expect(throws: WireError.self) {
                try pair.first.conversation.startLink(peerStanding: standing, pool: &pair.first.pool)
            }
        }
        #expect(pair.first.conversation.port.outstanding == 5 && !pair.first.conversation.isDrained)
    }

    @Test func `An older acknowledgement is ignored`() throws {
        let pair = try ConversationPair()
        for number in 0..<3 { try pair.first.send([UInt8(number)]) }
        pair.first.gather(budget: 100)
        var standing = pair.second.conversation.takeStanding()
        standing.received[0] = 2
        _ = try pair.first.conversation.apply(standing, pool: &pair.first.pool)
        #expect(pair.first.conversation.port.outstanding == 5)
        standing.received[0] = 1
        _ = try pair.first.conversation.apply(standing, pool: &pair.first.pool)
        #expect(pair.first.conversation.port.outstanding == 5)
    }

    @Test func `A grant that shrinks, even by a byte, breaks the protocol on either lane`() throws {
        for lane in 0..<2 {
            let pair = try ConversationPair()
            let standing = pair.second.conversation.takeStanding()
            _ = try pair.first.conversation.apply(standing, pool: &pair.first.pool)
            for grant in [standing.granted[lane] - 1, 0] {
                var less = standing
                less.granted[lane] = grant
                #expect(throws: WireError.malformed("a grant that shrinks")) {
                    try pair.first.conversation.apply(less, pool: &pair.first.pool)
                }
            }
            // Each link counts from the beginning.
            try pair.startLink()
        }
    }

    @Test func `A peer that forgot what it acknowledged is refused`() throws {
        let pair = try ConversationPair()
        for number in 0..<3 { try pair.first.send([UInt8(number)]) }
        try pair.deliver(gathering: 100)
        try pair.acknowledge()
        for claim in [0, 2, 4, UInt64.max] {
            var standing = Standing()
            standing.received[0] = claim
            #expect(throws: WireError.malformed("an impossible count of messages")) {
                try pair.first.conversation.startLink(peerStanding: standing, pool: &pair.first.pool)
            }
        }
    }

    @Test func `The largest grant is accepted`() throws {
        let pair = try ConversationPair()
        var standing = Standing()
        standing.granted = [.max, .max]
        try pair.first.conversation.startLink(peerStanding: standing, pool: &pair.first.pool)
        try pair.first.send([UInt8](repeating: 1, count: 100_000))
        try pair.first.send([2], on: .bulk)
        pair.first.gather(budget: .max)
        #expect(!pair.first.conversation.hasUnsent)
        _ = try pair.first.conversation.apply(standing, pool: &pair.first.pool)
    }

    @Test func `An acknowledgement is due 100 milliseconds after the first byte`() throws {
        let pair = try ConversationPair()
        #expect(pair.second.conversation.acknowledgeBy == .never)
        try pair.first.send([1])
        pair.first.gather(budget: 100)
        pair.now = Moment(nanoseconds: 5)
        try pair.deliver()
        #expect(pair.second.conversation.acknowledgeBy == Moment(nanoseconds: 100_000_005))
        #expect(!pair.second.conversation.shouldAcknowledgeNow)
        #expect(pair.second.conversation.takeStanding().received[0] == 1)
        #expect(pair.second.conversation.acknowledgeBy == .never)
    }

    @Test func `Staged messages are counted`() throws {
        let pair = try ConversationPair()
        let port = pair.first.conversation.port
        for size in [3, 0, 20_000] {
            try port.stage(ByteSlice([UInt8](repeating: 4, count: size)), on: .main, isNext: false)
        }
        while let run = port.takeStaged() { pair.first.conversation.append(run, pool: &pair.first.pool) }
        #expect(pair.first.conversation.statistics.messagesSent == 3)
        #expect(pair.first.conversation.statistics.bytesSent == 20_003)
        try pair.deliver(gathering: 1 << 20)
        #expect(pair.second.received[.main]?.map(\.count) == [3, 0, 20_000])
        try pair.acknowledge()
        #expect(port.outstanding == 0)
    }
}

/// Tests messages on their way between the program and the lanes, without a driver or a machine.
@Suite struct OutboxTests {
    private let pair: ConversationPair
    private var conversation: Conversation { pair.first.conversation }

    init() throws { pair = try ConversationPair() }

    private func arrived() throws -> [[UInt8]] {
        try pair.deliver(gathering: 1 << 20)
        return pair.second.received[.main] ?? []
    }

    private func appendToLast(_ bytes: [UInt8], to peer: PeerID, _ outbox: inout Outbox) -> Outbox.Outcome {
        bytes.withUnsafeBytes { outbox.appendToLast($0, to: peer, on: .main, isNext: false) }
    }

    @Test func `Messages staged by other threads go first`() throws {
        var outbox = Outbox()
        try conversation.port.stage(ByteSlice([1]), on: .main, isNext: false)
        outbox.remember(conversation)
        #expect(appendToLast([2], to: conversation.peer, &outbox) == .notAppended)
        try outbox.append(ByteSlice([2]), to: conversation, on: .main, isNext: false)
        #expect(try arrived() == [[1], [2]])
    }

    @Test func `The last conversation is cached for the next message`() throws {
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

    @Test func `Nothing is sent to a peer that has left`() throws {
        var outbox = Outbox()
        outbox.remember(conversation)
        conversation.stopAccepting(NighError(.sending, .left))
        #expect(appendToLast([1], to: conversation.peer, &outbox) == .notAppended)
        #expect(outbox.lastConversation(with: conversation.peer) == nil)
        #expect(outbox.recipient(0, conversation.peer) { _ in conversation } == nil)
    }

    @Test func `A broadcast is encoded once and its recipients are cached`() throws {
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

    @Test func `An unreliable message without a link is dropped and counted`() {
        let outbox = Outbox()
        let link = ([1, 2] as [UInt8]).withUnsafeBytes {
            outbox.send(unreliable: $0, .sequenced, to: conversation) { _ in 1_000 }
        }
        #expect(link == nil)
        #expect(conversation.statistics.unreliableDropped == 1)
    }
}
