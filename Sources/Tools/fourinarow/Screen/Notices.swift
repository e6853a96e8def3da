import NighCore

/// The last sentences for the person, each shown for as long as it takes to read.
struct Notices: Hashable {
    struct Notice: Hashable {
        var text: String
        var start: Moment
        var end: Moment
    }

    private var notices: [Notice] = []

    private static let limit = 6
    private static let shortestTime = Moment.Span.seconds(6)
    /// A notice is shown for one more second for each of this many letters.
    private static let lettersPerSecond = 12

    /// Adds a sentence. If it is the same as the last one, it replaces that.
    mutating func add(_ text: String, now: Moment) {
        guard !text.isEmpty else { return }
        let end = now + Self.shortestTime + .seconds(Int64(text.count / Self.lettersPerSecond))
        if notices.last?.text == text { notices.removeLast() }
        notices.append(Notice(text: text, start: now, end: end))
        notices.removeFirst(max(notices.count - Self.limit, 0))
    }

    mutating func clear() { notices = [] }

    /// Returns the sentences that are still shown, the newest last.
    func visible(at now: Moment) -> [Notice] { notices.filter { now < $0.end } }

    /// Returns when the next sentence disappears.
    func nextChange(after now: Moment) -> Moment? { notices.map(\.end).filter { now < $0 }.min() }
}
