/// Consistent overhead byte stuffing (COBS): bytes without a zero, so that a zero can mark where they end.
///
/// They are blocks. Each begins with its length, 1 to 255, and stands for the bytes that follow and a zero. No zero
/// follows a block of the full length, nor the last one.
enum ByteStuffing {
    private static let longestBlock: UInt8 = 255

    /// The length of `count` bytes once they are stuffed, at most.
    static func limit(for count: Int) -> Int { count + count / 254 + 1 }

    static func stuffed(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = [1]
        result.reserveCapacity(limit(for: bytes.count))
        var block = 0
        for byte in bytes {
            if byte != 0 {
                result.append(byte)
                result[block] += 1
            }
            guard byte == 0 || result[block] == longestBlock else { continue }
            block = result.count
            result.append(1)
        }
        return result
    }

    /// Restores the bytes. Returns nil if the blocks do not fit.
    static func unstuffed(_ stuffed: [UInt8]) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(stuffed.count)
        var block = 0
        while block < stuffed.count {
            let (length, next) = (stuffed[block], block + Int(stuffed[block]))
            guard length > 0, next <= stuffed.count else { return nil }
            result += stuffed[(block + 1)..<next]
            if length < longestBlock, next < stuffed.count { result.append(0) }
            block = next
        }
        return result
    }
}
