/// What has come on one lane of a conversation, and how much more may.
struct ReceiveLane {
    /// Messages that have come whole since the conversation began.
    private(set) var received: UInt64 = 0
    /// Lane frame bytes that have come on the present link, and how many the peer was told it may send on it.
    private(set) var bytesOnLink: UInt64 = 0
    private(set) var granted: UInt64 = 0

    /// The large message being put together, and its size.
    private var assembly: Chunk?
    private var expected = 0
    private let chunks: LargeChunks

    /// A lane that puts large messages together in `chunks`.
    init(chunks: LargeChunks) { self.chunks = chunks }

    /// Whether the message being put together has begun and is not whole.
    var isConsistent: Bool { assembly.map { $0.filled < expected } ?? true }

    /// A link that is just replacing another: partial messages will be sent again from their start.
    mutating func startLink(granted bytes: UInt64 = 0) {
        bytesOnLink = 0
        granted = bytes
        if let assembly { chunks.recycle(assembly) }
        assembly = nil
        expected = 0
    }

    /// Notes frame bytes; false when the peer sent more than it was allowed. One frame may exceed the grant.
    @inline(__always)
    mutating func count(_ bytes: Int, frameLimit: Int) -> Bool {
        bytesOnLink &+= UInt64(bytes)
        return bytesOnLink <= granted &+ UInt64(frameLimit &+ 2 &* FrameHeader.byteCount)
    }

    /// How much the peer may send on this link when so many bytes of it are unread: never less than was said before.
    mutating func grant(window: Int, unread: Int) -> UInt64 {
        granted = max(granted, bytesOnLink &+ UInt64(max(0, window &- unread)))
        return granted
    }

    /// What a new grant would add to the one the peer knows of.
    func grantGain(window: Int, unread: Int) -> Int {
        let possible = bytesOnLink &+ UInt64(max(0, window &- unread))
        return possible > granted ? Int(clamping: possible &- granted) : 0
    }

    /// A whole small message came.
    @inline(__always)
    mutating func countMessage() throws(WireError) {
        guard assembly == nil else { throw .malformed("a message inside another of its lane") }
        received &+= 1
    }

    /// A large message of `size` bytes begins. Its size has not been believed yet: memory grows as the bytes come.
    mutating func begin(size: Int, limit: Int) throws(WireError) {
        guard assembly == nil else { throw .malformed("a message inside another of its lane") }
        guard size > 0, size <= limit else {
            throw .malformed("a message of \(size) bytes, where 1 to \(limit) are allowed")
        }
        expected = size
        assembly = chunks.takeKept(size) ?? Chunk(capacity: min(size, Self.firstAllocation))
    }

    /// The next bytes of the large message; the whole of it once it is complete.
    mutating func append(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> ByteSlice? {
        guard var chunk = assembly else { throw .malformed("a piece of no message") }
        guard chunk.filled &+ bytes.count <= expected else {
            throw .malformed("pieces beyond their message's end")
        }
        if chunk.room < bytes.count {
            let larger = chunks.take(min(expected, max(chunk.capacity &* 4, chunk.filled &+ bytes.count)))
            larger.append(UnsafeRawBufferPointer(start: chunk.base, count: chunk.filled))
            assembly = larger
            chunk = larger
        }
        chunk.append(bytes)
        guard chunk.filled == expected else { return nil }
        assembly = nil
        received &+= 1
        chunks.recycle(chunk)
        return chunk.slice(from: 0)
    }

    /// What a large message is given before any of its bytes came; up to this size it is never moved again.
    private static let firstAllocation = 256 << 10
}
