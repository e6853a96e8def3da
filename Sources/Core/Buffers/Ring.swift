/// A queue in one array. Once it has grown, appending to it and taking from its front do not allocate.
@usableFromInline
package struct Ring<Element> {
    @usableFromInline var storage: ContiguousArray<Element?> = []
    @usableFromInline var head = 0
    @usableFromInline package var count = 0

    @inlinable
    package init() {}

    @inlinable
    package var isEmpty: Bool { count == 0 }

    @inlinable
    func slot(_ index: Int) -> Int { (head &+ index) & (storage.count &- 1) }

    @inlinable
    subscript(index: Int) -> Element {
        get {
            precondition(index >= 0 && index < count)
            return storage[slot(index)].unsafelyUnwrapped
        }
        set {
            precondition(index >= 0 && index < count)
            storage[slot(index)] = newValue
        }
    }

    /// Changes the element at `index` in place.
    @inlinable
    mutating func update(_ index: Int, _ change: (inout Element) -> Void) {
        precondition(index >= 0 && index < count)
        change(&storage[slot(index)]!)
    }

    @inlinable
    var first: Element? { count == 0 ? nil : storage[head] }

    /// Adds an element, which is moved if the caller does not use it again.
    @inlinable
    package mutating func append(_ element: consuming Element) {
        if count == storage.count { grow() }
        storage[slot(count)] = element
        count &+= 1
    }

    @inlinable
    mutating func prepend(_ element: Element) {
        if count == storage.count { grow() }
        head = (head &- 1) & (storage.count &- 1)
        storage[head] = element
        count &+= 1
    }

    @inlinable
    @discardableResult
    package mutating func popFirst() -> Element? {
        guard count > 0 else { return nil }
        let element = storage[head].take()
        head = (head &+ 1) & (storage.count &- 1)
        count &-= 1
        return element
    }

    @inlinable
    @discardableResult
    mutating func popLast() -> Element? {
        guard count > 0 else { return nil }
        let last = slot(count &- 1)
        let element = storage[last].take()
        count &-= 1
        return element
    }

    @inlinable
    package mutating func removeAll() {
        while popFirst() != nil {}
    }

    /// Small, because every idle connection has several rings that never hold more. A power of two, as all capacities.
    @inlinable
    static var leastCapacity: Int { 2 }

    @inlinable
    mutating func grow() {
        var larger = ContiguousArray<Element?>()
        let capacity = max(Self.leastCapacity, storage.count * 2)
        larger.reserveCapacity(capacity)
        for index in 0..<count { larger.append(storage[slot(index)]) }
        while larger.count < capacity { larger.append(nil) }
        storage = larger
        head = 0
    }
}
