import NighCalls
import NighCore
import Testing

/// The two sides of calls, without streams between them.
@Suite("Calls") struct CallTableTests {
    private var caller = OutgoingCalls<String>()
    private var answerer = IncomingCalls()
    private let now = Moment(nanoseconds: 0)

    private mutating func ask(_ content: ByteSlice, until deadline: Moment = .never) -> UInt64 {
        caller.begin("q", content, until: deadline, "waiter")!
    }

    private func record(_ frame: ByteSlice) throws -> (record: CallRecord, count: Int) {
        var parser = StreamMessageParser()
        parser.append(frame)
        let message = try #require(try parser.next(limit: .max))
        return (try #require(try CallRecord(reading: message)), message.count)
    }

    /// Carries what the caller has to say to the other side. Returns the numbers of calls that must end there.
    private mutating func carry() throws -> [UInt64] {
        var ended: [UInt64] = []
        while let frame = caller.nextFrame(now: now) {
            let (record, count) = try record(frame)
            if let number = try answerer.receive(record, count: count, now: now) { ended.append(number) }
        }
        return ended
    }

    /// Carries the answers back. Returns those of calls for which the caller has waited.
    private mutating func carryBack() throws -> [CallOutcome] {
        var outcomes: [CallOutcome] = []
        while let frame = answerer.nextFrame() {
            let end = try caller.receive(try record(frame).record)
            if case .answered(let outcome)? = end?.reason { outcomes.append(outcome) }
        }
        return outcomes
    }

    @Test mutating func `Calls begin in order, and each gets its own answer`() throws {
        for number in UInt8(1)...20 { _ = ask(ByteSlice([number])) }
        #expect(try carry().isEmpty)
        var begun: [IncomingCalls.Call] = []
        while let call = answerer.nextCall() { begun.append(call) }
        #expect(begun.map(\.content.bytes) == (UInt8(1)...20).map { [$0] })
        for call in begun.reversed() { answerer.answer(call.number, .answer(call.content)) }
        #expect(try carryBack() == (UInt8(1)...20).reversed().map { .answer(ByteSlice([$0])) })
        #expect(caller.count == 0 && answerer.count == 0)
    }

    @Test
    mutating func `Calls wait at the caller while the other side begins none, and go on as it does`() throws {
        let content = ByteSlice([UInt8](repeating: 7, count: 10_000))
        for _ in 0..<1_000 { _ = ask(content) }
        #expect(try carry().isEmpty)
        let waiting = answerer.count
        #expect((26...28).contains(waiting), "\(waiting) calls wait at a side that begins none")
        var answered = 0
        for _ in 0..<2_000 where answered < 1_000 {
            if let call = answerer.nextCall() { answerer.answer(call.number, .answer(ByteSlice([]))) }
            answered += try carryBack().count
            _ = try carry()
        }
        #expect(answered == 1_000 && caller.count == 0 && answerer.count == 0)
    }

    @Test mutating func `Cancelled calls end at both sides, whether or not they have begun`() throws {
        let large = ByteSlice([UInt8](repeating: 7, count: 300_000))
        let numbers = [ask(ByteSlice([1])), ask(large), ask(large), ask(ByteSlice([4]))]
        _ = try carry()
        // The third has no credit yet. The first has begun, the second waits there.
        #expect(answerer.nextCall()?.number == numbers[0] && answerer.count == 2)
        for number in numbers.prefix(3) { #expect(caller.cancel(number) != nil) }
        #expect(caller.cancel(numbers[0]) == nil)
        #expect(try carry() == [numbers[0]])
        // The end of the second has given back its credit, so the fourth came.
        #expect(try carryBack().isEmpty)
        #expect(try carry().isEmpty)
        let next = answerer.nextCall()
        let last = try #require(next)
        #expect(last.content.bytes == [4])
        answerer.answer(numbers[0], .answer(ByteSlice([])))
        answerer.answer(last.number, .unknownName)
        #expect(try carryBack() == [.unknownName])
        #expect(caller.count == 0 && answerer.count == 0 && answerer.nextCall() == nil)
    }

    @Test
    mutating func `Calls that are cancelled before they begin leave nothing, however many they are`() throws {
        let content = ByteSlice([UInt8](repeating: 7, count: 1_000))
        for number in UInt64(1)...10_000 {
            let request = CallRecord.request(number: number, timeout: 1_000, name: "q", content: content)
            _ = try answerer.receive(request, count: 1_015, now: now)
            #expect(try answerer.receive(.cancel(number: number), count: 9, now: now) == nil)
        }
        #expect(answerer.count == 0 && answerer.queuedCount < 200, "\(answerer.queuedCount) entries are left")
        // The peer is told its credit once.
        let frames = [answerer.nextFrame(), answerer.nextFrame()]
        #expect(frames[0] != nil && frames[1] == nil && answerer.nextCall() == nil)
    }

    @Test mutating func `Calls end at both sides when their time has passed, also without a link`() throws {
        _ = ask(ByteSlice([1]), until: now + .seconds(3))
        _ = ask(ByteSlice([2]))
        _ = try carry()
        #expect(caller.nextDeadline == now + .seconds(3) && answerer.nextDeadline == now + .seconds(3))
        let next = answerer.nextCall()
        let begun = try #require(next)
        #expect(answerer.takeExpired(now: now + .milliseconds(2_999)) == nil)
        #expect(answerer.takeExpired(now: now + .seconds(3)) == begun.number)
        #expect(answerer.takeExpired(now: now + .seconds(3)) == nil && answerer.count == 1)
        let expired = caller.takeExpired(now: now + .seconds(3))
        let end = try #require(expired)
        if case .timedOut = end.reason {} else { Issue.record("\(end.reason)") }
        #expect(caller.takeExpired(now: now + .seconds(3)) == nil && caller.count == 1)
    }

    @Test mutating func `Calls say when their stream ends whether they were sent`() throws {
        _ = ask(ByteSlice([1]))
        _ = try carry()
        _ = ask(ByteSlice([2]))
        #expect(answerer.nextCall() != nil && answerer.end() == [1] && answerer.count == 0)
        let wasSent = caller.end().map { if case .ended(let wasSent) = $0.reason { wasSent } else { false } }
        #expect(wasSent == [true, false] && caller.count == 0)
    }

    @Test mutating func `Calls of a peer that breaks the rules are refused`() throws {
        func request(_ number: UInt64, _ count: Int = 0) -> CallRecord {
            .request(
                number: number, timeout: 0, name: "q", content: ByteSlice([UInt8](repeating: 0, count: count))
            )
        }
        _ = try answerer.receive(request(5), count: 20, now: now)
        let wrong: [CallRecord] = [
            request(5), request(4), .cancel(number: 6), .cancel(number: 0), .answer(number: 1, .unknownName),
            .credit(1 << 40),
        ]
        for record in wrong {
            #expect(throws: WireError.self, "\(record)") {
                var answerer = answerer
                _ = try answerer.receive(record, count: 20, now: now)
            }
        }
        _ = try answerer.receive(request(6), count: 300_000, now: now)
        #expect(throws: WireError.self) { _ = try answerer.receive(request(7), count: 1, now: now) }

        _ = ask(ByteSlice([1]))
        for record in [
            .answer(number: 1, .unknownName), .answer(number: 9, .unknownName), .credit(1), request(1),
        ] {
            #expect(throws: WireError.self, "\(record)") {
                var caller = caller
                _ = try caller.receive(record)
            }
        }
    }

    @Test func `Calls have records that are read as they were written, and of which no part is one`() throws {
        let records: [CallRecord] = [
            .request(number: 1, timeout: 30_000, name: "square", content: ByteSlice([1, 2, 3])),
            .cancel(number: .max), .answer(number: 2, .answer(ByteSlice([9]))),
            .answer(number: 3, .error(ByteSlice([]))), .answer(number: 4, .unknownName), .credit(1 << 40),
        ]
        for expected in records {
            let (read, count) = try record(expected.frame)
            #expect(read == expected)
            let body = expected.frame[StreamMessageParser.headerCount..<expected.frame.count]
            #expect(count == body.count)
            #expect(throws: WireError.self) { _ = try CallRecord(reading: body[0..<8]) }
        }
        #expect(try CallRecord(reading: ByteSlice([200, 1, 2, 3])) == nil)
        #expect(throws: WireError.self) {
            _ = try CallRecord(reading: ByteSlice([2, 0, 0, 0, 0, 0, 0, 0, 1, 9]))
        }
    }
}
