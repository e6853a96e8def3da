import NighCore
import NighTestKit
import Testing

@testable import NighSerial

/// Frames in a stream of bytes.
@Suite struct SerialFrameTests {
    private static let frames: [SerialFrame] = [
        .state(.init(id: 1)),
        .state(.init(id: .max, pipe: 7, finished: 9, isLeaving: true, advertisement: [0, 1, 0, 255])),
        .state(
            .init(
                id: 2, advertisement: [UInt8](repeating: 7, count: Advertisement.maximumByteCount))),
        .open(pipe: 3, to: 4), .refuse(pipe: .max), .packet(pipe: 1, []),
        .packet(pipe: 1, [UInt8](repeating: 0, count: 1_024)),
        .packet(pipe: 1, (0..<1_024).map { UInt8(truncatingIfNeeded: $0 | 1) }),
    ]

    private func read(_ bytes: [UInt8], cutInto size: Int = .max) -> [SerialFrame] {
        var reader = SerialFrameReader()
        var frames: [SerialFrame] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(size))
            frames += piece.withUnsafeBytes { reader.read($0) }
            rest = rest.dropFirst(piece.count)
        }
        return frames
    }

    @Test(arguments: [1, 2, 7, 10_000]) func `are decoded as they were encoded, however the line cuts them`(
        size: Int
    ) {
        #expect(read(Self.frames.flatMap(\.bytes), cutInto: size) == Self.frames)
    }

    @Test func `have the format that serial.md shows`() {
        let open = SerialFrame.open(pipe: 0x0102, to: 0x03)
        let checked: [UInt8] = [2, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3]
        let checksum = checked.withUnsafeBytes { CRC32C.checksum(of: $0) }
        let stuffed: [UInt8] = [2, 2, 1, 3, 1, 2, 1, 1, 1, 1, 1, 1]
        let end = (0..<4).reversed().map { UInt8(truncatingIfNeeded: checksum >> (8 * UInt32($0))) }
        #expect(open.bytes == [0] + stuffed + [6, 3] + end + [0])
        #expect(Array("123456789".utf8).withUnsafeBytes { CRC32C.checksum(of: $0) } == 0xE306_9283)
    }

    @Test func `that were changed or cut short are dropped, and the next one is read`() {
        let last = SerialFrame.refuse(pipe: 77)
        for frame in Self.frames {
            let bytes = frame.bytes
            for index in stride(from: 1, to: bytes.count - 1, by: max(1, bytes.count / 40)) {
                var changed = bytes
                changed[index] ^= 1
                #expect(read(changed + last.bytes) == [last])
                #expect(read(Array(bytes[..<index]) + last.bytes) == [last])
            }
        }
    }

    @Test func `of a later version are dropped`() {
        var body: [UInt8] = [99, 1, 2, 3]
        let checksum = body.withUnsafeBytes { CRC32C.checksum(of: $0) }
        withUnsafeBytes(of: checksum.bigEndian) { body += $0 }
        #expect(read([0] + ByteStuffing.stuffed(body) + [0] + Self.frames[0].bytes) == [Self.frames[0]])
    }

    @Test func `come from no amount of random bytes, which take no memory, and the next one is read`() {
        var random = SeededGenerator(seed: 1)
        let noise = (0..<1_000_000).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        let long = [UInt8](repeating: 1, count: 1_000_000)
        #expect(read(noise + [0] + long + Self.frames[0].bytes) == [Self.frames[0]])
    }

    @Test(arguments: [1, 2, 3] as [UInt64]) func `of any content change nothing but the pipe`(seed: UInt64)
        throws
    {
        let loop = VirtualEventLoop()
        var random = SeededGenerator(seed: seed)
        let line = SimulatedLine(on: loop)
        line.keepsFrames = true
        let sessions = [line.session("Puma", at: 0), line.session("Lynx", at: 1)]
        try loop.run(for: .seconds(2))
        for _ in 0..<3_000 {
            if random.oneIn(100) { sessions[0].session.invite(sessions[1].id) { _ in } }
            line.inject(
                Self.randomFrame(&random, like: line.lastFrames), into: Int.random(in: 0...1, using: &random))
            try loop.run(for: .milliseconds(20))
        }
        for probe in sessions { probe.session.close {} }
        try loop.run(for: .seconds(20))
        #expect(loop.pending.timers == 0)
    }

    /// A frame of random fields, or one that was on the line, with some fields changed.
    private static func randomFrame(
        _ random: inout SeededGenerator, like frames: [SerialFrame]
    ) -> SerialFrame {
        func number<Number: FixedWidthInteger & UnsignedInteger>(_ last: Number) -> Number {
            random.oneIn(3) ? Number.random(in: .min ... .max, using: &random) : last
        }
        func bytes(_ last: [UInt8]) -> [UInt8] {
            var bytes = last
            for _ in 0..<Int.random(in: 0...3, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(
                    in: .min ... .max, using: &random)
            }
            return random.oneIn(4) ? Array(bytes.prefix(Int.random(in: 0...40, using: &random))) : bytes
        }
        switch frames.randomElement(using: &random) ?? .refuse(pipe: 0) {
        case .state(var state):
            state.id = number(state.id)
            state.pipe = number(state.pipe)
            state.finished = number(state.finished)
            state.isLeaving = random.oneIn(20)
            state.advertisement = state.advertisement.map(bytes)
            return .state(state)
        case .open(let pipe, let id): return .open(pipe: number(pipe), to: number(id))
        case .refuse(let pipe): return .refuse(pipe: number(pipe))
        case .packet(let pipe, let packet): return .packet(pipe: number(pipe), bytes(packet))
        }
    }
}
