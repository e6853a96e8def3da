import Synchronization

/// Reusable memory in which a session assembles and copies its large messages.
///
/// It is kept from one message to the next, because memory fresh from the system costs more than the
/// message that is written to it. A chunk may be returned while somebody still reads it; it is handed out
/// again only after its last reader has released it. Limited in count and in bytes, and released after a
/// time without use. Callable from any thread.
final class LargeChunks: Sendable {
    /// The maximum number of kept chunks.
    static let countLimit = 4
    /// The maximum number of bytes in all kept chunks.
    static let byteLimit = 8 << 20
    /// The time without use after which chunks are released. They are released after twice this time at the latest.
    static let idleLifetime = Moment.Span.seconds(5)

    private struct Kept {
        /// The most recently returned chunks are at the end.
        var chunks: ContiguousArray<Chunk> = []
        var byteCount = 0
        var wasUsed = false
        /// The number of chunks returned while all kept chunks were being read.
        var returnsWhileAllInUse = 0

        mutating func remove(at index: Int) -> Chunk {
            byteCount &-= chunks[index].capacity
            return chunks.remove(at: index)
        }

        /// Removes and returns a chunk that nobody reads, with at least `size` bytes and at most about twice as many.
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

        /// Keeps `chunk` if there is room, and returns nil. Otherwise removes and returns another chunk to make room,
        /// or returns nil if `chunk` is not to be kept.
        mutating func admit(_ chunk: Chunk) -> Chunk? {
            if chunks.contains(where: { $0 === chunk }) { return nil }
            if chunks.count < countLimit, byteCount &+ chunk.capacity <= byteLimit {
                byteCount &+= chunk.capacity
                chunks.append(chunk)
                return nil
            }
            return indexToRemove().map { remove(at: $0) }
        }

        /// The index of the chunk to remove for a new one: the oldest that nobody reads. If all are being read, usually
        /// none is removed, because the oldest ones will be free first. Every `countLimit`-th time the oldest is
        /// removed, because it may be read forever.
        private mutating func indexToRemove() -> Int? {
            for index in chunks.indices where isKnownUniquelyReferenced(&chunks[index]) { return index }
            returnsWhileAllInUse &+= 1
            return returnsWhileAllInUse % countLimit == 0 ? 0 : nil
        }
    }

    private let kept = Guarded(Kept())
    private let keepsAny = Atomic<Bool>(false)

    /// Whether no chunk is kept.
    var isEmpty: Bool { !keepsAny.load(ordering: .relaxed) }

    /// Returns an empty kept chunk with room for `size` bytes, or nil if there is none.
    func takeIfKept(_ size: Int) -> Chunk? {
        guard let chunk = kept.withLock({ $0.take(size) }) else { return nil }
        chunk.rewind()
        return chunk
    }

    /// Returns an empty chunk with room for `size` bytes, kept or new.
    func take(_ size: Int) -> Chunk { takeIfKept(size) ?? Chunk(capacity: size) }

    /// Returns a chunk. Slices of it may still be read, but the caller must not write to it afterwards.
    func recycle(_ chunk: Chunk) {
        guard chunk.capacity <= Self.byteLimit else { return }
        keepsAny.store(true, ordering: .relaxed)
        // Removed chunks are freed here, while the lock is not held.
        while let removed = kept.withLock({ $0.admit(chunk) }) { withExtendedLifetime(removed) {} }
    }

    /// Returns a slice of `bytes`: of the kept chunk they lie in, if a received
    /// message is passed on; otherwise of a copy.
    func slice(of bytes: UnsafeRawBufferPointer) -> ByteSlice {
        if let slice = keptSlice(of: bytes) { return slice }
        let chunk = take(bytes.count)
        chunk.append(bytes)
        return chunk.slice(from: 0)
    }

    /// Returns a slice of the kept chunk that contains `bytes`, or nil.
    ///
    /// Nobody overwrites the bytes meanwhile, because the caller holds a reference to their chunk. A part smaller than
    /// half of its chunk is copied instead, because it is not worth keeping the whole chunk.
    private func keptSlice(of bytes: UnsafeRawBufferPointer) -> ByteSlice? {
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

    /// Releases all kept chunks if none was used since the last call. Returns whether any chunk is still kept.
    func releaseUnused() -> Bool {
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

    /// The number of kept chunks and of their bytes.
    var extent: (count: Int, byteCount: Int) { kept.withLock { ($0.chunks.count, $0.byteCount) } }
}
