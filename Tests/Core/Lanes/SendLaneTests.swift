import Testing

@testable import NighCore

/// A send lane with what it needs to write, and what it has written.
private struct LaneBench {
    var lane: SendLane
    var pool: LaneChunks
    var header = ControlWriter()
    var queue = ByteQueue()
    let pieceLimit: Int

    init(
        _ name: Lane = .main, chunks: LargeChunks = LargeChunks(), small: Int = 512, large: Int = 4_096,
        pieceLimit: Int = 16_384
    ) {
        lane = SendLane(lane: name, chunks: chunks)
        pool = LaneChunks(smallSize: small, largeSize: large, keepAtMost: 8)
        self.pieceLimit = pieceLimit
    }

    mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { lane.append($0, pool: &pool) } }
    mutating func append(_ count: Int) { append([UInt8](repeating: 1, count: count)) }
    mutating func append(large count: Int, of kind: MessageKind? = nil, isCopy: Bool = false) {
        lane.append(large: ByteSlice([UInt8](repeating: 1, count: count)), of: kind, isCopy: isCopy)
    }

    @discardableResult
    mutating func gather(budget: Int = 1 << 20, granted: UInt64 = .max) -> Int {
        lane.gather(into: &queue, budget: budget, granted: granted, pieceLimit: pieceLimit, header: &header)
    }

    @discardableResult
    mutating func acknowledge(upTo count: UInt64) -> Int { lane.acknowledge(upTo: count, pool: &pool) }

    /// The chunks in which what was gathered lies.
    var chunks: [Chunk] { (0..<queue.sliceCount).map { queue[$0].chunk } }
}

/// A send lane beside a simple model of it, which keeps every message and every count.
private struct ModelledLane {
    private var bench = LaneBench(large: 512, pieceLimit: 100)
    var lane: SendLane { bench.lane }
    var pieceLimit: Int { bench.pieceLimit }

    /// All messages that were ever accepted.
    var messages: [[UInt8]] = []
    /// The bytes that were written on the present link.
    var wire: [UInt8] = []
    var firstOnLink = 0
    var acknowledged = 0
    var everSent = 0
    var outstanding = 0

    mutating func append(_ bytes: [UInt8]) {
        guard bytes.count <= pieceLimit else { return append(large: bytes, isCopy: true) }
        messages.append(bytes)
        outstanding += SendLane.cost(of: bytes.count)
        bench.append(bytes)
    }

    mutating func append(large bytes: [UInt8], isCopy: Bool) {
        messages.append(bytes)
        outstanding += SendLane.cost(of: bytes.count)
        bench.lane.append(large: ByteSlice(bytes), isCopy: isCopy)
    }

    mutating func appendEncoded(_ several: [[UInt8]]) {
        let encoded = several.flatMap { Frames.frame(.message, $0) }
        messages += several
        outstanding += encoded.count
        bench.lane.append(encoded: ByteSlice(encoded), messages: several.count)
    }

    mutating func gather(budget: Int, granted: UInt64) -> Int {
        bench.queue.removeAll()
        let given = bench.gather(budget: budget, granted: granted)
        wire += bench.queue.bytes
        #expect(given == bench.queue.byteCount && lane.sentOnLink == UInt64(wire.count))
        return given
    }

    mutating func acknowledge(upTo count: Int) {
        acknowledged = count
        outstanding -= bench.acknowledge(upTo: UInt64(count))
    }

    mutating func startLink() {
        let resent = bench.lane.startLink()
        #expect(resent == UInt64(everSent - acknowledged))
        wire = []
        firstOnLink = acknowledged
    }

    /// The messages as bytes on the wire, from the first one of this link on.
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
        let counts = [lane.sent, lane.everSent, lane.accepted, lane.acknowledged]
        try #require(counts == [sent, everSent, messages.count, acknowledged].map { UInt64($0) }, comment())
        try #require(lane.hasUnsent == (sent < messages.count), comment())
        try #require(lane.isEmpty == (acknowledged == messages.count), comment())
        try #require(lane.heldCost == outstanding, comment())
        try #require(lane.isConsistent, comment())
    }
}

@Suite struct SendLaneTests {
    /// Worlds check `isConsistent`, so it must be false when the counts are wrong.
    @Test func `An acknowledgement of an unsent message is inconsistent`() {
        var bench = LaneBench()
        bench.append(large: 3)
        #expect(bench.lane.isConsistent)
        bench.acknowledge(upTo: 1)
        #expect(!bench.lane.isConsistent)
    }

    @Test(arguments: 0..<60)
    func `A send lane behaves like its model`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var model = ModelledLane()
        var granted: UInt64 = 0
        for step in 0..<150 {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0...2: model.append(Frames.random(Int.random(in: 0...100, using: &generator), &generator))
            case 3: model.append(Frames.random(Int.random(in: 101...700, using: &generator), &generator))
            case 4 where generator.oneIn(2):
                model.append(
                    large: Frames.random(Int.random(in: 1...100, using: &generator), &generator),
                    isCopy: false)
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

    /// A reference keeps its whole chunk in memory, so the payload has to be at least a quarter of it.
    @Test(arguments: [
        (16_384, 16_384, 16_384, true), (12_288, 16_384, 16_384, true), (12_287, 16_384, 16_384, false),
        (8_193, 16_384, 8_192, true), (16_384, 81_920, 16_384, false), (16_384, 81_920, 8_192, true),
        (16_384, 65_536, 16_384, true), (16_384, 65_540, 16_384, false),
    ])
    func `Large payloads are referenced instead of copied`(
        count: Int, chunkSize: Int, pieceLimit: Int, isReferenced: Bool
    ) {
        let payload = ByteSlice([UInt8](repeating: 1, count: chunkSize))[0..<count]
        #expect(SendLane.refersTo(payload, pieceLimit: pieceLimit) == isReferenced)
    }

    /// Header, size and kind have 9 bytes. If what is allowed ends there, nothing may follow.
    @Test func `The announcement of a large message counts with its kind`() {
        for kind in [nil, MessageKind(rawValue: 7)] {
            var bench = LaneBench(pieceLimit: 100)
            bench.append(large: 300, of: kind)
            let announcement = 8 + kind.byteCount
            // Three pieces with their headers are left.
            for (granted, given) in [(announcement, announcement), (announcement, 0), (1_000, 312)] {
                #expect(bench.gather(granted: UInt64(granted)) == given)
                #expect(bench.lane.sentOnLink == UInt64(bench.queue.byteCount))
            }
            let begin: [UInt8] = [0, 0, 1, 44] + (kind.map { [$0.rawValue] } ?? [])
            #expect(bench.queue.bytes.prefix(announcement).elementsEqual(Frames.frame(.begin, begin)))
            #expect(bench.acknowledge(upTo: 1) == SendLane.cost(of: 300 + kind.byteCount))
        }
    }

    @Test func `A reference with a kind travels in pieces also if it fits into a frame`() {
        var bench = LaneBench(.bulk, pieceLimit: 100)
        bench.append(large: 100, of: MessageKind(rawValue: 7))
        bench.gather()
        let piece = Frames.frame(.bulkPiece, [UInt8](repeating: 1, count: 100))
        #expect(bench.queue.bytes == Frames.frame(.bulkBegin, [0, 0, 0, 100, 7]) + piece)
    }

    @Test func `No frame begins once the room is used up`() {
        for (room, frames) in [(104, 1), (105, 2), (208, 2)] {
            var bench = LaneBench()
            for _ in 0..<5 { bench.append(100) }
            #expect(bench.gather(budget: room) == frames * 104, "\(room) bytes")
        }
    }

    @Test func `Messages that lie directly behind a referenced one stay themselves`() {
        var bench = LaneBench(pieceLimit: 1_000)
        let payload = [UInt8](repeating: 1, count: 300)
        let encoded = Frames.frame(.message, [2, 3])
        let bytes = ByteSlice(payload + encoded)
        bench.lane.append(large: bytes[0..<300], isCopy: false)
        bench.lane.append(encoded: bytes[300..<bytes.count], messages: 1)
        bench.gather()
        #expect(bench.queue.bytes == Frames.frame(.message, payload) + encoded)
    }

    @Test func `Nothing is sent without a grant`() {
        var bench = LaneBench()
        bench.append(1)
        for (budget, granted, given) in [(1_000, 0, 0), (0, .max, 0), (1_000, 1, 5)] as [(Int, UInt64, Int)] {
            #expect(bench.gather(budget: budget, granted: granted) == given)
        }
        bench.append(1)
        for (budget, granted, given) in [(1_000, 5, 0), (-1, .max, 0), (.max, .max, 5)]
            as [(Int, UInt64, Int)]
        {
            #expect(bench.gather(budget: budget, granted: granted) == given)
        }
    }

    // MARK: Memory

    @Test func `Chunks are reused in steady state`() {
        var bench = LaneBench(small: 1_024)
        var chunks: Set<ObjectIdentifier> = []
        for count in stride(from: 8, through: 16_000 as UInt64, by: 8) {
            for _ in 0..<8 { bench.append(60) }
            bench.gather()
            if let slice = bench.queue.first { chunks.insert(ObjectIdentifier(slice.chunk)) }
            bench.queue.removeAll()
            #expect(bench.acknowledge(upTo: count - 3) > 0)
        }
        #expect(chunks.count <= 3, "each turn took a new chunk: \(chunks.count)")
    }

    @Test func `The memory of large copies is reused in steady state`() {
        let large = LargeChunks()
        var bench = LaneBench(chunks: large)
        var chunks: Set<ObjectIdentifier> = []
        let message = [UInt8](repeating: 1, count: 100_000)
        for count in 1...50 as ClosedRange<UInt64> {
            let copy = message.withUnsafeBytes { large.slice(of: $0) }
            chunks.insert(ObjectIdentifier(copy.chunk))
            bench.lane.append(large: copy, isCopy: true)
            bench.gather()
            bench.queue.removeAll()
            bench.acknowledge(upTo: count - 1)
        }
        #expect(chunks.count <= 3, "\(chunks.count) chunks for two messages under way")
    }

    @Test func `Payloads owned by the program are not recycled`() {
        let large = LargeChunks()
        var bench = LaneBench(chunks: large)
        bench.append(large: 100_000)
        bench.gather()
        bench.acknowledge(upTo: 1)
        #expect(large.isEmpty)
    }

    @Test func `A chunk around a large message is reused`() {
        var bench = LaneBench(large: 1_024)
        bench.append(200)
        bench.append(large: 20_000, isCopy: true)
        bench.append(200)
        bench.append(200)
        bench.gather()
        let used = Set(bench.chunks.filter { [512, 1_024].contains($0.capacity) }.map(ObjectIdentifier.init))
        #expect(used.count == 2)
        bench.queue.removeAll()
        for count in 1...4 as ClosedRange<UInt64> { bench.acknowledge(upTo: count) }
        let again = [true, false].map { bench.pool.take(withRoom: 1, isFirst: $0) }
        #expect(used == Set(again.map(ObjectIdentifier.init)))
    }

    @Test func `An empty lane begins with a small chunk and goes on in large ones`() {
        var bench = LaneBench(small: 256)
        // A message of 300 bytes does not fit into a small chunk. Each time, the lane is empty again.
        for (sizes, capacities) in [
            ([100], [256]), ([100, 100, 100, 100], [256, 4_096]), ([300], [4_096]), ([100], [256]),
        ] {
            for size in sizes { bench.append(size) }
            bench.queue.removeAll()
            bench.gather()
            bench.acknowledge(upTo: bench.lane.accepted)
            #expect(bench.chunks.map(\.capacity) == capacities)
        }
    }
}
