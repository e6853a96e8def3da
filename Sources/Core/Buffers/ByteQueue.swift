/// Slices in order, to be written or being read, and how many bytes they are.
///
/// Slices that lie side by side in a chunk become one, so that many small messages leave as one write.
public struct ByteQueue {
    private var slices = Ring<ByteSlice>()
    /// How many bytes all slices hold together.
    public private(set) var byteCount = 0

    /// An empty queue.
    public init() {}

    /// Whether there is nothing in it.
    public var isEmpty: Bool { byteCount == 0 }

    /// How many slices: the length of the vector a gathering write needs.
    public var sliceCount: Int { slices.count }

    /// The slice at the front.
    public var first: ByteSlice? { slices.first }

    /// The slice at `index`, counted from the front.
    public subscript(index: Int) -> ByteSlice { slices[index] }

    /// Where the slice at `index` lies, for who takes no reference to it: valid until it is taken out of the queue.
    package func bytes(at index: Int) -> UnsafeRawBufferPointer { slices[index].pointer }

    /// Adds `slice` at the end; an empty one is ignored.
    public mutating func append(_ slice: ByteSlice) {
        guard !slice.isEmpty else { return }
        byteCount &+= slice.count
        if slices.count > 0, let joined = slices[slices.count &- 1].joined(with: slice) {
            slices[slices.count &- 1] = joined
        } else {
            slices.append(slice)
        }
    }

    /// Moves everything out of `other` to this queue's end.
    public mutating func append(contentsOf other: inout ByteQueue) {
        if isEmpty { return swap(&self, &other) }
        while let slice = other.popFirst() { append(slice) }
    }

    /// Takes the slice at the front.
    public mutating func popFirst() -> ByteSlice? {
        guard let slice = slices.popFirst() else { return nil }
        byteCount &-= slice.count
        return slice
    }

    /// Takes at most `count` bytes from the front, as one slice of the first chunk.
    public mutating func popFirst(atMost count: Int) -> ByteSlice? {
        guard let slice = popFirst() else { return nil }
        guard slice.count > count else { return slice }
        slices.prepend(slice[count..<slice.count])
        byteCount &+= slice.count &- count
        return slice[0..<count]
    }

    /// Forgets the first `count` bytes: what a write has taken.
    public mutating func drop(_ count: Int) {
        precondition(count >= 0 && count <= byteCount)
        if count == byteCount { return removeAll() }
        var left = count
        while left > 0, let slice = popFirst(atMost: left) { left &-= slice.count }
    }

    /// Forgets everything.
    public mutating func removeAll() {
        slices.removeAll()
        byteCount = 0
    }

    /// All bytes copied into one array.
    public var bytes: [UInt8] {
        var all: [UInt8] = []
        all.reserveCapacity(byteCount)
        for index in 0..<slices.count { slices[index].withUnsafeBytes { all.append(contentsOf: $0) } }
        return all
    }
}
