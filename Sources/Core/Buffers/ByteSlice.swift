/// Bytes that are shared, not copied: a range of a `Chunk`, kept alive by reference.
///
/// Message payloads, and what pipes read and write, are slices. A small slice keeps its whole chunk in memory; who
/// stores one for long takes `copy()`.
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

    /// A slice of a new chunk that holds a copy of `bytes`.
    public init(copying bytes: UnsafeRawBufferPointer) {
        let chunk = Chunk(capacity: bytes.count)
        chunk.append(bytes)
        self.init(chunk: chunk, start: 0, end: bytes.count)
    }

    /// A slice of a new chunk that holds a copy of `bytes`.
    public init(_ bytes: some Collection<UInt8>) {
        let copied = bytes.withContiguousStorageIfAvailable { ByteSlice(copying: UnsafeRawBufferPointer($0)) }
        self = copied ?? Array(bytes).withUnsafeBytes { ByteSlice(copying: $0) }
    }

    /// How many bytes.
    @inlinable
    public var count: Int { end &- start }

    /// Whether there are none.
    @inlinable
    public var isEmpty: Bool { start == end }

    /// Where the bytes are; valid only while this slice (or another of its chunk) is alive.
    @inlinable
    var pointer: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: UnsafeRawPointer(chunk.base + start), count: count)
    }

    /// Calls `body` with the bytes in place, valid for the time of the call.
    @inlinable
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let result = try body(pointer)
        withExtendedLifetime(chunk) {}
        return result
    }

    /// The bytes `range` counts from this slice's start, sharing the chunk.
    @inlinable
    public subscript(range: Range<Int>) -> ByteSlice {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        return ByteSlice(chunk: chunk, start: start + range.lowerBound, end: start + range.upperBound)
    }

    /// The same bytes in a chunk of their own and of their size.
    public func copy() -> ByteSlice { withUnsafeBytes { ByteSlice(copying: $0) } }

    /// The bytes as an array, copied.
    public var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

    /// Moves the end back to `end`, over what its chunk's owner has filled since.
    mutating func grow(to end: Int) {
        precondition(end >= self.end && end <= chunk.capacity, "a slice outside its chunk")
        self.end = end
    }

    /// Covers `next` as well, if that lies directly behind it in the same chunk; says whether.
    @inline(__always)
    mutating func extend(over next: ByteSlice) -> Bool {
        guard chunk === next.chunk, end == next.start else { return false }
        end = next.end
        return true
    }

    /// The slice that covers this one and `next`, if `next` lies directly behind it in the same chunk.
    func joined(with next: ByteSlice) -> ByteSlice? {
        guard chunk === next.chunk, end == next.start else { return nil }
        return ByteSlice(chunk: chunk, start: start, end: next.end)
    }
}

extension ByteSlice: Equatable {
    /// Whether both hold the same bytes, wherever they lie.
    public static func == (left: ByteSlice, right: ByteSlice) -> Bool {
        left.withUnsafeBytes { a in right.withUnsafeBytes { b in a.elementsEqual(b) } }
    }
}
