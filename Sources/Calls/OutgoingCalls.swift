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
        /// The stream is over. Nobody knows what became of a call that was sent.
        case ended(wasSent: Bool)
    }

    private struct Call {
        let waiter: Waiter
        let deadline: Moment
        /// The name and content to send; nil once they are sent.
        var unsent: (name: String, content: ByteSlice)?
    }

    private var calls: [UInt64: Call] = [:]
    private var lastNumber: UInt64 = 0
    /// The call that is sent next, unless it is over.
    private var nextToSend: UInt64 = 1
    private var used: UInt64 = 0
    private var credit = CallRecord.firstCredit
    private var cancelled: [UInt64] = []
    private var deadlines = CallDeadlines()

    package init() {}

    /// The number of calls that are not over.
    package var count: Int { calls.count }

    /// When to call `takeExpired`.
    package var nextDeadline: Moment? { deadlines.next }

    /// Makes a call, and returns its number.
    package mutating func begin(
        _ name: String, _ content: ByteSlice, until deadline: Moment, _ waiter: Waiter
    ) -> UInt64 {
        lastNumber += 1
        calls[lastNumber] = Call(waiter: waiter, deadline: deadline, unsent: (name, content))
        if deadline != .never { deadlines.add(lastNumber, at: deadline, calls) }
        return lastNumber
    }

    /// Ends a call for whose answer nobody waits any more. The peer hears of it if the call was sent.
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
        case .request, .cancel: throw .malformed("a call in the wrong direction")
        }
    }

    /// The next record to send; nil if there is none now.
    package mutating func nextFrame(now: Moment) -> ByteSlice? {
        if let number = cancelled.popLast() { return CallRecord.cancel(number: number).frame }
        while nextToSend <= lastNumber, used < credit {
            let number = nextToSend
            nextToSend += 1
            guard let call = calls[number], let (name, content) = call.unsent else { continue }
            calls[number]?.unsent = nil
            let frame = CallRecord.request(
                number: number, timeout: Self.milliseconds(until: call.deadline, now), name: name,
                content: content
            ).frame
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
