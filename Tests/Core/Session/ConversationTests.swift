import Testing

@testable import NighCore

@Suite struct ConversationTests {
    @Test(arguments: 0..<30)
    func everythingArrivesOnceAndInOrderOverManyLinks(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let pair = ConversationPair {
            $0.receiveWindow = 20_000
            $0.frame = 8_192
            $0.sendBuffer = 100_000
        }
        try pair.startLink()
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
    @Test func aQuarterOfTheWindowIsAcknowledgedAtOnce() throws {
        let pair = ConversationPair { $0.receiveWindow = 4_000 }
        try pair.startLink()
        try pair.first.send([UInt8](repeating: 1, count: 995))
        pair.first.gather(budget: 10_000)
        try pair.deliver(from: pair.first, to: pair.second)
        #expect(pair.second.conversation.owesAcknowledgement)
        #expect(!pair.second.conversation.shouldAcknowledgeNow, "999 bytes with the frame's header")
        try pair.acknowledge(from: pair.second, to: pair.first)
        try pair.first.send([UInt8](repeating: 1, count: 996))
        pair.first.gather(budget: 10_000)
        try pair.deliver(from: pair.first, to: pair.second)
        #expect(pair.second.conversation.shouldAcknowledgeNow)
    }

    /// The same holds for a large message, whose last piece may be small.
    @Test func aMessageOfAQuarterOfTheWindowIsAcknowledgedWithItsLastPiece() throws {
        for (size, isAtOnce) in [(10_000, true), (9_999, false)] {
            let pair = ConversationPair {
                $0.receiveWindow = 40_000
                $0.frame = 8_192
            }
            try pair.startLink()
            try pair.first.send([UInt8](repeating: 1, count: size))
            pair.first.gather(budget: 100_000)
            try pair.deliver(from: pair.first, to: pair.second, atMost: 8_192 + 12)
            try pair.acknowledge(from: pair.second, to: pair.first)
            try pair.deliver(from: pair.first, to: pair.second)
            #expect(pair.second.received[.main]?.map(\.count) == [size])
            #expect(pair.second.conversation.shouldAcknowledgeNow == isAtOnce, "\(size) bytes")
        }
    }

    @Test func aBulkTransferDelaysTheMainLaneByItsShareOnly() throws {
        let pair = ConversationPair {
            $0.receiveWindow = 4 << 20
            $0.sendBuffer = 4 << 20
        }
        try pair.startLink()
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
        try pair.deliver(from: pair.first, to: pair.second)
        #expect(pair.second.received[.main]?.count == 50)
        #expect(pair.second.received[.bulk]?.count == 0)
        pair.first.gather(budget: 2 << 20)
        try pair.deliver(from: pair.first, to: pair.second)
        #expect(pair.second.received[.bulk]?.map(\.count) == [1 << 20])
    }

    @Test func bothLanesProgressWhenBothAreFull() throws {
        let pair = ConversationPair { $0.receiveWindow = 8 << 20 }
        try pair.startLink()
        for lane in Lane.allCases { try pair.first.send([UInt8](repeating: 1, count: 500_000), on: lane) }
        pair.first.gather(budget: 400_000)
        let bytes = pair.first.wire.bytes
        let decoded = Decoded(reference: bytes, maximumPayload: 16_384)
        let main = decoded.frames.filter { $0.type == FrameType.piece.rawValue }.count
        let bulk = decoded.frames.filter { $0.type == FrameType.bulkPiece.rawValue }.count
        #expect(bulk >= 4)
        #expect(main >= 3 * bulk)
        #expect(main <= 6 * bulk)
    }

    @Test func aLaneWithoutCreditDoesNotHoldUpTheOther() throws {
        let pair = ConversationPair {
            $0.receiveWindow = 10_000
            $0.frame = 8_192
        }
        try pair.startLink()
        try pair.first.send([UInt8](repeating: 1, count: 100_000), on: .main)
        pair.first.gather(budget: 1 << 20)
        try pair.first.send([7], on: .bulk)
        pair.first.gather(budget: 1 << 20)
        try pair.deliver(from: pair.first, to: pair.second)
        #expect(pair.second.received[.bulk] == [[7]])
    }

    @Test(arguments: Lane.allCases)
    func readingMakesRoomOnEitherLane(lane: Lane) throws {
        let window = 20_000
        let pair = ConversationPair {
            $0.receiveWindow = window
            $0.frame = 8_192
        }
        try pair.startLink()
        var sent = 0
        while sent < 1_000, (try? pair.first.send([UInt8](repeating: 1, count: 1_000), on: lane)) != nil {
            sent += 1
        }
        let reader = pair.second.conversation
        var reportCount = 0
        for _ in 0..<200 {
            pair.first.gather(budget: 1 << 20)
            let before = pair.second.order.count
            try pair.deliver(from: pair.first, to: pair.second)
            let fresh = pair.second.order.count - before
            reader.countUnread(fresh * 1_004)
            // An acknowledgement makes no room while nothing is read.
            try pair.acknowledge(from: pair.second, to: pair.first)
            #expect(reader.unread <= window + 8_192 + 8)
            // Then the program reads everything, one message at a time.
            var mustTell = false
            for _ in 0..<fresh {
                reader.countRead(1_004)
                if reader.shouldGrantNow { mustTell = true }
            }
            if mustTell {
                reportCount += 1
                try pair.acknowledge(from: pair.second, to: pair.first)
            }
        }
        #expect(pair.second.order.count == sent)
        #expect(reportCount > 1)
    }

    @Test func bytesBeyondTheGrantAreRefused() throws {
        let pair = ConversationPair {
            $0.receiveWindow = 10_000
            $0.frame = 8_192
        }
        try pair.startLink()
        let frame = Frames.frame(.message, [UInt8](repeating: 1, count: 8_192))
        let receive: () throws -> Void = {
            pair.second.decoder.feed(ByteSlice(frame))
            while let frame = try pair.second.decoder.next() { try pair.receive(frame, at: pair.second) }
        }
        try receive()
        try receive()
        #expect(throws: WireError.malformed("more bytes than were allowed")) { try receive() }
    }

    @Test func acknowledgementsOfUnsentMessagesAreRefused() throws {
        let pair = ConversationPair()
        try pair.startLink()
        try pair.first.send([1])
        try pair.first.send([2], on: .bulk)
        for lane in 0..<2 {
            for claim in [1, 2, UInt64.max] {
                var standing = Standing()
                standing.received[lane] = claim
                #expect(throws: WireError.malformed("the acknowledgement of a message that was not sent")) {
                    try pair.first.conversation.apply(standing, pool: &pair.first.pool)
                }
            }
        }
        #expect(pair.first.conversation.port.outstanding == 10)
    }

    @Test func aRefusedAcknowledgementChangesNothing() throws {
        let pair = ConversationPair()
        try pair.startLink()
        try pair.first.send([1])
        pair.first.gather(budget: 100)
        var standing = Standing()
        standing.received = [1, 1]
        #expect(throws: WireError.self) {
            try pair.first.conversation.apply(standing, pool: &pair.first.pool)
        }
        #expect(throws: WireError.self) {
            try pair.first.conversation.startLink(peerStanding: standing, pool: &pair.first.pool)
        }
        #expect(pair.first.conversation.port.outstanding == 5)
        #expect(!pair.first.conversation.isDrained)
    }

    @Test func anOlderAcknowledgementIsIgnored() throws {
        let pair = ConversationPair()
        try pair.startLink()
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

    @Test("A grant that shrinks, even by a byte, breaks the protocol on either lane")
    func shrinkingGrant() throws {
        for lane in 0..<2 {
            let pair = ConversationPair()
            try pair.startLink()
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

    @Test func aPeerThatForgotWhatItAcknowledgedIsRefused() throws {
        let pair = ConversationPair()
        try pair.startLink()
        for number in 0..<3 { try pair.first.send([UInt8(number)]) }
        pair.first.gather(budget: 100)
        try pair.deliver(from: pair.first, to: pair.second)
        try pair.acknowledge(from: pair.second, to: pair.first)
        for claim in [0, 2, 4, UInt64.max] {
            var standing = Standing()
            standing.received[0] = claim
            #expect(throws: WireError.malformed("an impossible count of messages")) {
                try pair.first.conversation.startLink(peerStanding: standing, pool: &pair.first.pool)
            }
        }
    }

    @Test func theLargestGrantIsAccepted() throws {
        let pair = ConversationPair()
        var standing = Standing()
        standing.granted = [.max, .max]
        try pair.first.conversation.startLink(peerStanding: standing, pool: &pair.first.pool)
        try pair.first.send([UInt8](repeating: 1, count: 100_000))
        try pair.first.send([2], on: .bulk)
        pair.first.gather(budget: .max)
        #expect(!pair.first.conversation.hasUnsent)
        _ = try pair.first.conversation.apply(standing, pool: &pair.first.pool)
    }

    @Test func anAcknowledgementIsDue100MillisecondsAfterTheFirstByte() throws {
        let pair = ConversationPair()
        try pair.startLink()
        #expect(pair.second.conversation.acknowledgeBy == .never)
        try pair.first.send([1])
        pair.first.gather(budget: 100)
        pair.now = Moment(nanoseconds: 5)
        try pair.deliver(from: pair.first, to: pair.second)
        #expect(pair.second.conversation.acknowledgeBy == Moment(nanoseconds: 100_000_005))
        #expect(!pair.second.conversation.shouldAcknowledgeNow)
        #expect(pair.second.conversation.takeStanding().received[0] == 1)
        #expect(pair.second.conversation.acknowledgeBy == .never)
    }

    @Test func stagedMessagesAreCounted() throws {
        let pair = ConversationPair()
        try pair.startLink()
        let port = pair.first.conversation.port
        for size in [3, 0, 20_000] {
            try port.stage(ByteSlice([UInt8](repeating: 4, count: size)), on: .main, isNext: false)
        }
        while let run = port.takeStaged() { pair.first.conversation.append(run, pool: &pair.first.pool) }
        #expect(pair.first.conversation.statistics.messagesSent == 3)
        #expect(pair.first.conversation.statistics.bytesSent == 20_003)
        pair.first.gather(budget: 1 << 20)
        try pair.deliver(from: pair.first, to: pair.second)
        #expect(pair.second.received[.main]?.map(\.count) == [3, 0, 20_000])
        try pair.acknowledge(from: pair.second, to: pair.first)
        #expect(port.outstanding == 0)
    }
}
