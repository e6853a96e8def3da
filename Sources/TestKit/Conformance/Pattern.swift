import Glibc
import NighCore

/// The streams that the suite sends: a tag byte, then bytes that follow from the tag and the position.
///
/// The bytes come from one block that repeats. No buffer size divides its period. So any amount can be sent by
/// reference and compared fast, and the stream is never built.
enum Pattern {
    private static let period = 65_521

    /// The block, twice in a row.
    private static let block: ByteSlice = {
        var random = SeededGenerator(seed: 0x5EED)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(2 * period)
        for _ in 0..<period { bytes.append(UInt8(truncatingIfNeeded: random.next())) }
        bytes.append(contentsOf: bytes)
        return ByteSlice(bytes)
    }()

    /// Returns at most `count` bytes of the stream `tag`, starting at `position`.
    static func slice(tag: UInt8, at position: Int, count: Int) -> ByteSlice {
        guard position > 0 else { return ByteSlice([tag]) }
        let start = start(tag, position)
        return block[start..<start + min(count, period)]
    }

    /// Compares `bytes`, which start at `position` of the stream `tag`. Returns the offset at which the first stretch
    /// with a wrong byte begins; nil if all are right.
    static func firstMismatch(_ bytes: UnsafeRawBufferPointer, tag: UInt8, at position: Int) -> Int? {
        var offset = position == 0 ? 1 : 0
        while offset < bytes.count {
            let start = start(tag, position + offset)
            let length = min(bytes.count - offset, period)
            let isEqual = block.withUnsafeBytes { right in
                memcmp(bytes.baseAddress! + offset, right.baseAddress! + start, length) == 0
            }
            guard isEqual else { return offset }
            offset += length
        }
        return nil
    }

    private static func start(_ tag: UInt8, _ position: Int) -> Int {
        (position - 1 + Int(tag) * 257) % period
    }
}
