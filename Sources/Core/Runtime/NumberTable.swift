/// Values by numbers that this process itself hands out, such as those of links and dials.
///
/// It is used in place of a dictionary because nobody else chooses the numbers. So they need not be hashed in a way
/// that an attacker cannot predict, which costs ten times as much as finding the value. The order of the values means
/// nothing.
struct NumberTable<Value> {
    // Open addressing: a number is at its home or in the next places behind it, without a gap. Zero marks a free place.
    private var numbers: ContiguousArray<UInt64> = []
    private var kept: ContiguousArray<Value?> = []
    /// The number of values.
    private(set) var count = 0

    /// The number of places at first. A power of two, as all numbers of places.
    private static var leastCapacity: Int { 4 }

    var isEmpty: Bool { count == 0 }

    /// All values.
    var values: [Value] { kept.compactMap { $0 } }

    /// All numbers with their values, the lowest number first.
    var sorted: [(number: UInt64, value: Value)] {
        zip(numbers, kept).compactMap { number, value in value.map { (number, $0) } }
            .sorted { $0.number < $1.number }
    }

    /// The value of `number`, which is not zero. Setting it to nil removes it.
    subscript(number: UInt64) -> Value? {
        get {
            guard count > 0 else { return nil }
            let place = place(of: number)
            return numbers[place] == number ? kept[place] : nil
        }
        set {
            guard let newValue else {
                remove(number)
                return
            }
            precondition(number != 0)
            // A quarter of the places is free, so each search ends.
            if (count + 1) * 4 > numbers.count * 3 { grow() }
            let place = place(of: number)
            if numbers[place] != number { count += 1 }
            numbers[place] = number
            kept[place] = newValue
        }
    }

    /// Removes and returns the value of `number`.
    @discardableResult
    mutating func remove(_ number: UInt64) -> Value? {
        guard count > 0 else { return nil }
        var free = place(of: number)
        guard numbers[free] == number else { return nil }
        let removed = kept[free].take()
        numbers[free] = 0
        count -= 1
        // Closes the gap, so that all numbers behind it can still be found from their homes.
        var next = (free + 1) & mask
        while numbers[next] != 0 {
            let distance = (next &- home(of: numbers[next])) & mask
            if distance >= (next &- free) & mask {
                numbers[free] = numbers[next]
                kept[free] = kept[next].take()
                numbers[next] = 0
                free = next
            }
            next = (next + 1) & mask
        }
        return removed
    }

    /// Removes all values, and releases the memory.
    mutating func removeAll() { self = NumberTable() }

    private var mask: Int { numbers.count &- 1 }

    private func home(of number: UInt64) -> Int { Int(truncatingIfNeeded: number) & mask }

    /// Returns the place at which `number` is, or the free one to which it belongs.
    private func place(of number: UInt64) -> Int {
        var place = home(of: number)
        while numbers[place] != number, numbers[place] != 0 { place = (place + 1) & mask }
        return place
    }

    private mutating func grow() {
        let (oldNumbers, oldValues) = (numbers, kept)
        let capacity = max(Self.leastCapacity, oldNumbers.count * 2)
        numbers = ContiguousArray(repeating: 0, count: capacity)
        kept = ContiguousArray(repeating: nil, count: capacity)
        for (number, value) in zip(oldNumbers, oldValues) where number != 0 {
            let place = place(of: number)
            numbers[place] = number
            kept[place] = value
        }
    }
}
