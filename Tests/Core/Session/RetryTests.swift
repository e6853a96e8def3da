import Testing

@testable import NighCore

/// A peer that refuses may name a time before which it is not asked again.
@Suite struct RetryTimeTests {
    private func refusal(_ peer: ScriptedPeer, code: UInt8, seconds: UInt8) -> [UInt8] {
        peer.conversation + [code, 0, 0, 0, seconds, 0]
    }

    @Test(arguments: [0, 1, 2, 4] as [UInt8], [false, true])
    func `A conversation without a link retries after the time that the peer asked for, not before`(
        code: UInt8, whileARouteAppears: Bool
    ) throws {
        let peer = try ScriptedPeer.asking()
        try peer.send(.decline, refusal(peer, code: code, seconds: 3))
        try peer.run(.seconds(1))
        if whileARouteAppears { peer.find(at: ScriptedTransport.address("elsewhere")) }
        try peer.run(.milliseconds(1_999))
        #expect(peer.dials.count == 2 && peer.state == .reconnecting)
        try peer.run(.milliseconds(1))
        #expect(peer.dials.count == 3)
    }

    @Test func `Without a requested time, the usual pause applies`() throws {
        let peer = try ScriptedPeer.asking()
        try peer.send(.decline, refusal(peer, code: 2, seconds: 0))
        try peer.run(.milliseconds(400))
        #expect(peer.dials.count == 3)
    }

    @Test(arguments: [0, 1, 2] as [UInt8])
    func `The inviter gets the retry time with the refusal, whatever its code`(code: UInt8) throws {
        for seconds in [0, 2] as [UInt8] {
            let peer = try ScriptedPeer()
            try peer.invite()
            try peer.send(.decline, refusal(peer, code: code, seconds: seconds))
            let error = try #require(peer.failure)
            #expect(error.retryAfter == (seconds == 0 ? nil : .seconds(2)))
            #expect(error.description.contains("wait at least 2 s") == (seconds == 2))
        }
    }

    @Test func `A retry time below a second is sent as a second, because zero means never`() throws {
        for (wait, seconds) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (600_000, 600)] {
            let peer = try ScriptedPeer()
            peer.probe.reaction = { event, _ in
                if case .invited(let invitation) = event {
                    invitation.decline(retryAfter: .milliseconds(wait))
                }
            }
            try peer.open()
            try peer.exchangeHellos()
            _ = try peer.takeFrames()
            try peer.send(.invite, ScriptedPeer.invitation(number: 1))
            let decline = try #require(try peer.takeFrames().first)
            #expect(decline.payload[9..<13] == [0, 0, UInt8(seconds >> 8), UInt8(seconds & 0xFF)])
        }
    }

    @Test func `An unanswered resume is abandoned after 2 s if there is another route`() throws {
        for hasOther in [false, true] {
            let peer = try ScriptedPeer.connected()
            if hasOther { peer.find(at: ScriptedTransport.address("elsewhere")) }
            try peer.losesLinkAndAsks()
            try peer.run(.milliseconds(1_999))
            #expect(peer.dials.count == 2)
            try peer.run(.milliseconds(1))
            #expect(peer.dials.count == (hasOther ? 3 : 2))
        }
    }

    @Test func `A route that reappears during its dial is dialled again after 2 s, never twice at once`()
        throws
    {
        let peer = try ScriptedPeer.connected()
        let sighting = peer.find(at: ScriptedPeer.address)
        try peer.cut()
        try peer.run(.seconds(1))
        peer.transport.events?.routeLost(sighting.address, by: peer.transport)
        peer.transport.events?.routeFound(sighting, by: peer.transport)
        try peer.run(.milliseconds(1_999))
        #expect(peer.dials.count == 2)
        try peer.run(.milliseconds(1))
        #expect(peer.dials.count == 3)
        let second = try #require(peer.dials.dropLast().last)
        #expect(peer.transport.calls.dropLast().last == "cancelDial \(second.number)")
    }

    @Test func `If link after link breaks at once, each dial waits twice as long as the one before`() throws {
        let peer = try ScriptedPeer.connected()
        // A pause differs from the others by a quarter, so that the two sides do not dial at once.
        for (shortest, longest) in [(0, 0), (375, 625), (750, 1_250)] {
            let before = peer.dials.count
            try peer.cut()
            if shortest > 0 {
                try peer.run(.milliseconds(shortest - 1))
                #expect(peer.dials.count == before)
                try peer.run(.milliseconds(longest - shortest + 1))
            }
            #expect(peer.dials.count == before + 1)
            try peer.openDialled()
            try peer.exchangeHellos()
            let attempt = [UInt8](repeating: 0, count: 8)
            try peer.send(.accept, peer.conversation + attempt + ScriptedPeer.standing)
            try #require(peer.state == .connected)
        }
    }

    @Test func `An inviter that made way for the peer's invitation asks again if none comes in 0.5 s`() throws
    {
        let peer = try ScriptedPeer()
        try peer.invite()
        try peer.send(close: LinkClose.Code.superseded.rawValue)
        try peer.run(.milliseconds(499))
        #expect(peer.dials.count == 1 && peer.state == .connecting)
        try peer.run(.milliseconds(1))
        #expect(peer.dials.count == 2 && peer.outcomes.isEmpty)
    }
}

@Suite struct RetryScheduleTests {
    private static let puma = [TransportAddress(scheme: "tcp", value: "puma")]
    private static let elsewhere = [TransportAddress(scheme: "bluetooth", value: "puma")]
    private static let refused = NighError(.connecting, .refused)

    private static func busy(for duration: Duration) -> NighError {
        var error = NighError(.inviting, .busy)
        error.retryAfter = duration
        return error
    }

    @Test
    func `Pauses grow from a quarter of a second to two seconds, and the last call has some time left`() {
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

    @Test func `Without a deadline it continues, however long that takes`() throws {
        var call = RetrySchedule(from: .at(0), until: .never)
        var now = Moment.at(0)
        for _ in 0..<10_000 {
            call.callStarted(along: Self.puma, at: now)
            let next = call.nextCall(after: Self.refused, at: now)
            now = try #require(next)
        }
        #expect(now > .at(19_000_000))
    }

    @Test func `A route that appears or returns ends the pause; known routes do not`() {
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

    @Test func `A route that appeared during the call is tried next`() {
        var call = RetrySchedule(from: .at(0), until: .never)
        call.callStarted(along: Self.puma, at: .at(0))
        _ = call.nextCall(along: Self.puma + Self.elsewhere, at: .at(10))
        #expect(call.nextCall(after: Self.refused, at: .at(5_000)) == .at(5_000))
    }

    @Test func `A route that appears and disappears repeatedly causes at most four calls a second`() throws {
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

    @Test
    func `A requested retry time is kept, whatever routes appear; a time beyond the deadline ends the calls`()
    {
        var call = RetrySchedule(from: .at(0), until: .at(10_000))
        call.callStarted(along: Self.puma, at: .at(0))
        #expect(call.nextCall(after: Self.busy(for: .seconds(5)), at: .at(0)) == .at(5_000))
        #expect(call.nextCall(along: Self.elsewhere, at: .at(1_000)) == nil)
        call.callStarted(along: Self.puma, at: .at(5_000))
        #expect(call.nextCall(after: Self.busy(for: .seconds(5)), at: .at(5_000)) == nil)
    }

    @Test func `An answer of the peer is final and is reported unchanged`() {
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

    @Test func `If several attempts failed, one that may succeed later is enough to call again`() {
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

    @Test func `The last failure names the time that was spent, before its advice`() {
        let call = RetrySchedule(from: .at(1_000), until: .never)
        var error = NighError(.connecting, .refused, peer: "Puma", advice: "is the program running?")
        #expect(
            "\(call.failure(error, at: .at(15_960)))"
                == "connecting to Puma: nobody listens there; tried for 14.9 s; is the program running?")
        error.advice = nil
        #expect(call.failure(error, at: .at(1_000)).advice == "tried for 0.0 s")
    }
}
