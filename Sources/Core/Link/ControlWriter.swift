/// The chunks that the control writers of several links share. Loop only.
final class ControlChunks {
    // Touched on the loop only, and no access lasts across a call to other code. So it needs no run-time check for
    // exclusive access.
    @exclusivity(unchecked) private var pool: ChunkPool

    /// Creates chunks of `chunkSize` bytes, and keeps a few for reuse. The size is just large enough for the first
    /// frames of a link.
    init(chunkSize: Int = 256, keepAtMost: Int = 8) {
        pool = ChunkPool(chunkSize: chunkSize, keepAtMost: keepAtMost)
    }

    func take(withRoom needed: Int) -> Chunk { pool.take(withRoom: needed) }

    func recycle(_ chunk: consuming Chunk) { pool.recycle(chunk) }
}

/// Collects small frames for the next write, in reused chunks. Once those exist, it does not allocate. It has a chunk
/// only while something waits in it, so that an idle link has none.
package struct ControlWriter {
    private var queue = ByteQueue()
    private var chunk: Chunk?
    private let chunks: ControlChunks
    private(set) var frameCount = 0

    init(_ chunks: ControlChunks) { self.chunks = chunks }

    /// Creates a writer with chunks of its own.
    init(chunkSize: Int = 256, keepAtMost: Int = 8) {
        self.init(ControlChunks(chunkSize: chunkSize, keepAtMost: keepAtMost))
    }

    /// The number of bytes that wait to be written.
    var byteCount: Int { queue.byteCount }

    /// Appends a frame with these payload bytes.
    mutating func write(_ type: FrameType, bytes: UnsafeRawBufferPointer) {
        let payload = reserve(type, payloadLength: bytes.count)
        if let source = bytes.baseAddress { payload.copyMemory(from: source, byteCount: bytes.count) }
    }

    /// Appends a frame with this payload, which is written to where the frame leaves from.
    mutating func write(_ type: FrameType, _ payload: some FramePayload) {
        let length = payload.payloadLength
        var writer = PayloadWriter(.init(start: reserve(type, payloadLength: length), count: length))
        payload.write(to: &writer)
        precondition(writer.isFull, "a payload is shorter than its length")
    }

    mutating func write(_ type: FrameType, payload: [UInt8]) {
        payload.withUnsafeBytes { write(type, bytes: $0) }
    }

    /// Appends a frame and returns the address of its payload, which the caller must write at once.
    mutating func reserve(_ type: FrameType, payloadLength: Int) -> UnsafeMutableRawPointer {
        frameCount &+= 1
        let start = claim(FrameHeader.byteCount &+ payloadLength)
        FrameHeader(type: type, payloadLength: payloadLength).write(to: start)
        return start + FrameHeader.byteCount
    }

    /// Returns a frame header for a payload that lies elsewhere. The header is not queued.
    mutating func detachedHeader(_ type: FrameType, payloadLength: Int) -> ByteSlice {
        let chunk = roomFor(FrameHeader.byteCount)
        let start = chunk.filled
        FrameHeader(type: type, payloadLength: payloadLength).write(to: chunk.claim(FrameHeader.byteCount))
        return chunk.slice(from: start)
    }

    /// Returns a whole frame whose payload is one number and, if there is one, a byte behind it. The frame is not
    /// queued.
    mutating func standaloneFrame(_ type: FrameType, number: UInt32, last: UInt8? = nil) -> ByteSlice {
        let length = last == nil ? 4 : 5
        let chunk = roomFor(FrameHeader.byteCount + length)
        let start = chunk.filled
        let bytes = chunk.claim(FrameHeader.byteCount + length)
        FrameHeader(type: type, payloadLength: length).write(to: bytes)
        bytes.storeBytes(of: number.bigEndian, toByteOffset: FrameHeader.byteCount, as: UInt32.self)
        if let last { bytes.storeBytes(of: last, toByteOffset: FrameHeader.byteCount + 4, as: UInt8.self) }
        return chunk.slice(from: start)
    }

    /// Moves all queued frames to `other`.
    mutating func drain(into other: inout ByteQueue) {
        other.append(contentsOf: &queue)
        frameCount = 0
        giveChunkBack()
    }

    /// Moves all queued frames behind those of `other`.
    mutating func drain(into other: inout ControlWriter) {
        other.queue.append(contentsOf: &queue)
        other.frameCount &+= frameCount
        frameCount = 0
        giveChunkBack()
    }

    /// Drops all queued frames.
    mutating func removeAll() {
        queue.removeAll()
        frameCount = 0
        giveChunkBack()
    }

    private mutating func giveChunkBack() {
        if let chunk = chunk.take() { chunks.recycle(chunk) }
    }

    private mutating func claim(_ count: Int) -> UnsafeMutableRawPointer {
        let chunk = roomFor(count)
        let start = chunk.filled
        let pointer = chunk.claim(count)
        queue.append(chunk.slice(from: start))
        return pointer
    }

    /// Returns the current chunk if `count` bytes fit into it, or another one.
    private mutating func roomFor(_ count: Int) -> Chunk {
        if let chunk, chunk.room >= count { return chunk }
        giveChunkBack()
        let fresh = chunks.take(withRoom: count)
        chunk = fresh
        return fresh
    }
}
