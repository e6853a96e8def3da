/// Cuts the bytes of a stream into messages. In front of each is its length, in four bytes.
package struct StreamMessageParser {
    private var waiting: [ByteSlice] = []
    private var waitingCount = 0
    /// The length of the message that comes, once that is known.
    private var length: Int?

    package init() {}

    /// The bytes in front of a message of this length.
    package static func header(of length: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(length).bigEndian) { Array($0) }
    }

    /// A message with its header, copied once.
    package static func frame(_ message: UnsafeRawBufferPointer) -> ByteSlice {
        let chunk = Chunk(capacity: headerCount + message.count)
        withUnsafeBytes(of: UInt32(message.count).bigEndian) { chunk.append($0) }
        chunk.append(message)
        return chunk.slice(from: 0)
    }

    /// A message with its header: the fields that `write` writes, and `content` behind them.
    package static func frame(then content: ByteSlice? = nil, _ write: (inout FieldWriter) -> Void)
        -> ByteSlice
    {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64)
        bytes.append(contentsOf: repeatElement(0, count: headerCount))
        var fields = FieldWriter(behind: bytes)
        write(&fields)
        fields.overwrite(UInt32(fields.bytes.count - headerCount + (content?.count ?? 0)), at: 0)
        guard let content else { return fields.bytes.withUnsafeBytes { ByteSlice(copying: $0) } }
        return ByteSlice(fields.bytes, then: content)
    }

    /// The number of bytes in front of a message.
    package static let headerCount = 4

    /// Takes in the next bytes of the stream.
    package mutating func append(_ bytes: ByteSlice) {
        waiting.append(bytes)
        waitingCount += bytes.count
    }

    /// Returns the next message; nil if it has not come whole. Fails if it is longer than `limit`.
    package mutating func next(limit: Int) throws(WireError) -> ByteSlice? {
        if length == nil {
            guard waitingCount >= Self.headerCount else { return nil }
            let header = take(Self.headerCount)
            length = header.withUnsafeBytes { Int(UInt32(bigEndian: $0.loadUnaligned(as: UInt32.self))) }
        }
        guard let length else { return nil }
        guard length <= limit else {
            throw .malformed("a message of \(length) bytes in a stream, the limit is \(limit)")
        }
        guard waitingCount >= length else { return nil }
        self.length = nil
        return take(length)
    }

    /// Takes the next `count` bytes that wait. They are copied only if they have come in pieces.
    private mutating func take(_ count: Int) -> ByteSlice {
        waitingCount -= count
        guard let first = waiting.first, count > 0 else { return ByteSlice([]) }
        if count <= first.count {
            if count == first.count { waiting.removeFirst() } else { waiting[0] = first[count..<first.count] }
            return first[0..<count]
        }
        let whole = Chunk(capacity: count)
        var left = count
        var used = 0
        for piece in waiting where left > 0 {
            let part = piece[0..<min(left, piece.count)]
            part.withUnsafeBytes { whole.append($0) }
            left -= part.count
            if part.count == piece.count {
                used += 1
            } else {
                waiting[used] = piece[part.count..<piece.count]
            }
        }
        waiting.removeFirst(used)
        return whole.slice(from: 0)
    }
}
