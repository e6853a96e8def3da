/// Identifies a peer: the SHA-256 hash of its identity's public key.
///
/// A name is only a label. Two peers with the same PeerID are the same peer. The text form has 52 letters and digits of
/// base 32 (RFC 4648, lower case, no padding).
@frozen
public struct PeerID: Hashable, Comparable, Sendable, CustomStringConvertible, LosslessStringConvertible {
    /// The number of bytes in a PeerID.
    public static let byteCount = 32

    @usableFromInline let words: (UInt64, UInt64, UInt64, UInt64)

    /// Creates a PeerID from exactly 32 bytes. Returns nil for any other number of bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: bytes) }
        self.words = (
            UInt64(bigEndian: words.0), UInt64(bigEndian: words.1), UInt64(bigEndian: words.2),
            UInt64(bigEndian: words.3)
        )
    }

    /// Parses the form that `description` writes. Returns nil for anything else,
    /// including other spellings of the same bits.
    public init?(_ description: String) {
        guard let bytes = Base32.decode(description) else { return nil }
        self.init(bytes: bytes)
    }

    /// The 32 bytes, as they are sent.
    public var bytes: [UInt8] { withBytes { Array($0) } }

    /// Calls `body` with the 32 bytes, as they are sent.
    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(
            of: (words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian), body)
    }

    /// The 52 characters of base 32.
    public var description: String { withBytes { Base32.encode($0) } }

    /// The first eight characters. A person can tell nearby peers apart by them, but
    /// they are too few to trust a peer by.
    public var short: String {
        String(unsafeUninitializedCapacity: 8) { text in
            for index in 0..<8 {
                text[index] = Base32.character(UInt8(truncatingIfNeeded: words.0 >> (59 - 5 * index) & 31))
            }
            return 8
        }
    }

    /// Returns whether all 32 bytes are the same.
    @inlinable
    public static func == (left: PeerID, right: PeerID) -> Bool {
        left.words.0 == right.words.0 && left.words.1 == right.words.1 && left.words.2 == right.words.2
            && left.words.3 == right.words.3
    }

    /// Hashes the first eight bytes.
    @inlinable
    public func hash(into hasher: inout Hasher) {
        // One word of a cryptographic hash is as good as four, and hashing it takes
        // a quarter of the work on every send.
        hasher.combine(words.0)
    }

    /// Compares byte by byte, so the order is the same on both sides of a link.
    public static func < (left: PeerID, right: PeerID) -> Bool { left.words < right.words }
}
