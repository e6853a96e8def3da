import Testing

@testable import NighCore

@Suite struct NumberTableTests {
    @Test func anEmptyTableHasNothing() {
        var table = NumberTable<Int>()
        #expect(table.isEmpty && table.count == 0 && table[7] == nil && table.values.isEmpty)
        #expect(table.remove(7) == nil)
        table[7] = nil
        #expect(table.isEmpty)
    }

    /// With 16 places, these numbers have two homes, so each lies behind others.
    @Test func numbersWithOneHomeAreKeptApart() {
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

    @Test func itHoldsWhatADictionaryHolds() {
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
