import Glibc

/// The messages of simulated users. Their bytes identify them, so that a receiver can tell whether they are the right
/// ones, complete and in place.
///
/// A message of 16 bytes or more begins with its stream, row, number and length. All bytes after that, and all bytes of
/// shorter messages, come from a fixed table, at an offset that follows from stream, row and number.
package enum NumberedMessage {
    /// The length from which a message has a header.
    package static let headerLength = 16
    /// The length of the longest messages that users of a world send.
    package static let longest = 200 << 10
    /// The greatest length that is possible.
    static let limit = 1 << 20

    private static let table: [UInt8] = {
        var state: UInt64 = 0x1234_5678_9abc_def1
        return (0..<(limit + spread)).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state >> 32)
        }
    }()
    private static let spread = 61_603

    /// The content of a header.
    struct Header: Equatable {
        var stream: Int
        var row: MessageLedger.Row
        var number: Int
        var length: Int
    }

    private static func offset(_ stream: Int, _ row: MessageLedger.Row, _ number: Int) -> Int {
        (stream &* 7_919 &+ row.rawValue &* 104_729 &+ number &* 31) % spread
    }

    static func bytes(stream: Int, row: MessageLedger.Row, number: Int, length: Int) -> [UInt8] {
        let offset = offset(stream, row, number)
        var bytes = [UInt8](table[offset..<offset + length])
        guard length >= headerLength else { return bytes }
        bytes.withUnsafeMutableBytes {
            $0.storeBytes(of: UInt32(stream), as: UInt32.self)
            $0.storeBytes(of: UInt32(row.rawValue), toByteOffset: 4, as: UInt32.self)
            $0.storeBytes(of: UInt32(number), toByteOffset: 8, as: UInt32.self)
            $0.storeBytes(of: UInt32(length), toByteOffset: 12, as: UInt32.self)
        }
        return bytes
    }

    /// Returns bytes of a byte stream, from the place `start` on. They repeat themselves after `limit` bytes.
    package static func bytes(ofStream key: Int, from start: Int, count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count {
            let place = (start + bytes.count) % limit
            let run = min(count - bytes.count, limit - place)
            let first = (key &* 7_919 % spread) + place
            bytes += table[first..<first + run]
        }
        return bytes
    }

    /// Returns whether these are the bytes of a byte stream from the place `start` on.
    package static func isIntact(_ bytes: UnsafeRawBufferPointer, ofStream key: Int, from start: Int) -> Bool
    {
        Self.bytes(ofStream: key, from: start, count: bytes.count).withUnsafeBytes { expected in
            guard let base = bytes.baseAddress, let right = expected.baseAddress else { return true }
            return memcmp(base, right, bytes.count) == 0
        }
    }

    /// Returns the header of `bytes`; nil if they are too short to have one, or if its row is invalid.
    static func header(of bytes: UnsafeRawBufferPointer) -> Header? {
        guard bytes.count >= headerLength else { return nil }
        guard
            let row = MessageLedger.Row(
                rawValue: Int(bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
        else { return nil }
        return Header(
            stream: Int(bytes.loadUnaligned(as: UInt32.self)), row: row,
            number: Int(bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self)),
            length: Int(bytes.loadUnaligned(fromByteOffset: 12, as: UInt32.self)))
    }

    /// Returns whether the bytes after the header are those that were sent.
    static func isIntact(
        _ bytes: UnsafeRawBufferPointer, stream: Int, row: MessageLedger.Row, number: Int
    ) -> Bool {
        let start = bytes.count >= headerLength ? headerLength : 0
        guard bytes.count > start, let base = bytes.baseAddress else { return true }
        let offset = offset(stream, row, number)
        return table.withUnsafeBytes { source in
            memcmp(base + start, source.baseAddress.unsafelyUnwrapped + offset + start, bytes.count - start)
                == 0
        }
    }
}
