import Testing

@testable import NighCore

/// A send lane beside a simple model of it, which keeps every message and every count.
private struct ModelledLane {
    var lane = SendLane(lane: .main, chunks: LargeChunks())
    var pool = LaneChunks(smallSize: 512, largeSize: 512, keepAtMost: 8)
    var header = ControlWriter()
    let pieceLimit = 100

    /// All messages that were ever accepted.
    var messages: [[UInt8]] = []
    /// What was written on the present link.
    var wire: [UInt8] = []
    var firstOnLink = 0
    var acknowledged = 0
    var everSent = 0
    var outstanding = 0

    mutating func append(_ bytes: [UInt8]) {
        messages.append(bytes)
        outstanding += SendLane.cost(of: bytes.count)
        if bytes.count > pieceLimit {
            lane.append(large: ByteSlice(bytes), isCopy: true)
        } else {
            bytes.withUnsafeBytes { lane.append($0, pool: &pool) }
        }
    }

    mutating func appendReference(_ bytes: [UInt8]) {
        messages.append(bytes)
        outstanding += SendLane.cost(of: bytes.count)
        lane.append(large: ByteSlice(bytes), isCopy: false)
    }

    mutating func appendEncoded(_ several: [[UInt8]]) {
        let encoded = several.flatMap { Frames.frame(.message, $0) }
        messages += several
        outstanding += encoded.count
        lane.append(encoded: ByteSlice(encoded), messages: several.count)
    }

    mutating func gather(budget: Int, granted: UInt64) -> Int {
        var queue = ByteQueue()
        let before = wire.count
        let given = lane.gather(
            into: &queue, budget: budget, granted: granted, pieceLimit: pieceLimit, header: &header)
        wire += queue.bytes
        #expect(given == wire.count - before)
        #expect(lane.sentOnLink == UInt64(wire.count))
        return given
    }

    mutating func acknowledge(upTo count: Int) {
        acknowledged = count
        outstanding -= lane.acknowledge(upTo: UInt64(count), pool: &pool)
    }

    mutating func startLink() {
        let resent = lane.startLink()
        #expect(resent == UInt64(everSent - acknowledged))
        wire = []
        firstOnLink = acknowledged
    }

    /// What the messages look like on the wire, from the first one of this link on.
    var expected: [UInt8] {
        messages[firstOnLink...].flatMap { message -> [UInt8] in
            guard message.count > pieceLimit else { return Frames.frame(.message, message) }
            var bytes = Frames.frame(.begin, withUnsafeBytes(of: UInt32(message.count).bigEndian, Array.init))
            for start in stride(from: 0, to: message.count, by: pieceLimit) {
                let end = min(start + pieceLimit, message.count)
                bytes += Frames.frame(.piece, Array(message[start..<end]))
            }
            return bytes
        }
    }

    /// The number of messages that were sent completely, counting those before this link.
    var sentWhole: Int {
        var count = firstOnLink
        var begun = 0
        let decoded = Decoded(reference: wire, maximumPayload: pieceLimit)
        for frame in decoded.frames {
            switch frame.type {
            case FrameType.message.rawValue: count += 1
            case FrameType.begin.rawValue: begun = frame.bytes.reduce(0) { $0 << 8 | Int($1) }
            default:
                begun -= frame.bytes.count
                if begun == 0 { count += 1 }
            }
        }
        return count
    }

    /// Ends the test if the lane differs from its model.
    mutating func check(_ comment: @autoclosure () -> Comment) throws {
        let isAsExpected = expected.prefix(wire.count).elementsEqual(wire)
        try #require(isAsExpected, comment())
        let sent = sentWhole
        everSent = max(everSent, sent)
        try #require(lane.sent == UInt64(sent), comment())
        try #require(lane.everSent == UInt64(everSent), comment())
        try #require(lane.accepted == UInt64(messages.count), comment())
        try #require(lane.acknowledged == UInt64(acknowledged), comment())
        try #require(lane.hasUnsent == (sent < messages.count), comment())
        try #require(lane.isEmpty == (acknowledged == messages.count), comment())
        try #require(lane.heldCost == outstanding, comment())
        try #require(lane.isConsistent, comment())
    }
}

@Suite struct SendLaneTests {
    /// Worlds check `isConsistent`, so it must be false when the counts are wrong.
    @Test func anAcknowledgementOfAnUnsentMessageIsInconsistent() {
        var pool = LaneChunks(smallSize: 1_024, largeSize: 1_024, keepAtMost: 4)
        var lane = SendLane(lane: .main, chunks: LargeChunks())
        lane.append(large: ByteSlice([1, 2, 3]), isCopy: false)
        #expect(lane.isConsistent)
        _ = lane.acknowledge(upTo: 1, pool: &pool)
        #expect(!lane.isConsistent)
    }

    @Test(arguments: 0..<60)
    func aSendLaneBehavesLikeItsModel(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var model = ModelledLane()
        var granted: UInt64 = 0
        for step in 0..<150 {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0...2: model.append(Frames.random(Int.random(in: 0...100, using: &generator), &generator))
            case 3: model.append(Frames.random(Int.random(in: 101...700, using: &generator), &generator))
            case 4 where generator.oneIn(2):
                model.appendReference(Frames.random(Int.random(in: 1...100, using: &generator), &generator))
            case 4:
                let count = Int.random(in: 1...4, using: &generator)
                model.appendEncoded((0..<count).map { _ in Frames.random(20, &generator) })
            case 5...7:
                granted += UInt64.random(in: 0...400, using: &generator)
                let budget = Int.random(in: 0...300, using: &generator)
                let before = UInt64(model.wire.count)
                let given = model.gather(budget: budget, granted: granted)
                // Either bound may be exceeded by at most one frame.
                #expect(given < budget + model.pieceLimit + 4)
                #expect(before + UInt64(given) < max(before, granted) + UInt64(model.pieceLimit + 4))
            case 8:
                try model.check("seed \(seed), step \(step)")
                let sent = model.sentWhole
                model.acknowledge(
                    upTo: Int.random(
                        in: model.acknowledged...max(sent, model.acknowledged), using: &generator))
            default:
                guard generator.oneIn(3) else { continue }
                try model.check("seed \(seed), step \(step)")
                model.acknowledge(
                    upTo: Int.random(in: model.acknowledged...model.everSent, using: &generator))
                model.startLink()
                granted = 0
            }
            try model.check("seed \(seed), step \(step)")
        }
        while model.gather(budget: 1_000, granted: .max) > 0 {}
        try model.check("seed \(seed), at the end")
        let isComplete = model.wire == model.expected
        #expect(isComplete, "seed \(seed)")
        model.acknowledge(upTo: model.messages.count)
        try model.check("seed \(seed), all acknowledged")
        #expect(model.outstanding == 0)
    }

    @Test func theAnnouncementOfALargeMessageIsWrittenOnce() {
        for budget in 1...16 {
            var model = ModelledLane()
            model.append([UInt8](repeating: 5, count: 250))
            _ = model.gather(budget: budget, granted: .max)
            while model.gather(budget: budget, granted: .max) > 0 {}
            #expect(model.wire == model.expected, "budget \(budget)")
        }
    }

    @Test func aReferenceThatFitsIsOneFrameAndIsSentAgainAfterABreak() throws {
        var model = ModelledLane()
        let messages = (1...4).map { [UInt8](repeating: $0, count: 60) }
        model.appendReference(messages[0])
        model.append(messages[1])
        model.appendReference(messages[2])
        model.appendReference(messages[3])
        #expect(model.gather(budget: 129, granted: .max) == 192)
        try model.check("three of four")
        model.acknowledge(upTo: 1)
        model.startLink()
        #expect(model.gather(budget: 1_000, granted: .max) == 192)
        #expect(model.wire == messages[1...].flatMap { Frames.frame(.message, $0) })
        try model.check("the rest again")
        model.acknowledge(upTo: 4)
        try model.check("all")
        #expect(model.outstanding == 0)
    }

    @Test func largePayloadsAreReferencedInsteadOfCopied() {
        let payload = ByteSlice([UInt8](repeating: 1, count: 16 << 10))
        func refers(to count: Int, pieceLimit: Int = 16 << 10) -> Bool {
            SendLane.refersTo(payload[0..<count], pieceLimit: pieceLimit)
        }
        #expect(refers(to: 16 << 10))
        #expect(refers(to: 12 << 10))
        #expect(!refers(to: (12 << 10) - 1))
        #expect(refers(to: (8 << 10) + 1, pieceLimit: 8 << 10))
        let part = ByteSlice([UInt8](repeating: 1, count: 80 << 10))[0..<16 << 10]
        #expect(!SendLane.refersTo(part, pieceLimit: 16 << 10), "it would keep five times as much")
        #expect(SendLane.refersTo(part, pieceLimit: 8 << 10))
    }

    @Test func aPayloadOfAtLeastAQuarterOfItsChunkIsReferenced() {
        for (capacity, isReferenced) in [(64 << 10, true), ((64 << 10) + 4, false)] {
            let part = ByteSlice([UInt8](repeating: 1, count: capacity))[0..<16 << 10]
            #expect(SendLane.refersTo(part, pieceLimit: 16 << 10) == isReferenced, "of \(capacity) bytes")
        }
    }

    /// Header, size and kind have 9 bytes. If what is allowed ends there, nothing may follow.
    @Test func theAnnouncementOfALargeMessageCountsWithItsKind() {
        for kind in [nil, MessageKind(rawValue: 7)] {
            var lane = SendLane(lane: .main, chunks: LargeChunks())
            var pool = LaneChunks(smallSize: 512, largeSize: 512, keepAtMost: 4)
            var header = ControlWriter()
            var queue = ByteQueue()
            lane.append(large: ByteSlice([UInt8](repeating: 1, count: 300)), of: kind, isCopy: false)
            let announcement = 8 + kind.byteCount
            // What is left are three pieces with their headers.
            let steps: [(granted: Int, given: Int)] = [
                (announcement, announcement), (announcement, 0), (1_000, 312),
            ]
            for step in steps {
                let given = lane.gather(
                    into: &queue, budget: 1 << 20, granted: UInt64(step.granted), pieceLimit: 100,
                    header: &header)
                #expect(given == step.given)
                #expect(lane.sentOnLink == UInt64(queue.byteCount))
            }
            let begin: [UInt8] = [0, 0, 1, 44] + (kind.map { [$0.rawValue] } ?? [])
            #expect(queue.bytes.prefix(announcement).elementsEqual(Frames.frame(.begin, begin)))
            let freed = lane.acknowledge(upTo: 1, pool: &pool)
            #expect(freed == SendLane.cost(of: 300 + kind.byteCount))
        }
    }

    @Test func aReferenceWithAKindTravelsInPiecesAlsoIfItFitsIntoAFrame() {
        var lane = SendLane(lane: .bulk, chunks: LargeChunks())
        var header = ControlWriter()
        var queue = ByteQueue()
        let payload = [UInt8](repeating: 1, count: 100)
        lane.append(large: ByteSlice(payload), of: MessageKind(rawValue: 7), isCopy: false)
        _ = lane.gather(into: &queue, budget: 1 << 20, granted: .max, pieceLimit: 100, header: &header)
        let begin: [UInt8] = [0, 0, 0, 100, 7]
        #expect(queue.bytes == Frames.frame(.bulkBegin, begin) + Frames.frame(.bulkPiece, payload))
    }

    @Test func noFrameBeginsOnceTheRoomIsUsedUp() {
        for (room, frames) in [(104, 1), (105, 2), (208, 2)] {
            var model = ModelledLane()
            for number in 0..<5 as Range<UInt8> { model.append([UInt8](repeating: number, count: 100)) }
            let given = model.gather(budget: room, granted: .max)
            #expect(given == frames * 104, "\(room) bytes")
        }
    }

    @Test func messagesThatLieDirectlyBehindAReferencedOneStayThemselves() {
        var lane = SendLane(lane: .main, chunks: LargeChunks())
        var header = ControlWriter()
        var queue = ByteQueue()
        let payload = [UInt8](repeating: 1, count: 300)
        let encoded = Frames.frame(.message, [2, 3])
        let bytes = ByteSlice(payload + encoded)
        lane.append(large: bytes[0..<300], isCopy: false)
        lane.append(encoded: bytes[300..<bytes.count], messages: 1)
        _ = lane.gather(into: &queue, budget: 1 << 20, granted: .max, pieceLimit: 1_000, header: &header)
        #expect(queue.bytes == Frames.frame(.message, payload) + encoded)
    }

    @Test func nothingIsSentWithoutAGrant() {
        var model = ModelledLane()
        model.append([1])
        #expect(model.gather(budget: 1_000, granted: 0) == 0)
        #expect(model.gather(budget: 0, granted: .max) == 0)
        #expect(model.gather(budget: 1_000, granted: 1) == 5)
        model.append([2])
        #expect(model.gather(budget: 1_000, granted: 5) == 0)
        #expect(model.gather(budget: -1, granted: .max) == 0)
        #expect(model.gather(budget: .max, granted: .max) == 5)
    }

    @Test func chunksAreReusedInSteadyState() {
        var lane = SendLane(lane: .main, chunks: LargeChunks())
        var pool = LaneChunks(smallSize: 1_024, largeSize: 4_096, keepAtMost: 8)
        var header = ControlWriter()
        var chunks: Set<ObjectIdentifier> = []
        var count: UInt64 = 0
        let message = [UInt8](repeating: 1, count: 60)
        for _ in 0..<2_000 {
            for _ in 0..<8 { message.withUnsafeBytes { lane.append($0, pool: &pool) } }
            count += 8
            var queue = ByteQueue()
            _ = lane.gather(
                into: &queue, budget: 1 << 20, granted: .max, pieceLimit: 16_384, header: &header)
            if let slice = queue.first { chunks.insert(ObjectIdentifier(slice.chunk)) }
            queue.removeAll()
            #expect(lane.acknowledge(upTo: count - 3, pool: &pool) > 0)
        }
        #expect(chunks.count <= 3, "each turn took a new chunk: \(chunks.count)")
    }

    @Test func theMemoryOfLargeCopiesIsReusedInSteadyState() {
        let large = LargeChunks()
        var lane = SendLane(lane: .main, chunks: large)
        var pool = LaneChunks(smallSize: 4_096, largeSize: 4_096, keepAtMost: 8)
        var header = ControlWriter()
        var chunks: Set<ObjectIdentifier> = []
        let message = [UInt8](repeating: 1, count: 100_000)
        for count in 1...50 as ClosedRange<UInt64> {
            let copy = message.withUnsafeBytes { large.slice(of: $0) }
            chunks.insert(ObjectIdentifier(copy.chunk))
            lane.append(large: copy, isCopy: true)
            var queue = ByteQueue()
            _ = lane.gather(
                into: &queue, budget: 1 << 20, granted: .max, pieceLimit: 16_384, header: &header)
            queue.removeAll()
            _ = lane.acknowledge(upTo: count - 1, pool: &pool)
        }
        #expect(chunks.count <= 3, "\(chunks.count) chunks for two messages under way")
    }

    @Test func payloadsOwnedByTheProgramAreNotRecycled() {
        let large = LargeChunks()
        var lane = SendLane(lane: .main, chunks: large)
        var pool = LaneChunks(smallSize: 4_096, largeSize: 4_096, keepAtMost: 8)
        var header = ControlWriter()
        lane.append(large: ByteSlice([UInt8](repeating: 1, count: 100_000)), isCopy: false)
        var queue = ByteQueue()
        _ = lane.gather(into: &queue, budget: 1 << 20, granted: .max, pieceLimit: 16_384, header: &header)
        _ = lane.acknowledge(upTo: 1, pool: &pool)
        #expect(large.isEmpty)
    }

    @Test func aChunkAroundALargeMessageIsReused() {
        var lane = SendLane(lane: .main, chunks: LargeChunks())
        var pool = LaneChunks(smallSize: 512, largeSize: 1_024, keepAtMost: 4)
        var header = ControlWriter()
        func append() {
            [UInt8](repeating: 1, count: 200).withUnsafeBytes { lane.append($0, pool: &pool) }
        }
        append()
        lane.append(large: ByteSlice([UInt8](repeating: 2, count: 20_000)), isCopy: true)
        append()
        append()
        var queue = ByteQueue()
        _ = lane.gather(into: &queue, budget: 1 << 20, granted: .max, pieceLimit: 16_384, header: &header)
        let used = Set(
            (0..<queue.sliceCount).map { queue[$0].chunk }.filter { [512, 1_024].contains($0.capacity) }
                .map { ObjectIdentifier($0) })
        #expect(used.count == 2)
        queue.removeAll()
        for count in 1...4 { _ = lane.acknowledge(upTo: UInt64(count), pool: &pool) }
        let (first, second) = (pool.take(withRoom: 1, isFirst: true), pool.take(withRoom: 1, isFirst: false))
        #expect(used == [ObjectIdentifier(first), ObjectIdentifier(second)])
    }

    @Test func anEmptyLaneBeginsWithASmallChunkAndGoesOnInLargeOnes() {
        var lane = SendLane(lane: .main, chunks: LargeChunks())
        var pool = LaneChunks(smallSize: 256, largeSize: 4_096, keepAtMost: 4)
        var header = ControlWriter()
        /// Appends messages, acknowledges them, and returns the sizes of the chunks in which they were written.
        func capacities(ofMessages sizes: [Int]) -> [Int] {
            for size in sizes {
                [UInt8](repeating: 1, count: size).withUnsafeBytes { lane.append($0, pool: &pool) }
            }
            var queue = ByteQueue()
            _ = lane.gather(into: &queue, budget: 1 << 20, granted: .max, pieceLimit: 16_384, header: &header)
            _ = lane.acknowledge(upTo: lane.accepted, pool: &pool)
            return (0..<queue.sliceCount).map { queue[$0].chunk.capacity }
        }
        #expect(capacities(ofMessages: [100]) == [256])
        #expect(capacities(ofMessages: [100, 100, 100, 100]) == [256, 4_096])
        #expect(capacities(ofMessages: [300]) == [4_096], "it does not fit into a small one")
        #expect(capacities(ofMessages: [100]) == [256], "the lane was empty again")
    }
}
