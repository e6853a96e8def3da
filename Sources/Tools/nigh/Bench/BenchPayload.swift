import NighCore

/// The messages of the bulk lane in one run: those that are measured, the mark between warm-up and measurement, and the end.
///
/// Each begins with a byte that says which, and the run's number. What is measured counts itself modulo 4, in front and in its last
/// byte, so that nothing can be lost, doubled, swapped or cut short without being noticed; and there are only four of them, which
/// lie ready.
struct BenchPayload: Sendable {
    /// How many different ones there are.
    static let variety = 4

    /// Of every message, by its number modulo 4.
    let slices: [ByteSlice]
    let run: UInt16

    private static let dataKind: UInt8 = 0
    private static let markKind: UInt8 = 1
    private static let endKind: UInt8 = 2

    init(run: UInt16, size: Int) {
        self.run = run
        slices = (0..<UInt8(Self.variety)).map { number in
            var bytes = Self.noise(
                max(size, Int(BenchLimits.smallestMessage)), seed: UInt64(run) << 8 | UInt64(number))
            bytes.replaceSubrange(0..<4, with: Self.head(Self.dataKind, number, run))
            bytes[bytes.count - 1] = number
            return ByteSlice(bytes)
        }
    }

    /// For whoever compresses on the way. Made once for some kilobytes and then repeated, since nothing may hold up the loop.
    private static func noise(_ count: Int, seed: UInt64) -> [UInt8] {
        var chance = SeededGenerator(seed: seed)
        var piece: [UInt8] = []
        for _ in 0..<512 { withUnsafeBytes(of: chance.next()) { piece.append(contentsOf: $0) } }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count { bytes.append(contentsOf: piece.prefix(count - bytes.count)) }
        return bytes
    }

    /// What the message number 0 begins with in `run`: four bytes, the first one least significant.
    static func beginning(run: UInt16) -> UInt32 {
        head(dataKind, 0, run).withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self)) }
    }

    private static func head(_ kind: UInt8, _ number: UInt8, _ run: UInt16) -> [UInt8] {
        [kind, number, UInt8(run >> 8), UInt8(truncatingIfNeeded: run)]
    }

    /// What stands between warm-up and measurement.
    var mark: [UInt8] { Self.head(Self.markKind, 0, run) }

    /// What follows the last message: what was sent since the mark, and in what time.
    func end(_ count: BenchCount) -> [UInt8] {
        var fields = FieldWriter()
        fields.write(raw: Self.head(Self.endKind, 0, run))
        fields.write(count)
        return fields.bytes
    }

    /// What a message is that is none of those measured.
    enum Special: Hashable {
        case mark
        case end(BenchCount)
    }

    /// Reads it; fails for everything else.
    static func special(_ bytes: UnsafeRawBufferPointer, run: UInt16) throws(BenchBreach) -> Special {
        guard bytes.count <= 64 else { throw BenchBreach("a message that is not the one whose turn it is") }
        var fields = BenchReader(bytes)
        let (kind, number) = (try fields.number(UInt8.self), try fields.number(UInt8.self))
        guard try fields.number(UInt16.self) == run, number == 0 else {
            throw BenchBreach("a message of another run")
        }
        let special: Special
        switch kind {
        case markKind: special = .mark
        case endKind: special = .end(try fields.count())
        default: throw BenchBreach("a message that is not the one whose turn it is")
        }
        try fields.finish()
        return special
    }
}
