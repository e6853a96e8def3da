import NighCore

/// The calls that this session makes to one peer over one stream, until each is over. A value without I/O.
///
/// A call waits here until the peer has granted credit for it, which returns as soon as the peer's program begins to
/// work on a call. So a program that is slow to begin slows its callers down. No number is used twice.
package struct OutgoingCalls<Waiter> {
    /// A call that is over.
    package struct End {
        package let waiter: Waiter
        package let reason: Reason
    }

    package enum Reason {
        case answered(CallOutcome)
        case timedOut
        /// The stream is over. The outcome of a call that was sent is unknown.
        case ended(wasSent: Bool)
    }

    private struct Call {
        let waiter: Waiter
        let deadline: Moment
        /// The name and content to send; nil once they are sent.
        var unsent: (name: Name, content: ByteSlice)?
    }

    private enum Name {
        case text(String)
        case number(UInt16)
    }

    private var calls: [UInt64: Call] = [:]
    private var lastNumber: UInt64 = 0
    /// The call that is sent next, unless it is over.
    private var nextToSend: UInt64 = 1
    /// The numbers of names, if names are sent once and numbered afterwards.
    private var names: [String: UInt16]?
    private var unsentNames = Ring<String>()
    private var used: UInt64 = 0
    private var credit = CallRecord.firstCredit
    private var cancelled: [UInt64] = []
    private var deadlines = CallDeadlines()

    /// - Parameter numbersNames: whether the peer understands numbers in place of names.
    package init(numbersNames: Bool = false) {
        if numbersNames { names = [:] }
    }

    /// The number of calls that are not over.
    package var count: Int { calls.count }

    /// When to call `takeExpired`.
    package var nextDeadline: Moment? { deadlines.next }

    /// Makes a call, and returns its number; nil if the names of this stream have used up all numbers.
    package mutating func begin(
        _ name: String, _ content: ByteSlice, until deadline: Moment, _ waiter: Waiter
    ) -> UInt64? {
        guard let sentName = number(of: name) else { return nil }
        lastNumber += 1
        calls[lastNumber] = Call(waiter: waiter, deadline: deadline, unsent: (sentName, content))
        if deadline != .never { deadlines.add(lastNumber, at: deadline, calls) }
        return lastNumber
    }

    private mutating func number(of name: String) -> Name? {
        guard let names else { return .text(name) }
        if let number = names[name] { return .number(number) }
        guard names.count < CallRecord.mostNames else { return nil }
        self.names?[name] = UInt16(names.count)
        unsentNames.append(name)
        return .number(UInt16(names.count))
    }

    /// Ends a call whose answer is no longer awaited. The peer hears of it if the call was sent.
    package mutating func cancel(_ number: UInt64) -> Waiter? {
        guard let call = calls.removeValue(forKey: number) else { return nil }
        if call.unsent == nil { cancelled.append(number) }
        return call.waiter
    }

    /// Ends a call whose deadline has passed; nil if there is none left.
    package mutating func takeExpired(now: Moment) -> End? {
        while let number = deadlines.takeDue(at: now) {
            if let waiter = cancel(number) { return End(waiter: waiter, reason: .timedOut) }
        }
        return nil
    }

    /// Reads a record of the peer. Returns the call that it ends, if it ends one.
    package mutating func receive(_ record: CallRecord) throws(WireError) -> End? {
        switch record {
        case .answer(let number, let outcome):
            guard number > 0, number < nextToSend else { throw .malformed("an answer to no call") }
            // The answer to a call that was cancelled comes too late.
            guard let call = calls.removeValue(forKey: number) else { return nil }
            guard call.unsent == nil else { throw .malformed("an answer to no call") }
            return End(waiter: call.waiter, reason: .answered(outcome))
        case .credit(let bytes):
            guard bytes >= credit else { throw .malformed("credit for calls that shrinks") }
            credit = bytes
            return nil
        case .request, .cancel, .name, .numbered: throw .malformed("a call in the wrong direction")
        }
    }

    /// The next record to send; nil if there is none now.
    package mutating func nextFrame(now: Moment) -> ByteSlice? {
        if let number = cancelled.popLast() { return CallRecord.cancel(number: number).frame }
        while nextToSend <= lastNumber, used < credit {
            let number = nextToSend
            guard let call = calls[number], let (name, content) = call.unsent else {
                nextToSend += 1
                continue
            }
            if let name = unsentNames.popFirst() { return CallRecord.name(name).frame }
            nextToSend += 1
            calls[number]?.unsent = nil
            let timeout = Self.milliseconds(until: call.deadline, now)
            let record: CallRecord =
                switch name {
                case .text(let text):
                    .request(number: number, timeout: timeout, name: text, content: content)
                case .number(let index):
                    .numbered(number: number, timeout: timeout, name: index, content: content)
                }
            let frame = record.frame
            used += CallRecord.cost(of: frame.count - StreamMessageParser.headerCount)
            return frame
        }
        return nil
    }

    private static func milliseconds(until deadline: Moment, _ now: Moment) -> UInt32 {
        if deadline == .never { return 0 }
        return UInt32(clamping: max(1, (deadline - now).nanoseconds / 1_000_000))
    }

    /// Ends all calls, because the stream is over.
    package mutating func end() -> [End] {
        defer {
            calls = [:]
            cancelled = []
            deadlines.removeAll()
        }
        return calls.sorted { $0.key < $1.key }.map { _, call in
            End(waiter: call.waiter, reason: .ended(wasSent: call.unsent == nil))
        }
    }
}
