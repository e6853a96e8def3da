import NighCore

/// The buffer that every read on one loop goes into, one read after another.
///
/// One block serves all pipes, so a quiet pipe costs no memory. The bytes read become a slice of the block, and the
/// next read goes behind it. So a frame cut in two is whole again without a copy. Once nobody holds a slice any more,
/// the block is filled from its front again, while it is still in the processor's cache. Loop only.
package final class ReadBuffer {
    /// The most bytes that one read can bring. More would not stay in the processor's cache.
    package static let chunkSize = 256 * 1024
    /// With less room than this, the next read gets another block.
    private static let leastRoom = 64 * 1024

    // Touched at each read, and only on the loop, so access is not checked at run time.
    @exclusivity(unchecked) private var pool = ChunkPool(chunkSize: chunkSize, keepAtMost: 16, .forReading)
    @exclusivity(unchecked) private var chunk: Chunk

    init() { chunk = pool.take() }

    /// Returns the memory that the next read may write to.
    @inline(__always)
    package func room() -> UnsafeMutableRawBufferPointer {
        if !Chunk.rewindIfUnshared(&chunk), chunk.room < Self.leastRoom {
            let full = chunk
            chunk = pool.take()
            pool.recycle(full)
        }
        return Chunk.unfilledBytes(of: &chunk)
    }

    /// Returns the `count` bytes that a read has written there.
    @inline(__always)
    package func take(_ count: Int) -> ByteSlice { Chunk.claim(count, of: &chunk) }
}
