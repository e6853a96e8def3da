/// The bytes of a stream that are written and not sent, in the frames in which they travel. The last frame grows until
/// it is full or taken.
struct StreamFrameQueue {
    private let number: UInt32
    private let frameRoom: Int
    private let chunks: Guarded<ChunkPool>
    /// Whole frames, each within one slice.
    private var frames = ByteQueue()
    /// The chunk that frames are written to, and the frame at its end that may still grow: where it begins, and how
    /// many bytes of the stream it has.
    private var chunk: Chunk?
    private var growing: (start: Int, count: Int)?
    /// The bytes of the stream in all these frames.
    private(set) var byteCount = 0

    /// - Parameters:
    ///   - number: the number of the stream.
    ///   - frameRoom: the most bytes of the stream in one frame.
    ///   - chunks: the memory for frames, which streams share.
    init(number: UInt32, frameRoom: Int, chunks: Guarded<ChunkPool>) {
        self.number = number
        self.frameRoom = frameRoom
        self.chunks = chunks
    }

    /// Adds bytes.
    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        var position = 0
        while position < bytes.count {
            position &+= grow(by: UnsafeRawBufferPointer(rebasing: bytes[position...]))
        }
        byteCount &+= bytes.count
    }

    /// Writes bytes to the frame at the end, or to a new one. Returns how many fitted.
    private mutating func grow(by bytes: UnsafeRawBufferPointer) -> Int {
        let header = FrameHeader.byteCount &+ StreamData.numberLength
        if let growing, let chunk, growing.count < frameRoom, chunk.room > 0 {
            let count = min(bytes.count, frameRoom &- growing.count, chunk.room)
            chunk.append(UnsafeRawBufferPointer(rebasing: bytes[0..<count]))
            self.growing = (growing.start, growing.count &+ count)
            return count
        }
        seal()
        let count = min(bytes.count, frameRoom)
        // A chunk with little room left would make short frames.
        if (chunk?.room ?? 0) < header &+ min(count, Self.leastRoom) {
            let full = chunk.take()
            chunk = chunks.withLock { chunks in
                if let full { chunks.recycle(full) }
                return chunks.take()
            }
        }
        let chunk = chunk.unsafelyUnwrapped
        let start = chunk.filled
        _ = chunk.claim(header)
        let fitting = min(count, chunk.room)
        chunk.append(UnsafeRawBufferPointer(rebasing: bytes[0..<fitting]))
        growing = (start, fitting)
        return fitting
    }

    private static let leastRoom = 1_024

    /// Ends the growing frame: writes its header, now that its length is known.
    private mutating func seal() {
        guard let growing, let chunk else { return }
        let start = chunk.base + growing.start
        FrameHeader(type: .streamData, payloadLength: StreamData.numberLength &+ growing.count)
            .write(to: start)
        start.storeBytes(of: number.bigEndian, toByteOffset: FrameHeader.byteCount, as: UInt32.self)
        frames.append(chunk.slice(from: growing.start))
        self.growing = nil
    }

    /// Takes the next frame, and says how many bytes of the stream it has. Returns nil if there is none.
    mutating func takeFirst() -> (frame: ByteSlice, count: Int)? {
        if frames.isEmpty { seal() }
        guard let first = frames.first else { return nil }
        let header = first.withUnsafeBytes { FrameHeader(readingFrom: $0.baseAddress.unsafelyUnwrapped) }
        guard let frame = frames.popFirst(atMost: FrameHeader.byteCount &+ header.payloadLength) else {
            return nil
        }
        let count = header.payloadLength &- StreamData.numberLength
        byteCount &-= count
        return (frame, count)
    }

    /// Drops all frames, and gives the chunk back.
    mutating func removeAll() {
        frames.removeAll()
        growing = nil
        byteCount = 0
        if let chunk = chunk.take() { chunks.withLock { $0.recycle(chunk) } }
    }
}
