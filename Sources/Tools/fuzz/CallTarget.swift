import NighCalls
import NighCore

/// The two sides of calls. What one says reaches the other changed, twice, cut anywhere, or not at all, and somebody
/// adds what neither has said.
enum CallTarget {
    /// How often something happened.
    struct Reach {
        var begun = 0
        var answered = 0
        var cancelled = 0
        var timedOut = 0
        var refused = 0
    }

    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Reach {
        var pair = CallPair(isDisturbed: !mutator.oneIn(4))
        for _ in 0...mutator.number(below: 150) where !pair.isOver {
            try pair.step(&mutator)
            try pair.check()
        }
        try pair.end()
        return pair.reach
    }
}

/// Both sides of the calls on one stream, and what they must have kept in mind.
private struct CallPair {
    /// The bytes that one side has written and the other has not read, and the beginning of a record.
    private struct Wire {
        var frames: [ByteSlice] = []
        var parser = StreamMessageParser()
    }

    /// A call at the side that answers.
    private struct Call {
        let cost: UInt64
        let deadline: Moment
        var hasBegun = false
    }

    private let isDisturbed: Bool
    private var caller = OutgoingCalls<Int>(numbersNames: true)
    private var answerer = IncomingCalls()
    private var toAnswerer = Wire()
    private var toCaller = Wire()
    private var now = Moment(nanoseconds: 0)
    /// The calls that were made, by the numbers of their waiters, and those of them that are over.
    private var numbers: [UInt64] = []
    private var names: [UInt64: String] = [:]
    private var ended: Set<Int> = []
    /// The calls that have come, and are not over.
    private var calls: [UInt64: Call] = [:]
    private var lastBegun: UInt64 = 0
    private var unsentAnswers = 0
    private var mostCost: UInt64 = 0
    private var mostCalls = 0
    private(set) var isOver = false
    private(set) var reach = CallTarget.Reach()

    /// The most bytes of a record.
    private static let limit = 150_000
    private static let madeUp: [ByteSlice] =
        ([
            .request(number: 1, timeout: 0, name: "q", content: ByteSlice([1, 2, 3])),
            .request(number: 7, timeout: 20, name: "", content: ByteSlice([])),
            .request(number: .max, timeout: .max, name: "Küche", content: ByteSlice([7])),
            .cancel(number: 2), .cancel(number: 0), .answer(number: 1, .answer(ByteSlice([9]))),
            .answer(number: 3, .error(ByteSlice([]))), .answer(number: 2, .unknownName), .credit(1 << 19),
            .credit(.max),
        ] as [CallRecord]).map(\.frame)

    init(isDisturbed: Bool) { self.isDisturbed = isDisturbed }

    mutating func step(_ mutator: inout Mutator) throws {
        switch mutator.number(below: 12) {
        case 0, 1: for _ in 0...mutator.number(below: 12) { begin(&mutator) }
        case 2, 3: while let frame = caller.nextFrame(now: now) { carry(frame, to: \.toAnswerer, &mutator) }
        case 4, 5: try deliver(&mutator)
        case 6, 7: try deliverBack(&mutator)
        case 8: for _ in 0...mutator.number(below: 20) { try beginNext() }
        case 9: for _ in 0...mutator.number(below: 20) { answer(&mutator) }
        case 10:
            unsentAnswers = 0
            while let frame = answerer.nextFrame() { carry(frame, to: \.toCaller, &mutator) }
        default:
            if !numbers.isEmpty, mutator.oneIn(2) {
                try cancel(mutator.pick(numbers))
            } else {
                try pass(.milliseconds(Int64(mutator.pick([0, 1, 30, 700]))))
            }
        }
    }

    // MARK: The caller

    private mutating func begin(_ mutator: inout Mutator) {
        let count = mutator.oneIn(20) ? 100_000 : mutator.pick([0, 1, 100, 100, 3_000])
        let content = [UInt8](repeating: 5, count: count)
        let timeout = mutator.pick([1, 30, 5_000, 5_000])
        let deadline = mutator.oneIn(2) ? .never : now + .milliseconds(Int64(timeout))
        // More names than have numbers.
        let name = mutator.oneIn(4) ? "q\(mutator.pick(Array(0..<CallRecord.mostNames + 40)))" : "q"
        if let number = caller.begin(name, ByteSlice(content), until: deadline, numbers.count) {
            names[number] = name
            numbers.append(number)
        }
    }

    private mutating func note(_ waiter: Int) throws {
        guard numbers.indices.contains(waiter), ended.insert(waiter).inserted else {
            throw Finding("call \(waiter) ends twice")
        }
    }

    private mutating func cancel(_ number: UInt64) throws {
        guard let waiter = caller.cancel(number) else { return }
        reach.cancelled += 1
        try note(waiter)
    }

    // MARK: The side that answers

    private mutating func beginNext() throws {
        guard let call = answerer.nextCall() else { return }
        guard calls[call.number]?.hasBegun == false, call.number > lastBegun else {
            throw Finding("call \(call.number) begins that did not wait, after \(lastBegun)")
        }
        guard isDisturbed || call.name == names[call.number] else {
            throw Finding("call \(call.number) begins as \(call.name)")
        }
        calls[call.number]?.hasBegun = true
        lastBegun = call.number
        reach.begun += 1
    }

    private mutating func answer(_ mutator: inout Mutator) {
        let begun = calls.filter(\.value.hasBegun).keys.sorted()
        guard !begun.isEmpty else { return }
        let number = mutator.pick(begun)
        let content = ByteSlice(mutator.bytes(mutator.pick([0, 3, 500])))
        answerer.answer(
            number,
            mutator.pick([.answer(content), .error(content), .unknownName, .refused(.noActor, "gone")]))
        calls[number] = nil
        unsentAnswers += 1
    }

    private mutating func endThere(_ number: UInt64) throws {
        guard calls.removeValue(forKey: number)?.hasBegun == true else {
            throw Finding("the work on call \(number) ends, which has not begun")
        }
    }

    private mutating func pass(_ time: Moment.Span) throws {
        now = now + time
        while let end = caller.takeExpired(now: now) {
            guard case .timedOut = end.reason else { throw Finding("a deadline passes: \(end.reason)") }
            reach.timedOut += 1
            try note(end.waiter)
        }
        while let number = answerer.takeExpired(now: now) { try endThere(number) }
        calls = calls.filter { $0.value.hasBegun || $0.value.deadline > now }
        if let left = calls.first(where: { $0.value.deadline <= now }) {
            throw Finding("call \(left.key) is still worked on after its deadline")
        }
    }

    // MARK: Between them

    private mutating func carry(
        _ frame: ByteSlice, to wire: WritableKeyPath<Self, Wire>, _ mutator: inout Mutator
    ) {
        guard isDisturbed, mutator.oneIn(12) else { return self[keyPath: wire].frames.append(frame) }
        var bytes = frame.bytes
        switch mutator.number(below: 6) {
        case 0: return
        case 1: self[keyPath: wire].frames.append(frame)
        case 2: self[keyPath: wire].frames.append(mutator.pick(Self.madeUp))
        case 3:
            var body = Array(bytes.dropFirst(StreamMessageParser.headerCount))
            mutator.change(&body, with: [body])
            bytes = StreamMessageParser.header(of: body.count) + body
        case 4 where bytes.count > 12:
            // The number.
            bytes[5 + mutator.number(below: 8)] = UInt8(truncatingIfNeeded: mutator.pick(Mutator.edges))
        default: mutator.change(&bytes, with: [bytes])
        }
        self[keyPath: wire].frames.append(ByteSlice(bytes))
    }

    private mutating func deliver(_ mutator: inout Mutator) throws {
        for bytes in take(\.toAnswerer, &mutator) {
            try read(bytes, \.toAnswerer) { pair, record, count throws(WireError) in
                let ended = try pair.answerer.receive(record, count: count, now: pair.now)
                pair.followed(record, count)
                return ended
            } then: { pair, ended in
                if let ended { try pair.endThere(ended) }
            }
        }
    }

    /// Keeps in mind what the answering side has been told.
    private mutating func followed(_ record: CallRecord, _ count: Int) {
        switch record {
        case .request(let number, let timeout, _, _), .numbered(let number, let timeout, _, _):
            let cost = CallRecord.cost(of: count)
            mostCost = max(mostCost, cost)
            calls[number] = Call(
                cost: cost, deadline: timeout == 0 ? .never : now + .milliseconds(Int64(timeout)))
        case .cancel(let number): if calls[number]?.hasBegun == false { calls[number] = nil }
        default: break
        }
    }

    private mutating func deliverBack(_ mutator: inout Mutator) throws {
        for bytes in take(\.toCaller, &mutator) {
            try read(bytes, \.toCaller) { pair, record, _ throws(WireError) in
                try pair.caller.receive(record)
            } then: { pair, end in
                guard let end else { return }
                guard case .answered = end.reason else { throw Finding("an answer ends it: \(end.reason)") }
                pair.reach.answered += 1
                try pair.note(end.waiter)
            }
        }
    }

    /// Takes what is on a wire, or some of it, in pieces.
    private mutating func take(
        _ wire: WritableKeyPath<Self, Wire>, _ mutator: inout Mutator
    ) -> [ByteSlice] {
        let count = mutator.number(below: self[keyPath: wire].frames.count + 1)
        defer { self[keyPath: wire].frames.removeFirst(count) }
        let frames = self[keyPath: wire].frames.prefix(count)
        // Joining them all takes most of the time.
        guard mutator.oneIn(4) else { return Array(frames) }
        return mutator.cut(frames.flatMap(\.bytes))
    }

    private mutating func read<Outcome>(
        _ bytes: ByteSlice, _ wire: WritableKeyPath<Self, Wire>,
        handle: (inout Self, CallRecord, Int) throws(WireError) -> Outcome,
        then follow: (inout Self, Outcome) throws -> Void
    ) throws {
        guard !isOver else { return }
        self[keyPath: wire].parser.append(bytes)
        while true {
            let outcome: Outcome
            do throws(WireError) {
                guard let message = try self[keyPath: wire].parser.next(limit: Self.limit) else { return }
                guard let record = try CallRecord(reading: message) else { continue }
                guard Self.isSame(record, as: message) else {
                    throw .malformed("\(Self.difference): \(record)")
                }
                outcome = try handle(&self, record, message.count)
            } catch {
                if error.message.isEmpty { throw Finding("a record is refused without a reason") }
                if error.message.hasPrefix(Self.difference) { throw Finding(error.message) }
                if !isDisturbed { throw Finding("what nobody has changed is refused: \(error.message)") }
                reach.refused += 1
                isOver = true
                return
            }
            try follow(&self, outcome)
        }
    }

    /// Whether a record that is written again has the same fields and as long a content.
    private static func isSame(_ record: CallRecord, as message: ByteSlice) -> Bool {
        // The words of a refusal are changed, so that they can be shown.
        if case .answer(_, .refused) = record { return true }
        let frame = record.frame
        let body = frame[StreamMessageParser.headerCount..<frame.count]
        let count = min(message.count, CallRecord.longestHeader)
        return body.count == message.count && body[0..<count] == message[0..<count]
    }

    private static let difference = "a record differs when it is written again"

    // MARK: Checks

    mutating func check() throws {
        guard !isOver else { return }
        guard answerer.count == calls.count else {
            throw Finding("\(answerer.count) calls, expected \(calls.count)")
        }
        let waiting = calls.values.reduce(0 as UInt64) { $1.hasBegun ? $0 : $0 + $1.cost }
        guard waiting < CallRecord.firstCredit + mostCost || calls.isEmpty else {
            throw Finding("\(waiting) bytes of calls wait")
        }
        mostCalls = max(mostCalls, calls.count)
        let queued = answerer.queuedCount - unsentAnswers
        guard queued <= 2 * (65 + 2 * mostCalls) else {
            throw Finding("\(queued) entries are queued for at most \(mostCalls) calls")
        }
        guard caller.count == numbers.count - ended.count else {
            throw Finding("\(caller.count) calls are under way, expected \(numbers.count - ended.count)")
        }
    }

    /// Ends the stream. Every call is over then, and each has ended once.
    mutating func end() throws {
        for end in caller.end() {
            guard case .ended = end.reason else { throw Finding("the stream ends: \(end.reason)") }
            try note(end.waiter)
        }
        for number in answerer.end() { try endThere(number) }
        guard ended.count == numbers.count, caller.count == 0, answerer.count == 0 else {
            throw Finding("\(numbers.count - ended.count) calls never end")
        }
        guard caller.nextFrame(now: now) == nil, answerer.nextFrame() == nil else {
            throw Finding("something is sent on a stream that is over")
        }
    }
}
