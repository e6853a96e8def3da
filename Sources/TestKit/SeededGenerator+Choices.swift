import NighCore

extension SeededGenerator {
    /// Returns a random number of `range`, each equally likely.
    package mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

    /// Returns true in `percent` of a hundred cases.
    package mutating func chance(_ percent: Int) -> Bool { number(0...99) < percent }

    /// Returns a random number of milliseconds.
    package mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration { .milliseconds(number(range)) }

    /// Returns a random element; nil if there is none.
    package mutating func pick<Element>(_ elements: [Element]) -> Element? {
        elements.isEmpty ? nil : elements[number(0...elements.count - 1)]
    }
}
