import NighCalls
import NighCore

/// The two sides of the calls on one stream. A record of one side reaches the other changed, twice, cut anywhere, or
/// not at all, and an attacker adds records that neither side has sent.
struct CallsTarget {
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

    /// The most bytes of a record.
    private static let limit = 150_000
    private static let madeUp: [CallRecord] = [
        .request(number: 1, timeout: 0, name: "q", content: ByteSlice([1, 2, 3])),
        .request(number: 7, timeout: 20, name: "", content: ByteSlice([])),
        .request(number: .max, timeout: .max, name: "Küche", content: ByteSlice([7])),
        .numbered(number: 3, timeout: 5, name: 0, content: ByteSlice([])), .name("x"), .cancel(number: 2),
        .answer(number: 1, .answer(ByteSlice([9]))), .answer(number: 3, .error(ByteSlice([]))),
        .answer(number: 2, .unknownName), .credit(1 << 19), .credit(.max),
    ]

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
    private var isOver = false

    static func run(_ input: inout Input) throws {
        var target = CallsTarget(isDisturbed: !input.isUsual())
        while !input.isAtEnd, !target.isOver {
            try target.step(&input)
            try target.check()
        }
        try target.end()
    }

    private init(isDisturbed: Bool) { self.isDisturbed = isDisturbed }

    private mutating func step(_ input: inout Input) throws {
        switch input.number(below: 8) {
        case 0: for _ in 0...input.number(below: 12) { begin(&input) }
        case 1: while let frame = caller.nextFrame(now: now) { carry(frame, to: \.toAnswerer, &input) }
        case 2: try deliver(&input)
        case 3: try deliverBack(&input)
        case 4: for _ in 0...input.number(below: 20) { try beginNext() }
        case 5: for _ in 0...input.number(below: 20) { answer(&input) }
        case 6:
            unsentAnswers = 0
            while let frame = answerer.nextFrame() { carry(frame, to: \.toCaller, &input) }
        default:
            guard input.isUsual(), !numbers.isEmpty else {
                return try pass(.milliseconds(Int64(input.number(below: 700))))
            }
            if let waiter = caller.cancel(input.pick(numbers)) { try noteEnd(waiter) }
        }
    }

    // MARK: The caller

    private mutating func begin(_ input: inout Input) {
        let content = [UInt8](repeating: 5, count: input.pick([0, 1, 100, 3_000, 100_000]))
        let deadline = now + .milliseconds(input.pick([1, 30, 5_000]))
        // More names than have numbers.
        let name = input.isUsual() ? "q" : "q\(input.number(below: CallRecord.mostNames + 40))"
        let until = input.isUsual() ? deadline : .never
        if let number = caller.begin(name, ByteSlice(content), until: until, numbers.count) {
            names[number] = name
            numbers.append(number)
        }
    }

    private mutating func noteEnd(_ waiter: Int) throws {
        try expect(
            numbers.indices.contains(waiter) && ended.insert(waiter).inserted, "call \(waiter) ends twice")
    }

    // MARK: The side that answers

    private mutating func beginNext() throws {
        guard let call = answerer.nextCall() else { return }
        let isRight = calls[call.number]?.hasBegun == false && call.number > lastBegun
        try expect(isRight, "call \(call.number) begins that did not wait, after \(lastBegun)")
        let isNamed = isDisturbed || call.name == names[call.number]
        try expect(isNamed, "call \(call.number) begins as \(call.name)")
        calls[call.number]?.hasBegun = true
        lastBegun = call.number
    }

    private mutating func answer(_ input: inout Input) {
        let begun = calls.filter(\.value.hasBegun).keys.sorted()
        guard !begun.isEmpty else { return }
        let number = input.pick(begun)
        let content = ByteSlice([UInt8](repeating: 8, count: input.pick([0, 3, 500])))
        let outcomes: [CallOutcome] = [
            .answer(content), .error(content), .unknownName, .refused(.noActor, "gone"),
        ]
        answerer.answer(number, input.pick(outcomes))
        calls[number] = nil
        unsentAnswers += 1
    }

    private mutating func endThere(_ number: UInt64) throws {
        let hadBegun = calls.removeValue(forKey: number)?.hasBegun == true
        try expect(hadBegun, "the work on call \(number) ends, which has not begun")
    }

    private mutating func pass(_ time: Moment.Span) throws {
        now = now + time
        while let end = caller.takeExpired(now: now) {
            guard case .timedOut = end.reason else {
                throw Finding(description: "a deadline passes: \(end.reason)")
            }
            try noteEnd(end.waiter)
        }
        while let number = answerer.takeExpired(now: now) { try endThere(number) }
        calls = calls.filter { $0.value.hasBegun || $0.value.deadline > now }
        try expect(calls.allSatisfy { $0.value.deadline > now }, "a call is worked on after its deadline")
    }

    // MARK: Between them

    private mutating func carry(
        _ frame: ByteSlice, to wire: WritableKeyPath<Self, Wire>, _ input: inout Input
    ) {
        var frames = [frame]
        if isDisturbed {
            switch input.number(below: 8) {
            case 1: frames = []
            case 2: frames = [frame, frame]
            case 3: frames = [input.pick(Self.madeUp).frame, frame]
            case 4: frames = [ByteSlice(input.edited(frame.bytes))]
            case 5:
                let body = input.edited(Array(frame.bytes.dropFirst(StreamMessageParser.headerCount)))
                frames = [ByteSlice(StreamMessageParser.header(of: body.count) + body)]
            default: break
            }
        }
        self[keyPath: wire].frames += frames
    }

    private mutating func deliver(_ input: inout Input) throws {
        try read(\.toAnswerer, &input) { target, record, count throws(WireError) in
            let ended = try target.answerer.receive(record, count: count, now: target.now)
            target.note(record, count)
            return ended
        } then: { target, ended in
            if let ended { try target.endThere(ended) }
        }
    }

    /// Notes a record that the answering side has received.
    private mutating func note(_ record: CallRecord, _ count: Int) {
        switch record {
        case .request(let number, let timeout, _, _), .numbered(let number, let timeout, _, _):
            let cost = CallRecord.cost(of: count)
            mostCost = max(mostCost, cost)
            let deadline: Moment = timeout == 0 ? .never : now + .milliseconds(Int64(timeout))
            calls[number] = Call(cost: cost, deadline: deadline)
        case .cancel(let number): if calls[number]?.hasBegun == false { calls[number] = nil }
        default: break
        }
    }

    private mutating func deliverBack(_ input: inout Input) throws {
        try read(\.toCaller, &input) { target, record, _ throws(WireError) in
            try target.caller.receive(record)
        } then: { target, end in
            guard let end else { return }
            guard case .answered = end.reason else {
                throw Finding(description: "an answer ends it: \(end.reason)")
            }
            try target.noteEnd(end.waiter)
        }
    }

    /// Takes the bytes on a wire, or some of them, in pieces.
    private mutating func read<Outcome>(
        _ wire: WritableKeyPath<Self, Wire>, _ input: inout Input,
        handle: (inout Self, CallRecord, Int) throws(WireError) -> Outcome,
        then follow: (inout Self, Outcome) throws -> Void
    ) throws {
        let frames = self[keyPath: wire].frames
        let count = frames.count - input.number(below: frames.count + 1)
        self[keyPath: wire].frames.removeFirst(count)
        for bytes in input.slices(of: frames.prefix(count).flatMap(\.bytes)) {
            self[keyPath: wire].parser.append(bytes)
            while !isOver {
                var isWaiting = false
                let outcome = try accepted { () throws(WireError) -> Outcome? in
                    guard let message = try self[keyPath: wire].parser.next(limit: Self.limit) else {
                        isWaiting = true
                        return nil
                    }
                    guard let record = try CallRecord(reading: message) else { return nil }
                    if !Self.isSame(record, as: message) { differing = record }
                    return try handle(&self, record, message.count)
                }
                if let differing {
                    throw Finding(description: "\(differing) differs when it is written again")
                }
                if outcome == nil {
                    try expect(isDisturbed, "what nobody has changed is refused")
                    isOver = true
                }
                if let outcome = outcome ?? nil { try follow(&self, outcome) }
                if isWaiting { break }
            }
        }
    }

    private var differing: CallRecord?

    /// Whether a record that is written again has the same fields, and content of the same length.
    private static func isSame(_ record: CallRecord, as message: ByteSlice) -> Bool {
        // The words of a refusal are changed, so that they can be shown.
        if case .answer(_, .refused) = record { return true }
        let frame = record.frame
        let body = frame[StreamMessageParser.headerCount..<frame.count]
        let count = min(message.count, CallRecord.longestHeader)
        return body.count == message.count && body[0..<count] == message[0..<count]
    }

    // MARK: Checks

    private mutating func check() throws {
        guard !isOver else { return }
        try expect(answerer.count == calls.count, "\(answerer.count) calls, expected \(calls.count)")
        let waiting = calls.values.reduce(0 as UInt64) { $1.hasBegun ? $0 : $0 + $1.cost }
        let isGranted = waiting < CallRecord.firstCredit + mostCost || calls.isEmpty
        try expect(isGranted, "\(waiting) bytes of calls wait")
        mostCalls = max(mostCalls, calls.count)
        let queued = answerer.queuedCount - unsentAnswers
        try expect(queued <= 2 * (65 + 2 * mostCalls), "\(queued) entries for at most \(mostCalls) calls")
        let left = numbers.count - ended.count
        try expect(caller.count == left, "\(caller.count) calls are under way, expected \(left)")
    }

    /// Ends the stream. Every call is over then, and each has ended once.
    private mutating func end() throws {
        for end in caller.end() {
            guard case .ended = end.reason else {
                throw Finding(description: "the stream ends: \(end.reason)")
            }
            try noteEnd(end.waiter)
        }
        for number in answerer.end() { try endThere(number) }
        let areOver = ended.count == numbers.count && caller.count == 0 && answerer.count == 0
        try expect(areOver, "\(numbers.count - ended.count) calls never end")
        let isSilent = caller.nextFrame(now: now) == nil && answerer.nextFrame() == nil
        try expect(isSilent, "something is sent on a stream that is over")
    }
}
