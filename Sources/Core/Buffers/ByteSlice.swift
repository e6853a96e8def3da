/// Shared bytes: a range of a `Chunk`, which the slice keeps alive.
///
/// Message payloads are slices, and pipes read and write slices. Even a small slice keeps its whole chunk in memory, so
/// store a `copy()` to keep it for long.
public struct ByteSlice: Sendable {
    @usableFromInline let chunk: Chunk
    @usableFromInline let start: Int
    @usableFromInline private(set) var end: Int

    @usableFromInline
    init(chunk: Chunk, start: Int, end: Int) {
        precondition(start >= 0 && start <= end && end <= chunk.capacity, "a slice outside its chunk")
        self.chunk = chunk
        self.start = start
        self.end = end
    }

    /// Creates a slice of a new chunk with a copy of `bytes`.
    public init(copying bytes: UnsafeRawBufferPointer) {
        let chunk = Chunk(capacity: bytes.count)
        chunk.append(bytes)
        self.init(chunk: chunk, start: 0, end: bytes.count)
    }

    /// Creates a slice of a new chunk with a copy of `bytes`.
    public init(_ bytes: some Collection<UInt8>) {
        let copied = bytes.withContiguousStorageIfAvailable { ByteSlice(copying: UnsafeRawBufferPointer($0)) }
        self = copied ?? Array(bytes).withUnsafeBytes { ByteSlice(copying: $0) }
    }

    /// Creates a slice of a new chunk with a copy of `first` and, behind it, one of `second`.
    package init(_ first: [UInt8], then second: ByteSlice) {
        let chunk = Chunk(capacity: first.count + second.count)
        first.withUnsafeBytes { chunk.append($0) }
        second.withUnsafeBytes { chunk.append($0) }
        self.init(chunk: chunk, start: 0, end: chunk.capacity)
    }

    /// The number of bytes.
    @inlinable
    public var count: Int { end &- start }

    /// Whether the slice has no bytes.
    @inlinable
    public var isEmpty: Bool { start == end }

    /// The bytes in place. Valid only while this slice or another of its chunk is alive.
    @inlinable
    var pointer: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: UnsafeRawPointer(chunk.base + start), count: count)
    }

    /// Calls `body` with the bytes in place. They are valid during the call.
    @inlinable
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let result = try body(pointer)
        withExtendedLifetime(chunk) {}
        return result
    }

    /// Returns the bytes in `range`, counted from the start of this slice. The result shares the chunk.
    @inlinable
    public subscript(range: Range<Int>) -> ByteSlice {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        return ByteSlice(chunk: chunk, start: start + range.lowerBound, end: start + range.upperBound)
    }

    /// Returns a slice of the same bytes in a new chunk of exactly their size.
    public func copy() -> ByteSlice { withUnsafeBytes { ByteSlice(copying: $0) } }

    /// The bytes, copied into an array.
    public var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

    /// Extends the slice to `end`, over bytes that the owner of the chunk has filled since.
    mutating func grow(to end: Int) {
        precondition(end >= self.end && end <= chunk.capacity, "a slice outside its chunk")
        self.end = end
    }

    /// Extends the slice over `next` if that lies directly behind it in the same chunk. Returns whether it did.
    @inline(__always)
    mutating func extend(over next: ByteSlice) -> Bool {
        guard chunk === next.chunk, end == next.start else { return false }
        end = next.end
        return true
    }

    /// Extends the slice by the bytes in `chunk` from `start` on. Returns false, and does nothing, unless they lie
    /// directly behind the slice.
    mutating func extend(in chunk: Chunk, from start: Int) -> Bool {
        guard self.chunk === chunk, end == start else { return false }
        end = chunk.filled
        return true
    }

    /// Returns the slice that covers this one and `next`, or nil unless `next` lies
    /// directly behind it in the same chunk.
    func joined(with next: ByteSlice) -> ByteSlice? {
        guard chunk === next.chunk, end == next.start else { return nil }
        return ByteSlice(chunk: chunk, start: start, end: next.end)
    }
}

extension ByteSlice: Equatable {
    /// Returns whether both slices have the same bytes, wherever those lie.
    public static func == (left: ByteSlice, right: ByteSlice) -> Bool {
        left.withUnsafeBytes { a in right.withUnsafeBytes { b in a.elementsEqual(b) } }
    }
}
