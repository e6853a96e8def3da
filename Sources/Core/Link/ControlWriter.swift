/// Collects small frames for the next write in chunks it reuses: no allocation once warm.
package struct ControlWriter {
    private var queue = ByteQueue()
    private var chunk: Chunk?
    private var pool: ChunkPool
    private(set) var frameCount = 0

    /// A writer that keeps so many chunks of that size for when what is in them has been written.
    init(chunkSize: Int = 1_024, keepAtMost: Int = 4) {
        pool = ChunkPool(chunkSize: chunkSize, keepAtMost: keepAtMost)
    }

    /// Bytes that wait.
    var byteCount: Int { queue.byteCount }

    /// Appends a frame with these payload bytes.
    mutating func write(_ type: FrameType, bytes: UnsafeRawBufferPointer) {
        let payload = reserve(type, payloadLength: bytes.count)
        if let source = bytes.baseAddress { payload.copyMemory(from: source, byteCount: bytes.count) }
    }

    mutating func write(_ type: FrameType, payload: [UInt8]) {
        payload.withUnsafeBytes { write(type, bytes: $0) }
    }

    /// Appends a frame whose payload the caller writes at once to where the result points.
    mutating func reserve(_ type: FrameType, payloadLength: Int) -> UnsafeMutableRawPointer {
        frameCount &+= 1
        let start = claim(FrameHeader.byteCount &+ payloadLength)
        FrameHeader(type: type, payloadLength: payloadLength).write(to: start)
        return start + FrameHeader.byteCount
    }

    /// A frame header for payload bytes that lie elsewhere; not queued but returned.
    mutating func header(_ type: FrameType, payloadLength: Int) -> ByteSlice {
        let chunk = roomFor(FrameHeader.byteCount)
        let start = chunk.filled
        FrameHeader(type: type, payloadLength: payloadLength).write(to: chunk.claim(FrameHeader.byteCount))
        return chunk.slice(from: start)
    }

    /// A whole frame whose payload is one number; not queued but returned.
    mutating func loose(_ type: FrameType, number: UInt32) -> ByteSlice {
        let chunk = roomFor(FrameHeader.byteCount + 4)
        let start = chunk.filled
        let bytes = chunk.claim(FrameHeader.byteCount + 4)
        FrameHeader(type: type, payloadLength: 4).write(to: bytes)
        bytes.storeBytes(of: number.bigEndian, toByteOffset: FrameHeader.byteCount, as: UInt32.self)
        return chunk.slice(from: start)
    }

    /// Moves everything to `other`.
    mutating func drain(into other: inout ByteQueue) {
        other.append(contentsOf: &queue)
        frameCount = 0
    }

    /// Moves everything behind what `other` has.
    mutating func drain(into other: inout ControlWriter) {
        other.queue.append(contentsOf: &queue)
        other.frameCount &+= frameCount
        frameCount = 0
    }

    /// Forgets everything.
    mutating func drop() {
        queue.removeAll()
        frameCount = 0
    }

    private mutating func claim(_ count: Int) -> UnsafeMutableRawPointer {
        let chunk = roomFor(count)
        let start = chunk.filled
        let pointer = chunk.claim(count)
        queue.append(chunk.slice(from: start))
        return pointer
    }

    /// The chunk in use if `count` bytes fit, else another.
    private mutating func roomFor(_ count: Int) -> Chunk {
        if let chunk, chunk.room >= count { return chunk }
        if let chunk { pool.recycle(chunk) }
        let fresh = count <= pool.chunkSize ? pool.take() : Chunk(capacity: count)
        chunk = fresh
        return fresh
    }
}
