import NighCore

/// Where everything on one loop reads into, one after another.
///
/// One block serves all, so that a quiet pipe costs no memory; what is read becomes a slice of it, and what comes next lies
/// behind, so that a frame cut in two is whole again without a copy. Once nobody holds a slice any more, the block is filled from its
/// front again, while the processor still has it at hand. Loop only.
package final class ReadBuffer {
    /// What one read can bring at most. More would not stay in the processor's cache.
    package static let chunkSize = 256 * 1024
    /// With less room than this another block is taken.
    private static let leastRoom = 64 * 1024

    // Touched with each read, on the loop alone: no check at run time.
    @exclusivity(unchecked) private var pool = ChunkPool(chunkSize: chunkSize, keepAtMost: 16)
    @exclusivity(unchecked) private var chunk: Chunk

    init() { chunk = pool.take() }

    /// Where the next read may write to.
    @inline(__always)
    package func room() -> UnsafeMutableRawBufferPointer {
        if !Chunk.rewindIfUnshared(&chunk), chunk.room < Self.leastRoom {
            let full = chunk
            chunk = pool.take()
            pool.recycle(full)
        }
        return Chunk.rest(of: &chunk)
    }

    /// Takes what a read has written there.
    @inline(__always)
    package func take(_ count: Int) -> ByteSlice { Chunk.claim(count, of: &chunk) }
}
