import Testing

@testable import NighCore

// Tables that loops and machines keep: by number, and by time.

@Suite struct NumberTableTests {
    @Test func `An empty table has nothing`() {
        var table = NumberTable<Int>()
        #expect(table.isEmpty && table.count == 0 && table[7] == nil && table.values.isEmpty)
        #expect(table.remove(7) == nil)
        table[7] = nil
        #expect(table.isEmpty)
    }

    /// With 16 places, these numbers have two homes, so each lies behind others.
    @Test func `Numbers with one home are kept apart`() {
        var table = NumberTable<UInt64>()
        let numbers = (1...5).flatMap { [$0 * 1_024 + 14, $0 * 1_024 + 15] as [UInt64] }
        for number in numbers { table[number] = number }
        #expect(numbers.allSatisfy { table[$0] == $0 })
        for (index, number) in numbers.enumerated() {
            #expect(table.remove(number) == number)
            #expect(table[number] == nil && table.count == numbers.count - index - 1)
            #expect(numbers[(index + 1)...].allSatisfy { table[$0] == $0 })
        }
    }

    @Test func `It holds what a dictionary holds`() {
        var generator = SeededGenerator(seed: 4)
        for range in [1...20, 1...300, 1...UInt64.max] as [ClosedRange<UInt64>] {
            var table = NumberTable<Int>()
            var expected: [UInt64: Int] = [:]
            for round in 0..<1_000 {
                let known = expected.keys.min { $0 ^ 0x55 < $1 ^ 0x55 }
                let isNew = known == nil || Bool.random(using: &generator)
                let number = isNew ? UInt64.random(in: range, using: &generator) : known ?? 1
                if Int.random(in: 0..<5, using: &generator) < (round < 500 ? 3 : 1) {
                    table[number] = round
                    expected[number] = round
                } else {
                    #expect(table.remove(number) == expected.removeValue(forKey: number))
                }
                #expect(table[number] == expected[number] && table.count == expected.count)
            }
            #expect(table.sorted.map(\.number) == expected.keys.sorted())
            #expect(table.sorted.allSatisfy { expected[$0.number] == $0.value })
            #expect(table.values.sorted() == expected.values.sorted())
            table.removeAll()
            #expect(table.isEmpty && expected.keys.allSatisfy { table[$0] == nil })
        }
    }
}

@Suite struct TimerQueueTests {
    @Test func `Due timers come in order of time then of insertion`() {
        var queue = TimerQueue<String>()
        queue.add("late", at: Moment(nanoseconds: 20))
        queue.add("first", at: Moment(nanoseconds: 10))
        queue.add("second", at: Moment(nanoseconds: 10))
        queue.add("third", at: Moment(nanoseconds: 10))
        #expect(queue.earliest == Moment(nanoseconds: 10))
        #expect(queue.takeDue(at: Moment(nanoseconds: 9)) == nil, "never early")
        let now = Moment(nanoseconds: 10)
        #expect(
            [queue.takeDue(at: now), queue.takeDue(at: now), queue.takeDue(at: now)] == [
                "first", "second", "third",
            ])
        #expect(queue.takeDue(at: now) == nil)
        #expect(queue.takeDue(at: .never) == "late")
        #expect(queue.count == 0 && queue.earliest == nil)
    }

    @Test func `Removed timers do not fire`() {
        var queue = TimerQueue<Int>()
        let numbers = (0..<10).map { queue.add($0, at: Moment(nanoseconds: Int64($0))) }
        #expect(queue.remove(numbers[4]) == true)
        #expect(queue.remove(numbers[4]) == false, "taken back already")
        #expect(queue.takeDue(at: .never) == 0)
        #expect(queue.remove(numbers[0]) == false, "it has come already")
        var rest: [Int] = []
        while let next = queue.takeDue(at: .never) { rest.append(next) }
        #expect(rest == [1, 2, 3, 5, 6, 7, 8, 9])
        queue.add(1, at: .never)
        queue.removeAll()
        #expect(queue.count == 0 && queue.takeDue(at: .never) == nil)
    }

    /// Compares with a plain sorted array, with so few different moments that many are equal.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `A timer queue behaves like a sorted array`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = TimerQueue<Int>()
        var reference: [(moment: Moment, number: UInt64, element: Int)] = []
        for step in 0..<2_000 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                let moment = Moment(nanoseconds: Int64.random(in: 0..<40, using: &random))
                let number = queue.add(step, at: moment)
                let place = reference.firstIndex { $0.moment > moment } ?? reference.count
                reference.insert((moment, number, step), at: place)
            case 5..<8:
                let now = Moment(nanoseconds: Int64.random(in: 0..<40, using: &random))
                let expected = reference.first.flatMap { $0.moment <= now ? $0.element : nil }
                #expect(queue.takeDue(at: now) == expected)
                if expected != nil { reference.removeFirst() }
            default:
                guard let victim = reference.randomElement(using: &random) else { continue }
                #expect(queue.remove(victim.number) == true)
                reference.removeAll { $0.number == victim.number }
            }
            #expect(queue.count == reference.count)
            #expect(queue.earliest == reference.first?.moment)
        }
        for entry in reference { #expect(queue.takeDue(at: .never) == entry.element) }
        #expect(queue.takeDue(at: .never) == nil)
    }

    @Test func `Taken elements are released`() {
        final class Witness {}
        var queue = TimerQueue<Witness>()
        weak var taken: Witness?
        weak var removed: Witness?
        do {
            let one = Witness()
            let other = Witness()
            taken = one
            removed = other
            queue.add(one, at: Moment(nanoseconds: 1))
            queue.remove(queue.add(other, at: Moment(nanoseconds: 2)))
        }
        #expect(taken != nil && removed == nil)
        _ = queue.takeDue(at: .never)
        #expect(taken == nil)
    }

    @Test func `Removing stale timers keeps the order of the others`() {
        var queue = TimerQueue<Int>()
        // 0 to 999 in another order.
        for number in 0..<1_000 {
            queue.add(number * 7 % 1_000, at: Moment(nanoseconds: Int64(number * 7 % 1_000)))
        }
        queue.removeAll { number, moment in !number.isMultiple(of: 10) && moment.nanoseconds == Int64(number)
        }
        #expect(queue.count == 100)
        queue.add(5, at: Moment(nanoseconds: 5))
        var rest: [Int] = []
        while let number = queue.takeDue(at: .never) { rest.append(number) }
        #expect(rest == [0, 5] + stride(from: 10, to: 1_000, by: 10))
    }
}
