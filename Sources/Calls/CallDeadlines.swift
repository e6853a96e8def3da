import NighCore

/// When calls that are under way must be over. Those that end earlier are forgotten in time.
struct CallDeadlines {
    private var queue = TimerQueue<UInt64>()

    /// The number of deadlines that are not forgotten.
    var count: Int { queue.count }

    /// The moment at which to look again; nil if there is none.
    var next: Moment? { queue.earliest }

    /// Notes the deadline of a call.
    ///
    /// - Parameter current: the calls that are under way.
    mutating func add<Call>(_ number: UInt64, at deadline: Moment, _ current: [UInt64: Call]) {
        queue.add(number, at: deadline)
        if queue.count > 64 + 2 * current.count { queue.removeAll { number, _ in current[number] == nil } }
    }

    /// Removes and returns a call whose deadline has passed. It may be over already.
    mutating func takeDue(at now: Moment) -> UInt64? { queue.takeDue(at: now) }

    mutating func removeAll() { queue.removeAll() }
}
