import NighCore

/// The messages of the bulk lane in one run: the measured messages, the mark between warm-up and measurement, and the
/// end.
///
/// Each message begins with a byte for its kind, a byte for its number, and the run's number. A measured message
/// carries its number modulo 4 in its second and in its last byte, so that a lost, doubled, swapped or truncated
/// message is noticed. So there are only four different measured messages, which are made in advance.
struct BenchPayload: Sendable {
    /// The number of different measured messages.
    static let variety = 4

    /// The measured messages, by their number modulo 4.
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

    /// Returns bytes that are hard to compress, in case something on the path compresses. Only some kilobytes are
    /// generated and then repeated, because nothing may hold up the loop.
    private static func noise(_ count: Int, seed: UInt64) -> [UInt8] {
        var chance = SeededGenerator(seed: seed)
        var piece: [UInt8] = []
        for _ in 0..<512 { withUnsafeBytes(of: chance.next()) { piece.append(contentsOf: $0) } }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count { bytes.append(contentsOf: piece.prefix(count - bytes.count)) }
        return bytes
    }

    /// The first four bytes of message number 0 in `run`, as a little-endian number.
    static func beginning(run: UInt16) -> UInt32 {
        head(dataKind, 0, run).withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self)) }
    }

    private static func head(_ kind: UInt8, _ number: UInt8, _ run: UInt16) -> [UInt8] {
        [kind, number, UInt8(run >> 8), UInt8(truncatingIfNeeded: run)]
    }

    /// The message between warm-up and measurement.
    var mark: [UInt8] { Self.head(Self.markKind, 0, run) }

    /// The message after the last measured one: the amount sent since the mark, and the time that it took.
    func end(_ count: BenchCount) -> [UInt8] {
        var fields = FieldWriter()
        fields.write(raw: Self.head(Self.endKind, 0, run))
        fields.write(count)
        return fields.bytes
    }

    /// A message of the bulk lane that is not a measured one.
    enum Marker: Hashable {
        case mark
        case end(BenchCount)
    }

    /// Decodes a mark or an end; throws for anything else.
    static func marker(_ bytes: UnsafeRawBufferPointer, run: UInt16) throws(BenchBreach) -> Marker {
        guard bytes.count <= 64 else { throw BenchBreach("an unexpected message in a run") }
        var fields = BenchReader(bytes)
        let (kind, number) = (try fields.number(UInt8.self), try fields.number(UInt8.self))
        guard try fields.number(UInt16.self) == run, number == 0 else {
            throw BenchBreach("a message of another run")
        }
        let marker: Marker
        switch kind {
        case markKind: marker = .mark
        case endKind: marker = .end(try fields.count())
        default: throw BenchBreach("an unexpected message in a run")
        }
        try fields.finish()
        return marker
    }
}
