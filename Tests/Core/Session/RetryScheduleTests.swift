import NighCore
import Testing

@Suite struct RetryScheduleTests {
    private static let puma = [TransportAddress(scheme: "tcp", value: "puma")]
    private static let elsewhere = [TransportAddress(scheme: "bluetooth", value: "puma")]
    private static let refused = NighError(.connecting, .refused)

    private static func busy(for duration: Duration) -> NighError {
        var error = NighError(.inviting, .busy)
        error.retryAfter = duration
        return error
    }

    @Test("Pauses grow from a quarter of a second to two seconds, and the last call has some time left")
    func pauses() {
        var call = RetrySchedule(from: .at(0), until: .at(10_000))
        var now = Moment.at(0)
        var calls = [now]
        while calls.count < 100 {
            call.callStarted(along: Self.puma, at: now)
            guard let next = call.nextCall(after: Self.refused, at: now) else { break }
            calls.append(next)
            now = next
        }
        #expect(calls == [0, 250, 750, 1_750, 3_750, 5_750, 7_750, 9_750].map(Moment.at))
    }

    @Test("Without a deadline it continues, however long that takes")
    func endless() throws {
        var call = RetrySchedule(from: .at(0), until: .never)
        var now = Moment.at(0)
        for _ in 0..<10_000 {
            call.callStarted(along: Self.puma, at: now)
            let next = call.nextCall(after: Self.refused, at: now)
            now = try #require(next)
        }
        #expect(now > .at(19_000_000))
    }

    @Test("A route that appears or returns ends the pause; known routes do not")
    func routes() {
        var call = RetrySchedule(from: .at(0), until: .never)
        call.callStarted(along: Self.puma, at: .at(0))
        #expect(call.nextCall(after: Self.refused, at: .at(0)) == .at(250))
        call.callStarted(along: Self.puma, at: .at(250))
        #expect(call.nextCall(after: Self.refused, at: .at(250)) == .at(750))
        #expect(call.nextCall(along: Self.puma, at: .at(600)) == nil)
        #expect(call.nextCall(along: Self.puma + Self.elsewhere, at: .at(600)) == .at(600))
        call.callStarted(along: Self.puma, at: .at(1_000))
        #expect(call.nextCall(along: [], at: .at(1_100)) == nil)
        #expect(call.nextCall(along: Self.puma, at: .at(1_600)) == .at(1_600))
    }

    @Test("A route that appeared during the call is tried next")
    func routeDuringTheCall() {
        var call = RetrySchedule(from: .at(0), until: .never)
        call.callStarted(along: Self.puma, at: .at(0))
        _ = call.nextCall(along: Self.puma + Self.elsewhere, at: .at(10))
        #expect(call.nextCall(after: Self.refused, at: .at(5_000)) == .at(5_000))
    }

    @Test("A route that appears and disappears repeatedly causes at most four calls a second")
    func flapping() throws {
        var call = RetrySchedule(from: .at(0), until: .never)
        var now = Moment.at(0)
        for _ in 0..<40 {
            call.callStarted(along: Self.puma, at: now)
            _ = call.nextCall(along: [], at: now)
            _ = call.nextCall(along: Self.puma, at: now)
            let next = call.nextCall(after: Self.refused, at: now)
            now = try #require(next)
        }
        #expect(now == .at(10_000))
    }

    @Test("A requested retry time is kept, whatever routes appear; a time beyond the deadline ends the calls")
    func later() {
        var call = RetrySchedule(from: .at(0), until: .at(10_000))
        call.callStarted(along: Self.puma, at: .at(0))
        #expect(call.nextCall(after: Self.busy(for: .seconds(5)), at: .at(0)) == .at(5_000))
        #expect(call.nextCall(along: Self.elsewhere, at: .at(1_000)) == nil)
        call.callStarted(along: Self.puma, at: .at(5_000))
        #expect(call.nextCall(after: Self.busy(for: .seconds(5)), at: .at(5_000)) == nil)
    }

    @Test("An answer of the peer is final and is reported unchanged")
    func answers() {
        var call = RetrySchedule(from: .at(0), until: .never)
        for cause in [
            NighError.Cause.declined("no"), .full, .busy, .notPaired, .wrongService("other"), .sameIdentity,
            .cancelled, .noCommonSecurity(theyEncrypt: true), .noCommonVersion(ours: 1...1, theirs: 2...2),
        ] {
            let error = NighError(.inviting, cause)
            #expect(call.nextCall(after: error, at: .at(0)) == nil, "\(cause)")
            #expect(call.failure(error, at: .at(9_000)) == error)
        }
    }

    @Test("If several attempts failed, one that may succeed later is enough to call again")
    func severalWays() {
        var call = RetrySchedule(from: .at(0), until: .never)
        let stranger = NighError(.securing, .insecure(.noCertificate))
        let other = NighError(.greeting, .wrongService("other"))
        func all(_ attempts: [NighError]) -> NighError {
            NighError(.inviting, .allFailed, attempts: attempts)
        }
        #expect(call.nextCall(after: all([other, Self.refused]), at: .at(0)) != nil)
        #expect(call.nextCall(after: all([stranger, stranger]), at: .at(0)) != nil)
        #expect(call.nextCall(after: all([other, other]), at: .at(0)) == nil)
    }

    @Test("The last failure names the time that was spent, before its advice")
    func failure() {
        let call = RetrySchedule(from: .at(1_000), until: .never)
        var error = NighError(.connecting, .refused, peer: "Puma", advice: "is the program running?")
        #expect(
            "\(call.failure(error, at: .at(15_960)))"
                == "connecting to Puma: nobody listens there; tried for 14.9 s; is the program running?")
        error.advice = nil
        #expect(call.failure(error, at: .at(1_000)).advice == "tried for 0.0 s")
    }
}
