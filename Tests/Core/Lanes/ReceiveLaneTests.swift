import Testing

@testable import NighCore

@Suite struct ReceiveLaneTests {
    private func append(_ bytes: [UInt8], to lane: inout ReceiveLane) throws(WireError) -> [UInt8]? {
        try ByteSlice(bytes).withUnsafeBytes { raw throws(WireError) in try lane.append(raw)?.bytes }
    }

    @Test func `Large messages are assembled from any pieces`() throws {
        var generator = SeededGenerator(seed: 1)
        var lane = ReceiveLane(chunks: LargeChunks())
        for size in [1, 2, 100, 256 << 10, (256 << 10) + 1, 900_000] {
            let message = [UInt8](repeating: UInt8(size & 0xFF), count: size)
            let before = lane.received
            try lane.begin(size: size, limit: 1 << 20)
            var position = 0
            while position < size {
                let end = min(size, position + Int.random(in: 1...max(1, size / 7), using: &generator))
                let whole = try append(Array(message[position..<end]), to: &lane)
                position = end
                #expect((whole != nil) == (position == size))
                if let whole { #expect(whole == message) }
            }
            #expect(lane.received == before + 1)
        }
    }

    @Test func `A large message has 1 byte to the limit, of which its kind is a part`() throws {
        let kind = MessageKind(rawValue: 7)
        for (size, kind) in [(1, nil), (100, nil), (99, kind)] as [(Int, MessageKind?)] {
            var lane = ReceiveLane(chunks: LargeChunks())
            try lane.begin(size: size, kind, limit: 100)
            #expect(lane.kind == kind)
        }
        for (size, kind) in [
            (0, nil), (-1, nil), (101, nil), (Int(UInt32.max), nil), (100, kind),
        ] as [(Int, MessageKind?)] {
            var lane = ReceiveLane(chunks: LargeChunks())
            let count = size + kind.byteCount
            #expect(
                throws: WireError.malformed("a message of \(count) bytes, where 1 to 100 are allowed")
            ) {
                try lane.begin(size: size, kind, limit: 100)
            }
        }
    }

    /// A sender may announce much and send little. A message that is broken off gives back what it had.
    @Test func `The memory of a large message grows with the bytes that have come`() throws {
        let announced = 6_291_456
        let cases: [(size: Int, come: Int, held: Int)] = [
            (1_000, 1, 1_000), (announced, 1, 262_144), (announced, 262_144, 262_144),
            (announced, 262_145, 1_048_576), (announced, 2_097_152, 2_097_152), (400_000, 262_145, 400_000),
        ]
        for (size, come, held) in cases {
            let chunks = LargeChunks()
            var lane = ReceiveLane(chunks: chunks)
            try lane.begin(size: size, limit: 1 << 24)
            for count in [1, come - 1] {
                #expect(try append([UInt8](repeating: 3, count: count), to: &lane) == nil)
            }
            lane.startLink()
            #expect(chunks.extent == (1, held), "\(come) of \(size) bytes")
        }
    }

    @Test func `Pieces come after their message was announced, fill it, and nothing comes between`() throws {
        var lane = ReceiveLane(chunks: LargeChunks())
        #expect(throws: WireError.malformed("a piece without a message")) { try append([1], to: &lane) }
        try lane.begin(size: 3, limit: 100)
        let inside = WireError.malformed("a message inside another of its lane")
        #expect(throws: inside) { try lane.countMessage() }
        #expect(throws: inside) { try lane.begin(size: 10, limit: 100) }
        #expect(try append([1, 2], to: &lane) == nil)
        #expect(throws: WireError.malformed("pieces that are longer than their message")) {
            try append([3, 4], to: &lane)
        }
        #expect(lane.received == 0)
    }

    @Test func `Only one frame may exceed the grant`() {
        var lane = ReceiveLane(chunks: LargeChunks())
        #expect(lane.grant(window: 100, unread: 0) == 100)
        let isAllowed = [99, 1 + 50 + 8, 1].map { lane.count($0, frameLimit: 50) }
        #expect(isAllowed == [true, true, false])
    }

    @Test func `Grants never shrink and follow what is read`() {
        var lane = ReceiveLane(chunks: LargeChunks())
        #expect(lane.grant(window: 100, unread: 0) == 100)
        _ = lane.count(100, frameLimit: 50)
        #expect(lane.grant(window: 100, unread: 100) == 100)
        #expect(lane.grant(window: 100, unread: 1_000_000) == 100)
        #expect(lane.grantGain(window: 100, unread: 60) == 40)
        #expect(lane.granted == 100)
        #expect(lane.grant(window: 100, unread: 60) == 140)
        #expect(lane.grantGain(window: 100, unread: 90) == 0)
        #expect(lane.grant(window: 100, unread: 90) == 140)
    }

    @Test func `A new link discards the unfinished message`() throws {
        var lane = ReceiveLane(chunks: LargeChunks())
        _ = lane.grant(window: 100, unread: 0)
        _ = lane.count(30, frameLimit: 50)
        try lane.countMessage()
        try lane.begin(size: 10, limit: 100)
        lane.startLink()
        #expect(lane.bytesOnLink == 0)
        #expect(lane.granted == 0)
        #expect(lane.received == 1)
        try lane.begin(size: 2, limit: 100)
        #expect(try append([8, 9], to: &lane) == [8, 9])
        #expect(lane.received == 2)
    }

    @Test func `The memory of read messages is reused`() throws {
        let chunks = LargeChunks()
        var lane = ReceiveLane(chunks: chunks)
        var used: Set<ObjectIdentifier> = []
        var unread: [ByteSlice] = []
        let message = [UInt8](repeating: 6, count: 400_000)
        for _ in 0..<20 {
            try lane.begin(size: message.count, limit: 1 << 20)
            let whole = try message.withUnsafeBytes { raw throws(WireError) in try lane.append(raw) }
            let slice = try #require(whole)
            #expect(slice.bytes == message)
            used.insert(ObjectIdentifier(slice.chunk))
            unread.append(slice)
            if unread.count > 1 { unread.removeFirst() }
        }
        #expect(used.count <= 2, "\(used.count) chunks where one message is unread")
    }

    @Test func `The memory of a message that was broken off is reused`() throws {
        let chunks = LargeChunks()
        var lane = ReceiveLane(chunks: chunks)
        try lane.begin(size: 200_000, limit: 1 << 20)
        #expect(try append([1, 2, 3], to: &lane) == nil)
        lane.startLink()
        #expect(chunks.extent == (1, 200_000))
        try lane.begin(size: 200_000, limit: 1 << 20)
        #expect(chunks.extent == (0, 0))
        let message = [UInt8](repeating: 4, count: 200_000)
        #expect(try append(message, to: &lane) == message)
    }
}
