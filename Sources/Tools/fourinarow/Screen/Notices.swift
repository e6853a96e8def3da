import NighCore

/// The last sentences said to the person, each for as long as it takes to be read.
struct Notices: Hashable {
    private struct Notice: Hashable {
        var text: String
        var end: Moment
    }

    private var notices: [Notice] = []

    private static let most = 6
    private static let shortest = Moment.Span.seconds(6)
    /// So many letters are read in one more second.
    private static let lettersASecond = 12

    /// Says something; the same as last time is not said twice.
    mutating func add(_ text: String, now: Moment) {
        guard !text.isEmpty else { return }
        let end = now + Self.shortest + .seconds(Int64(text.count / Self.lettersASecond))
        if notices.last?.text == text { notices.removeLast() }
        notices.append(Notice(text: text, end: end))
        notices.removeFirst(max(notices.count - Self.most, 0))
    }

    /// Forgets all of them.
    mutating func clear() { notices = [] }

    /// What is still said, the newest last.
    func visible(at now: Moment) -> [String] { notices.filter { now < $0.end }.map(\.text) }

    /// When the next one disappears.
    func nextChange(after now: Moment) -> Moment? { notices.map(\.end).filter { now < $0 }.min() }
}
