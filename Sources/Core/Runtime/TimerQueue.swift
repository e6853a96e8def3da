/// Things due at moments, the earliest first, those of one moment in the order they were added.
///
/// A binary heap in one array: once it has grown, adding and taking allocate nothing. Event loops keep their
/// scheduled work in one, the session machine its deadlines.
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

    /// An empty queue.
    public init() {}

    /// How many are waiting.
    @inlinable
    public var count: Int { heap.count }

    /// When the earliest is due, or nil when none waits.
    @inlinable
    public var earliest: Moment? { heap.first?.moment }

    /// Adds `element`, due at `moment`; returns a number that ``remove(_:)`` takes.
    @inlinable
    @discardableResult
    public mutating func add(_ element: Element, at moment: Moment) -> UInt64 {
        let order = nextOrder
        nextOrder += 1
        heap.append(Entry(moment: moment, order: order, element: element))
        siftUp(from: heap.count - 1)
        return order
    }

    /// Takes the earliest if it is due at `now`.
    @inlinable
    public mutating func takeDue(at now: Moment) -> Element? {
        guard let first = heap.first, first.moment <= now else { return nil }
        removeEntry(at: 0)
        return first.element
    }

    /// Removes what ``add(_:at:)`` numbered `order`; returns whether it was still waiting. Linear in the count.
    @inlinable
    @discardableResult
    public mutating func remove(_ order: UInt64) -> Bool {
        guard let index = heap.firstIndex(where: { $0.order == order }) else { return false }
        removeEntry(at: index)
        return true
    }

    /// Forgets everything.
    @inlinable
    public mutating func removeAll() { heap.removeAll() }

    /// Forgets everything of which `isStale` is so, and gives back memory that a crowd has taken.
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
