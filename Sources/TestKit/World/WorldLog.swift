import NighCore

/// What happened in a world, in order: always as a hash, as lines of text where somebody wants to read them.
///
/// Two runs of one seed must give the same hash; a run with lines costs many times one without.
struct WorldLog {
    private(set) var lines: [String] = []
    private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    let keepsLines: Bool

    init(keepsLines: Bool) { self.keepsLines = keepsLines }

    /// Notes something: `what` in numbers for the hash, in words for the reader.
    mutating func note(
        at moment: Moment, _ who: @autoclosure () -> String, _ what: Kind, _ first: Int = 0,
        _ second: Int = 0,
        _ words: @autoclosure () -> String
    ) {
        mix(UInt64(bitPattern: moment.nanoseconds))
        mix(what.rawValue)
        mix(UInt64(bitPattern: Int64(first)))
        mix(UInt64(bitPattern: Int64(second)))
        guard keepsLines else { return }
        lines.append("\(Self.time(moment))  \(who()): \(words())")
    }

    private mutating func mix(_ value: UInt64) {
        hash = (hash ^ value) &* 0x0000_0100_0000_01b3
        hash ^= hash >> 29
    }

    private static func time(_ moment: Moment) -> String {
        let microseconds = moment.nanoseconds / 1_000
        let rest = "\(1_000_000 + microseconds % 1_000_000)".dropFirst()
        return "\(microseconds / 1_000_000).\(rest)"
    }

    /// What a line is about; part of the hash.
    enum Kind: UInt64 {
        case phase = 1
        case weather, life, call, outcome, sent, received, state, invitation, event
    }
}

extension SeededGenerator {
    /// A number of `range`, each as likely.
    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

    /// True in so many of a hundred cases.
    mutating func chance(_ percent: Int) -> Bool { number(0...99) < percent }

    /// So many milliseconds.
    mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration { .milliseconds(number(range)) }

    /// One of them; nil when there is none.
    mutating func pick<Element>(_ elements: [Element]) -> Element? {
        elements.isEmpty ? nil : elements[number(0...elements.count - 1)]
    }
}
