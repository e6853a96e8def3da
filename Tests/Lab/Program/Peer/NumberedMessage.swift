/// A message that carries its number. All bytes of its body follow from the number, so that the
/// receiver can check that it is whole.
struct NumberedMessage {
    /// The run of the sender's program.
    var run: UInt64
    /// The number of the message to this receiver in that run, from 1.
    var number: UInt64

    /// The minimum length in bytes.
    static let headerByteCount = 16

    private func body(at index: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: (number &+ UInt64(index)) &* 0x9e37_79b9 >> 11)
    }

    /// Returns the message, `size` bytes long.
    func bytes(size: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: max(size, Self.headerByteCount))
        bytes.withUnsafeMutableBytes { raw in
            raw.storeBytes(of: run, as: UInt64.self)
            raw.storeBytes(of: number, toByteOffset: 8, as: UInt64.self)
            for index in Self.headerByteCount..<raw.count { raw[index] = body(at: index) }
        }
        return bytes
    }

    init(run: UInt64, number: UInt64) {
        self.run = run
        self.number = number
    }

    /// Parses a message; nil if a byte is not as it was sent.
    init?(_ bytes: RawSpan) {
        guard bytes.byteCount >= Self.headerByteCount else { return nil }
        run = bytes.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt64.self)
        number = bytes.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt64.self)
        for index in Self.headerByteCount..<bytes.byteCount
        where bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self) != body(at: index) {
            return nil
        }
    }
}
