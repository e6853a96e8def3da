import Synchronization

/// The memory large messages of one session are put together in and copied into, kept from one message to the next:
/// memory fresh from the system costs more than the message that is written to it.
///
/// A chunk may be given back while somebody still reads it; it is handed out again only when its last reader has let go.
/// Bounded in count and in bytes, and given up after a while without use. Callable from any thread.
final class LargeChunks: Sendable {
    /// How many chunks are kept at most.
    static let countLimit = 4
    /// How many bytes all kept chunks have at most.
    static let byteLimit = 8 << 20
    /// What is not used for as long is given up; after twice this at the latest.
    static let keptWithoutUse = Moment.Span.seconds(5)

    private struct Kept {
        /// Those given back last at the end.
        var chunks: ContiguousArray<Chunk> = []
        var byteCount = 0
        var wasUsed = false
        /// Chunks given back while all that are kept were being read.
        var newcomers = 0

        mutating func remove(at index: Int) -> Chunk {
            byteCount &-= chunks[index].capacity
            return chunks.remove(at: index)
        }

        /// One that nobody reads, with room for `size` bytes and at most as much again.
        mutating func take(_ size: Int) -> Chunk? {
            wasUsed = true
            for index in chunks.indices.reversed() {
                let capacity = chunks[index].capacity
                guard capacity >= size, capacity / 2 <= size, isKnownUniquelyReferenced(&chunks[index]) else {
                    continue
                }
                return remove(at: index)
            }
            return nil
        }

        /// Keeps `chunk` if there is room; else what must go first, or nil when `chunk` itself is not to be kept.
        mutating func admit(_ chunk: Chunk) -> Chunk? {
            if chunks.contains(where: { $0 === chunk }) { return nil }
            if chunks.count < countLimit, byteCount &+ chunk.capacity <= byteLimit {
                byteCount &+= chunk.capacity
                chunks.append(chunk)
                return nil
            }
            return surplus().map { remove(at: $0) }
        }

        /// The one to give up for another: the oldest that nobody reads. Where all are read, mostly none, since those
        /// that have waited longest will be free first; now and then the oldest, which may be read for ever.
        private mutating func surplus() -> Int? {
            for index in chunks.indices where isKnownUniquelyReferenced(&chunks[index]) { return index }
            newcomers &+= 1
            return newcomers % countLimit == 0 ? 0 : nil
        }
    }

    private let kept = Guarded(Kept())
    private let keepsAny = Atomic<Bool>(false)

    /// Whether anything is kept.
    var isEmpty: Bool { !keepsAny.load(ordering: .relaxed) }

    /// An empty chunk with room for `size` bytes, if one is kept.
    func takeKept(_ size: Int) -> Chunk? {
        guard let chunk = kept.withLock({ $0.take(size) }) else { return nil }
        chunk.rewind()
        return chunk
    }

    /// An empty chunk with room for `size` bytes.
    func take(_ size: Int) -> Chunk { takeKept(size) ?? Chunk(capacity: size) }

    /// Gives a chunk back; slices of it may still be read. The caller must not write to it afterwards.
    func recycle(_ chunk: Chunk) {
        guard chunk.capacity <= Self.byteLimit else { return }
        keepsAny.store(true, ordering: .relaxed)
        // What must go is freed here, where the lock is not held.
        while let surplus = kept.withLock({ $0.admit(chunk) }) { withExtendedLifetime(surplus) {} }
    }

    /// A slice that holds `bytes`: of the kept chunk they lie in, when a received message is passed on, else a copy.
    func slice(of bytes: UnsafeRawBufferPointer) -> ByteSlice {
        if let slice = received(bytes) { return slice }
        let chunk = take(bytes.count)
        chunk.append(bytes)
        return chunk.slice(from: 0)
    }

    /// The caller's own reference keeps these bytes, so what it passes on cannot be filled anew meanwhile. A part that is
    /// less than half of its chunk is not worth keeping all of it.
    private func received(_ bytes: UnsafeRawBufferPointer) -> ByteSlice? {
        guard let address = bytes.baseAddress else { return nil }
        return kept.withLock { kept in
            for chunk in kept.chunks {
                let start = address - UnsafeRawPointer(chunk.base)
                guard start >= 0, start &+ bytes.count <= chunk.filled, chunk.capacity / 2 <= bytes.count
                else {
                    continue
                }
                return ByteSlice(chunk: chunk, start: start, end: start &+ bytes.count)
            }
            return nil
        }
    }

    /// Gives everything up if none of it was used since the last call; whether something is still kept.
    func giveUpUnused() -> Bool {
        let given = kept.withLock { kept -> ContiguousArray<Chunk> in
            defer { kept.wasUsed = false }
            guard !kept.wasUsed else { return [] }
            defer {
                kept.chunks = []
                kept.byteCount = 0
                keepsAny.store(false, ordering: .relaxed)
            }
            return kept.chunks
        }
        withExtendedLifetime(given) {}
        return !isEmpty
    }

    /// How many chunks are kept, and how many bytes they have.
    var extent: (count: Int, byteCount: Int) { kept.withLock { ($0.chunks.count, $0.byteCount) } }
}
