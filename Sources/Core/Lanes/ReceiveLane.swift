/// Receives one lane of a conversation, and counts how much more the peer may send.
struct ReceiveLane {
    /// Messages received whole since the conversation began.
    private(set) var received: UInt64 = 0
    /// Bytes of lane frames received on the present link, and how many the peer was told that it may send on it.
    private(set) var bytesOnLink: UInt64 = 0
    private(set) var granted: UInt64 = 0

    /// The large message that is being assembled, its size and its kind.
    private var assembly: Chunk?
    private var expected = 0
    private(set) var kind: MessageKind?
    private let chunks: LargeChunks

    /// Creates a lane that assembles large messages in `chunks`.
    init(chunks: LargeChunks) { self.chunks = chunks }

    /// Whether the state is consistent: a message that is being assembled is not whole.
    var isConsistent: Bool { assembly.map { $0.filled < expected } ?? true }

    /// Starts a link that replaces another. Partial messages will be sent again from their start.
    mutating func startLink(granted bytes: UInt64 = 0) {
        bytesOnLink = 0
        granted = bytes
        if let assembly { chunks.recycle(assembly) }
        assembly = nil
        expected = 0
    }

    /// Counts frame bytes. Returns false if the peer sent more than it was allowed to. One frame may exceed the grant.
    @inline(__always)
    mutating func count(_ bytes: Int, frameLimit: Int) -> Bool {
        bytesOnLink &+= UInt64(bytes)
        return bytesOnLink <= granted &+ UInt64(frameLimit &+ 2 &* FrameHeader.byteCount)
    }

    /// Returns how much the peer may send on this link when `unread` bytes are unread. Never less than was granted
    /// before.
    mutating func grant(window: Int, unread: Int) -> UInt64 {
        granted = max(granted, bytesOnLink &+ UInt64(max(0, window &- unread)))
        return granted
    }

    /// Returns by how many bytes a new grant would exceed the one that the peer knows.
    func grantGain(window: Int, unread: Int) -> Int {
        let possible = bytesOnLink &+ UInt64(max(0, window &- unread))
        return possible > granted ? Int(clamping: possible &- granted) : 0
    }

    /// Counts a small message that came whole.
    @inline(__always)
    mutating func countMessage() throws(WireError) {
        guard assembly == nil else { throw .malformed("a message inside another of its lane") }
        received &+= 1
    }

    /// Begins a large message of `size` bytes. The size is not trusted yet: memory grows as the bytes come.
    mutating func begin(size: Int, _ kind: MessageKind? = nil, limit: Int) throws(WireError) {
        guard assembly == nil else { throw .malformed("a message inside another of its lane") }
        let whole = size > 0 ? size &+ kind.byteCount : size
        guard whole > 0, whole <= limit else {
            throw .malformed("a message of \(whole) bytes, where 1 to \(limit) are allowed")
        }
        expected = size
        self.kind = kind
        assembly = chunks.takeIfKept(size) ?? Chunk(capacity: min(size, Self.firstAllocation))
    }

    /// Adds the next bytes of the large message. Returns the message once it is complete.
    mutating func append(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> ByteSlice? {
        guard var chunk = assembly else { throw .malformed("a piece without a message") }
        guard chunk.filled &+ bytes.count <= expected else {
            throw .malformed("pieces that are longer than their message")
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

    /// The memory that a large message gets before any of its bytes have come. A message up to this size is never
    /// moved.
    private static let firstAllocation = 256 << 10
}
