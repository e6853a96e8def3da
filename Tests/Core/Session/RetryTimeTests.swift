import Testing

@testable import NighCore

/// A peer that refuses may name a time before which it is not asked again.
@Suite struct RetryTimeTests {
    private func refusal(_ peer: ScriptedPeer, code: UInt8, seconds: UInt8) -> [UInt8] {
        peer.conversation + [code, 0, 0, 0, seconds, 0]
    }

    @Test(
        "A conversation without a link retries after the time that the peer asked for, not before",
        arguments: [0, 1, 2, 4] as [UInt8])
    func resuming(code: UInt8) throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.losesLinkAndAsks()
        try peer.send(.decline, refusal(peer, code: code, seconds: 3))
        try peer.run(.milliseconds(2_999))
        #expect(peer.dials.count == 2 && peer.state == .reconnecting)
        try peer.run(.milliseconds(1))
        #expect(peer.dials.count == 3)
    }

    @Test("A route that appears meanwhile does not shorten that time")
    func newRoute() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.losesLinkAndAsks()
        try peer.send(.decline, refusal(peer, code: 2, seconds: 3))
        try peer.run(.seconds(1))
        let advertisement = Advertisement(
            service: "test", peer: ScriptedPeer.peer, name: ScriptedPeer.hello.name)
        peer.transport.events?.routeFound(
            Sighting(address: ScriptedTransport.address("elsewhere"), advertisement: advertisement),
            by: peer.transport)
        try peer.run(.milliseconds(1_999))
        #expect(peer.dials.count == 2)
        try peer.run(.milliseconds(1))
        #expect(peer.dials.count == 3)
    }

    @Test("Without a requested time, the usual pause applies")
    func resumingWithoutTime() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.losesLinkAndAsks()
        try peer.send(.decline, refusal(peer, code: 2, seconds: 0))
        try peer.run(.milliseconds(400))
        #expect(peer.dials.count == 3)
    }

    @Test(
        "The inviter gets the retry time with the refusal, whatever its code",
        arguments: [0, 1, 2] as [UInt8])
    func inviting(code: UInt8) throws {
        for seconds in [0, 2] as [UInt8] {
            let peer = try ScriptedPeer()
            try peer.invite()
            try peer.send(.decline, refusal(peer, code: code, seconds: seconds))
            let error = try #require(peer.failure)
            #expect(error.retryAfter == (seconds == 0 ? nil : .seconds(2)))
            #expect(error.description.contains("wait at least 2 s") == (seconds == 2))
        }
    }

    @Test("A retry time below a second is sent as a second, because zero means never")
    func roundedUp() throws {
        for (wait, seconds) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (600_000, 600)] {
            let peer = try ScriptedPeer()
            peer.answer = { invitation in
                invitation.decline(retryAfter: .milliseconds(wait))
            }
            try peer.open()
            try peer.exchangeHellos()
            _ = try peer.takeFrames()
            try peer.send(
                .invite,
                [UInt8](repeating: 9, count: 8) + [0, 0, 0, 0, 0, 0, 0, 1] + ScriptedPeer.standing
                    + [0, 0, 0x75, 0x30, 0, 0])
            let decline = try #require(try peer.takeFrames().first)
            #expect(decline.payload[9..<13] == [0, 0, UInt8(seconds >> 8), UInt8(seconds & 0xFF)])
        }
    }

    @Test("An unanswered resume is abandoned after two seconds if there is another route; otherwise it waits")
    func noAnswer() throws {
        for hasOther in [false, true] {
            let peer = try ScriptedPeer()
            try peer.beginConversation()
            if hasOther {
                let advertisement = Advertisement(
                    service: "test", peer: ScriptedPeer.peer, name: ScriptedPeer.hello.name)
                peer.transport.events?.routeFound(
                    Sighting(address: ScriptedTransport.address("elsewhere"), advertisement: advertisement),
                    by: peer.transport)
            }
            try peer.losesLinkAndAsks()
            try peer.run(.milliseconds(1_999))
            #expect(peer.dials.count == 2)
            try peer.run(.milliseconds(1))
            #expect(peer.dials.count == (hasOther ? 3 : 2))
        }
    }

    @Test("A route that reappears during its dial is dialled again after 2 s, and never twice at once")
    func aRouteSeenAgainIsDialledAgain() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        let advertisement = Advertisement(
            service: "test", peer: ScriptedPeer.peer, name: ScriptedPeer.hello.name)
        let sighting = Sighting(address: ScriptedPeer.address, advertisement: advertisement)
        peer.transport.events?.routeFound(sighting, by: peer.transport)
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

    @Test("If link after link breaks at once, each dial but the first waits twice as long as the one before")
    func briefLinks() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
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

    @Test("An inviter that made way for an invitation of the peer asks again if none comes in half a second")
    func madeWay() throws {
        let peer = try ScriptedPeer()
        try peer.invite()
        try peer.send(close: LinkClose.Code.superseded.rawValue)
        try peer.run(.milliseconds(499))
        #expect(peer.dials.count == 1 && peer.state == .connecting)
        try peer.run(.milliseconds(1))
        #expect(peer.dials.count == 2 && peer.outcomes.isEmpty)
    }
}
