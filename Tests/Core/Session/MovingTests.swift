import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests how long a conversation takes to continue on another link, and what it sends there first.
@Suite struct MovingTests {
    private let place = Neighbourhood()
    private let oneWay = Duration.milliseconds(100)

    /// Two connected sessions with a delay of 100 ms in each direction.
    private func pair() throws -> (first: Neighbourhood.Member, second: Neighbourhood.Member) {
        var plan = FaultPlan.none
        plan.delay = oneWay
        // Only one of the two delays, because what passes both would take twice as long.
        let first = place.join("first", plan: plan)
        let second = place.join("second")
        try place.run(.seconds(1))
        first.session.invite(second.id) { _ in }
        try place.run(.seconds(2))
        #expect(first.state(of: second.id) == .connected)
        return (first, second)
    }

    /// The milliseconds until the condition holds.
    private func time(until condition: () -> Bool) throws -> Int {
        for elapsed in 0..<5_000 {
            if condition() { return elapsed }
            try place.run(.milliseconds(1))
        }
        Issue.record("never")
        return .max
    }

    private func link(of member: Neighbourhood.Member, to peer: PeerID) -> LinkMachine? {
        member.session.driver.machine.peers[peer]?.link?.machine
    }

    @Test func aConversationResumesTwoRoundTripsAfterTheDial() throws {
        let (first, second) = try pair()
        first.faults.cut()
        let moved = try time { first.state(of: second.id) != .connected }
        #expect(moved <= 1)
        let elapsed = try time { first.state(of: second.id) == .connected }
        // The TLS hello there and its answer back; then proof, hello and request there, and the acceptance back.
        #expect((395...420).contains(elapsed), "\(elapsed) ms")
        #expect(first.session.inconsistencies.isEmpty && second.session.inconsistencies.isEmpty)
    }

    @Test func theNextHandshakeIsShortenedByATicketEachTime() throws {
        let (first, second) = try pair()
        #expect(link(of: first, to: second.id)?.wasResumed == false)
        for _ in 0..<3 {
            // The ticket follows the first messages.
            try place.run(.seconds(1))
            first.faults.cut()
            try place.run(.seconds(3))
            #expect(link(of: first, to: second.id)?.wasResumed == true)
            #expect(link(of: second, to: first.id)?.wasResumed == true)
        }
        try first.session.trySend(Array("still there".utf8), to: second.id)
        try place.run(.seconds(1))
        #expect(second.texts == ["still there"])
    }

    @Test func aRestartedPeerIsNotMistakenForTheOldOne() throws {
        let (first, second) = try pair()
        let address = second.address
        second.session.driver.crash()
        try place.run(.milliseconds(50))
        let again = place.join("second", seed: 2, address: address)
        try place.run(.seconds(30))
        #expect(first.states(of: second.id).contains(.disconnected))
        #expect(first.state(of: again.id) == .available, "found again")
        #expect(first.session.inconsistencies.isEmpty && again.session.inconsistencies.isEmpty)
        first.session.invite(again.id) { _ in }
        try place.run(.seconds(2))
        #expect(first.state(of: again.id) == .connected)
    }
}
