/// A queue of elements ordered by the moment at which they are due. Elements of one moment keep
/// the order in which they were added.
///
/// A binary heap in one array: once it has grown, adding and taking do not allocate. Event loops keep their scheduled
/// work in one, and the session machine its deadlines.
public struct TimerQueue<Element> {
    @usableFromInline
    struct Entry {
        @usableFromInline let moment: Moment
        @usableFromInline let order: UInt64
        @usableFromInline let element: Element

        @usableFromInline
        init(moment: Moment, order: UInt64, element: Element) {
            self.moment = moment
            self.order = order
            self.element = element
        }

        @inlinable
        func isBefore(_ other: Entry) -> Bool {
            moment != other.moment ? moment < other.moment : order < other.order
        }
    }

    @usableFromInline var heap: ContiguousArray<Entry> = []
    @usableFromInline var nextOrder: UInt64 = 0

    /// Creates an empty queue.
    public init() {}

    /// The number of elements.
    @inlinable
    public var count: Int { heap.count }

    /// The moment at which the earliest element is due, or nil if the queue is empty.
    @inlinable
    public var earliest: Moment? { heap.first?.moment }

    /// Adds `element`, due at `moment`. Returns the number to pass to ``remove(_:)``.
    @inlinable
    @discardableResult
    public mutating func add(_ element: Element, at moment: Moment) -> UInt64 {
        let order = nextOrder
        nextOrder += 1
        heap.append(Entry(moment: moment, order: order, element: element))
        siftUp(from: heap.count - 1)
        return order
    }

    /// Removes and returns the earliest element if it is due at `now`.
    @inlinable
    public mutating func takeDue(at now: Moment) -> Element? {
        guard let first = heap.first, first.moment <= now else { return nil }
        removeEntry(at: 0)
        return first.element
    }

    /// Removes the element to which ``add(_:at:)`` gave the number `order`. Returns whether it
    /// was still waiting. Takes linear time.
    @inlinable
    @discardableResult
    public mutating func remove(_ order: UInt64) -> Bool {
        guard let index = heap.firstIndex(where: { $0.order == order }) else { return false }
        removeEntry(at: index)
        return true
    }

    /// Removes all elements.
    @inlinable
    public mutating func removeAll() { heap.removeAll() }

    /// Removes all elements for which `isStale` returns true, and releases memory that a
    /// large number of elements has taken.
    @inlinable
    public mutating func removeAll(where isStale: (Element, Moment) -> Bool) {
        heap = ContiguousArray(heap.filter { !isStale($0.element, $0.moment) })
        for index in (0..<heap.count / 2).reversed() { siftDown(from: index) }
    }

    @inlinable
    mutating func removeEntry(at index: Int) {
        let last = heap.removeLast()
        guard index < heap.count else { return }
        heap[index] = last
        siftDown(from: index)
        siftUp(from: index)
    }

    @inlinable
    mutating func siftUp(from start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].isBefore(heap[parent]) else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    @inlinable
    mutating func siftDown(from start: Int) {
        var parent = start
        while true {
            var least = parent
            let left = 2 * parent + 1
            if left < heap.count, heap[left].isBefore(heap[least]) { least = left }
            if left + 1 < heap.count, heap[left + 1].isBefore(heap[least]) { least = left + 1 }
            guard least != parent else { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
