/// A queue of slices to write or read, with their total number of bytes.
///
/// Slices that lie side by side in one chunk are joined, so that many small messages leave as one write.
public struct ByteQueue {
    private var slices = Ring<ByteSlice>()
    /// The number of bytes in all slices together.
    public private(set) var byteCount = 0

    /// Creates an empty queue.
    public init() {}

    /// Whether the queue has no bytes.
    public var isEmpty: Bool { byteCount == 0 }

    /// The number of slices, which is the length of the vector that a gathering write needs.
    public var sliceCount: Int { slices.count }

    /// The slice at the front.
    public var first: ByteSlice? { slices.first }

    /// Returns the slice at `index`, counted from the front.
    public subscript(index: Int) -> ByteSlice { slices[index] }

    /// Returns the bytes of the slice at `index` without taking a reference to it.
    /// Valid until the slice leaves the queue.
    package func bytes(at index: Int) -> UnsafeRawBufferPointer { slices[index].pointer }

    /// Adds `slice` at the end. Ignores an empty slice.
    public mutating func append(_ slice: ByteSlice) {
        guard !slice.isEmpty else { return }
        byteCount &+= slice.count
        if slices.count > 0, let joined = slices[slices.count &- 1].joined(with: slice) {
            slices[slices.count &- 1] = joined
        } else {
            slices.append(slice)
        }
    }

    /// Moves all slices of `other` to the end of this queue.
    public mutating func append(contentsOf other: inout ByteQueue) {
        if isEmpty { return swap(&self, &other) }
        while let slice = other.popFirst() { append(slice) }
    }

    /// Removes and returns the slice at the front.
    public mutating func popFirst() -> ByteSlice? {
        guard let slice = slices.popFirst() else { return nil }
        byteCount &-= slice.count
        return slice
    }

    /// Removes and returns at most `count` bytes from the front, as a part of the first slice.
    public mutating func popFirst(atMost count: Int) -> ByteSlice? {
        guard let slice = popFirst() else { return nil }
        guard slice.count > count else { return slice }
        slices.prepend(slice[count..<slice.count])
        byteCount &+= slice.count &- count
        return slice[0..<count]
    }

    /// Removes the first `count` bytes, for example those that a write has taken.
    public mutating func drop(_ count: Int) {
        precondition(count >= 0 && count <= byteCount)
        if count == byteCount { return removeAll() }
        var left = count
        while left > 0, let slice = popFirst(atMost: left) { left &-= slice.count }
    }

    /// Removes all slices.
    public mutating func removeAll() {
        slices.removeAll()
        byteCount = 0
    }

    /// All bytes, copied into one array.
    public var bytes: [UInt8] {
        var all: [UInt8] = []
        all.reserveCapacity(byteCount)
        for index in 0..<slices.count { slices[index].withUnsafeBytes { all.append(contentsOf: $0) } }
        return all
    }
}
