/// The six digits that two people compare when they pair their devices.
public struct PairingCode: Hashable, Sendable, CustomStringConvertible {
    /// The digits as a number below 1,000,000.
    public let number: Int

    /// All numbers are below this bound.
    static let upperBound = 1_000_000

    /// Creates the code for a hash: its first eight bytes as a number in network order, modulo 1,000,000.
    init(hash: [UInt8]) {
        precondition(hash.count >= 8)
        let word = hash.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        number = Int(word % UInt64(Self.upperBound))
    }

    /// All six digits, such as `040215`.
    public var digits: String {
        let text = String(number)
        return String(repeating: "0", count: 6 - text.count) + text
    }

    /// The digits in two groups, which are easy to read out, such as `040 215`.
    public var description: String { "\(digits.prefix(3)) \(digits.suffix(3))" }
}
