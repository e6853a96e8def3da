/// Remembers which of the newest 1,024 packets have come, so that none counts twice.
package struct ReplayWindow {
    package static let size: UInt64 = 1_024

    /// One more than the highest number that has come; 0 if none has.
    private(set) var end: UInt64 = 0
    private var seen = [UInt64](repeating: 0, count: Int(size / 64))

    package init() {}

    /// Whether a packet may count: it is new, and not older than the window. A forged packet must not be noted, so this
    /// only looks.
    package func admits(_ number: UInt64) -> Bool {
        guard number < end else { return number < UInt64.max }
        return end - number <= Self.size && !hasSeen(number)
    }

    /// Whether a packet is not admitted because it came before, and not because it is too old.
    func isDuplicate(_ number: UInt64) -> Bool {
        number < end && end - number <= Self.size && hasSeen(number)
    }

    /// Notes a packet that is admitted and genuine.
    package mutating func note(_ number: UInt64) {
        if number >= end {
            // The oldest numbers leave the window and make room for new ones.
            if number - end >= Self.size {
                for index in seen.indices { seen[index] = 0 }
            } else {
                for skipped in end...number { clear(skipped) }
            }
            end = number + 1
        }
        seen[Int(number / 64 % (Self.size / 64))] |= 1 << (number % 64)
    }

    private func hasSeen(_ number: UInt64) -> Bool {
        seen[Int(number / 64 % (Self.size / 64))] & 1 << (number % 64) != 0
    }

    private mutating func clear(_ number: UInt64) {
        seen[Int(number / 64 % (Self.size / 64))] &= ~(1 << (number % 64))
    }
}
