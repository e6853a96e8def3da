import NighCore

/// The calls that one peer makes to this session over one stream, until each is over. A value without I/O.
///
/// They begin in the order in which the peer made them. The peer may have as many bytes of calls wait here as it was
/// granted credit for, so the owner decides with each `nextCall` how fast the peer may go on.
package struct IncomingCalls {
    /// A call that begins.
    package struct Call {
        package let number: UInt64
        package let name: String
        package let content: ByteSlice
        /// When the caller stops waiting; `.never` if it waits for ever.
        package let deadline: Moment
    }

    private struct Entry {
        let call: Call
        let cost: UInt64
        var hasBegun = false
    }

    private var calls: [UInt64: Entry] = [:]
    private var lastNumber: UInt64 = 0
    /// The names that have numbers, by their numbers.
    private var names: [String] = []
    /// The calls that have not begun. Some may be over.
    private var waiting = Ring<UInt64>()
    /// The bytes of all requests: received, of calls that no longer wait, and granted to the peer as credit.
    private var received: UInt64 = 0
    private var begun: UInt64 = 0
    private var granted = CallRecord.firstCredit
    /// Whether new credit is to be sent to the peer.
    private var owesCredit = false
    private var answers = Ring<ByteSlice>()
    private var deadlines = CallDeadlines()

    package init() {}

    /// The number of calls that wait or have begun, and are not over.
    package var count: Int { calls.count }

    /// The number of entries in the queues. Some may be for calls that are over.
    package var queuedCount: Int { waiting.count + answers.count + deadlines.count }

    /// When to call `takeExpired`.
    package var nextDeadline: Moment? { deadlines.next }

    /// Reads a record of the peer. Returns the number of a call that has begun and must end now, if it has one.
    package mutating func receive(
        _ record: CallRecord, count: Int, now: Moment
    ) throws(WireError) -> UInt64? {
        switch record {
        case .request(let number, let timeout, let name, let content):
            try add(number, timeout, name, content, count: count, now: now)
            return nil
        case .numbered(let number, let timeout, let name, let content):
            guard Int(name) < names.count else { throw .malformed("a call of a name without a number") }
            try add(number, timeout, names[Int(name)], content, count: count, now: now)
            return nil
        case .name(let name):
            guard names.count < CallRecord.mostNames else { throw .malformed("too many names of calls") }
            names.append(name)
            return nil
        case .cancel(let number):
            guard number > 0, number <= lastNumber else { throw .malformed("the end of no call") }
            return end(number)
        case .answer, .credit: throw .malformed("an answer in the wrong direction")
        }
    }

    private mutating func add(
        _ number: UInt64, _ timeout: UInt32, _ name: String, _ content: ByteSlice, count: Int, now: Moment
    ) throws(WireError) {
        guard number > lastNumber else { throw .malformed("a call with a number that is not new") }
        guard received < granted else { throw .malformed("a call without credit") }
        lastNumber = number
        waiting.append(number)
        let cost = CallRecord.cost(of: count)
        received += cost
        let deadline = timeout == 0 ? Moment.never : now + .milliseconds(Int64(timeout))
        let call = Call(number: number, name: name, content: content, deadline: deadline)
        calls[number] = Entry(call: call, cost: cost)
        if deadline != .never { deadlines.add(number, at: deadline, calls) }
    }

    /// Ends a call that the peer waits for no longer. Returns its number if it has begun.
    private mutating func end(_ number: UInt64) -> UInt64? {
        guard let entry = calls.removeValue(forKey: number) else { return nil }
        if entry.hasBegun { return number }
        release(entry.cost)
        forgetEndedCalls()
        return nil
    }

    /// Removes, from time to time, the entries of calls that are over from the queue of those that wait. A peer whose
    /// other calls take long may make and cancel any number of them, and none of these begins.
    private mutating func forgetEndedCalls() {
        guard waiting.count > 64 + 2 * calls.count else { return }
        var left = Ring<UInt64>()
        while let number = waiting.popFirst() { if calls[number] != nil { left.append(number) } }
        waiting = left
    }

    /// Ends a call whose deadline has passed, and returns its number if it has begun; nil if there is none left.
    package mutating func takeExpired(now: Moment) -> UInt64? {
        while let number = deadlines.takeDue(at: now) {
            if let begun = end(number) { return begun }
        }
        return nil
    }

    /// Begins the next call; nil if none waits.
    package mutating func nextCall() -> Call? {
        while let number = waiting.popFirst() {
            guard let entry = calls[number] else { continue }
            calls[number]?.hasBegun = true
            release(entry.cost)
            return entry.call
        }
        return nil
    }

    /// The bytes of a request wait no longer.
    private mutating func release(_ cost: UInt64) {
        begun += cost
        let possible = begun + CallRecord.firstCredit
        guard possible - granted >= CallRecord.firstCredit / 4 else { return }
        granted = possible
        owesCredit = true
    }

    /// Answers a call that has begun. Does nothing if it is over.
    package mutating func answer(_ number: UInt64, _ outcome: CallOutcome) {
        guard calls.removeValue(forKey: number) != nil else { return }
        answers.append(CallRecord.answer(number: number, outcome).frame)
    }

    /// The next record to send; nil if there is none now.
    package mutating func nextFrame() -> ByteSlice? {
        guard owesCredit else { return answers.popFirst() }
        owesCredit = false
        return CallRecord.credit(granted).frame
    }

    /// Ends all calls, because the stream is over. Returns the numbers of those that have begun.
    package mutating func end() -> [UInt64] {
        defer { self = IncomingCalls() }
        return calls.values.filter(\.hasBegun).map(\.call.number).sorted()
    }
}
