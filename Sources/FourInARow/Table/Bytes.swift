import NighCore

/// Encodes messages: integers in network byte order, and texts after one byte with their length.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    mutating func byte(_ value: UInt8) { bytes.append(value) }

    mutating func short(_ value: UInt16) {
        bytes.append(UInt8(value >> 8))
        bytes.append(UInt8(truncatingIfNeeded: value))
    }

    mutating func number(_ value: UInt32) {
        short(UInt16(value >> 16))
        short(UInt16(truncatingIfNeeded: value))
    }

    mutating func peer(_ peer: PeerID) { bytes += peer.bytes }

    /// Writes a text; nil becomes an empty text.
    mutating func text(_ text: SafeText?) {
        let utf8 = text.map { Array($0.description.utf8) } ?? []
        byte(UInt8(utf8.count))
        bytes += utf8
    }
}

/// Decodes bytes from an untrusted peer. Every call throws `garbage` if the bytes do not match.
struct ByteReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func byte() throws(Breach) -> UInt8 {
        guard position < bytes.count else { throw .garbage }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func short() throws(Breach) -> UInt16 { UInt16(try byte()) << 8 | UInt16(try byte()) }

    mutating func number() throws(Breach) -> UInt32 { UInt32(try short()) << 16 | UInt32(try short()) }

    mutating func flag() throws(Breach) -> Bool {
        switch try byte() {
        case 0: false
        case 1: true
        default: throw .garbage
        }
    }

    mutating func peer() throws(Breach) -> PeerID {
        guard bytes.count - position >= PeerID.byteCount,
            let peer = PeerID(bytes: Array(bytes[position..<position + PeerID.byteCount]))
        else { throw .garbage }
        position += PeerID.byteCount
        return peer
    }

    mutating func text() throws(Breach) -> SafeText {
        guard let text = try optionalText() else { throw .garbage }
        return text
    }

    mutating func optionalText() throws(Breach) -> SafeText? {
        let count = Int(try byte())
        guard bytes.count - position >= count else { throw .garbage }
        defer { position += count }
        guard count > 0 else { return nil }
        guard let string = String(validating: bytes[position..<position + count], as: UTF8.self),
            let text = SafeText(string)
        else { throw .garbage }
        return text
    }

    /// Throws if there is anything left.
    func end() throws(Breach) {
        guard position == bytes.count else { throw .garbage }
    }
}
