import NighCore
import NighTestKit
import Testing

@testable import NighTCP

struct PresenceCheckTests {
    private let loop = VirtualEventLoop()
    private let puma = Identity.ephemeral().peerID

    /// `@unchecked Sendable`: confined to the virtual loop's thread.
    private final class House: @unchecked Sendable {
        var opens = true
        var isTalkedTo = false
        var answersAfter = Duration.milliseconds(1)
        var knocks: [Moment] = []
        var told: [Bool] = []
    }

    private func check(_ house: House) -> PresenceCheck {
        PresenceCheck(
            on: loop, isTalkedTo: { _ in house.isTalkedTo },
            knock: { [loop] _, tell in
                house.knocks.append(loop.now)
                let tell = Unchecked(tell)
                loop.schedule(at: loop.now + Moment.Span(house.answersAfter)) { tell.value(house.opens) }
            }, tell: { _, opened in house.told.append(opened) })
    }

    /// `@unchecked Sendable`: confined to the virtual loop's thread.
    private struct Unchecked<Value>: @unchecked Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    @Test func aPeerThatStopsOpeningIsGoneInBoundedTime() throws {
        let house = House()
        house.answersAfter = .seconds(4)
        let presence = check(house)
        presence.add(puma)
        try loop.run(for: .seconds(60))
        #expect(house.told.allSatisfy { $0 })
        #expect(house.knocks.count == 3)
        house.opens = false
        house.told = []
        let start = loop.now
        #expect(try loop.run(until: { !house.told.isEmpty }, within: .seconds(60)))
        #expect(house.told == [false])
        #expect(loop.now - start <= .seconds(30))
    }

    @Test func oneMissedKnockIsNoProof() throws {
        let house = House()
        house.opens = false
        let presence = check(house)
        presence.add(puma)
        #expect(try loop.run(until: { house.knocks.count == 1 }, within: .seconds(20)))
        try loop.run(for: .milliseconds(10))
        house.opens = true
        try loop.run(for: .seconds(5))
        #expect(house.told == [true])
    }

    @Test func aDoubtIsLookedIntoAtOnce() throws {
        let house = House()
        house.opens = false
        let presence = check(house)
        presence.add(puma)
        presence.doubt(puma)
        #expect(try loop.run(until: { house.told == [false] }, within: .seconds(3)))
        house.opens = true
        #expect(try loop.run(until: { house.told == [false, true] }, within: .seconds(20)))
    }

    /// The check is frequent for as long as a conversation waits for a new link, and rare afterwards.
    @Test func whoeverHasJustGoneIsSoonSeenToBeBack() throws {
        let house = House()
        house.opens = false
        let presence = check(house)
        presence.add(puma)
        presence.doubt(puma)
        try loop.run(for: .seconds(7))
        house.opens = true
        #expect(try loop.run(until: { house.told.last == true }, within: .seconds(3)))
        house.opens = false
        presence.doubt(puma)
        try loop.run(for: .seconds(30))
        let before = house.knocks.count
        try loop.run(for: .seconds(150))
        #expect((9...11).contains(house.knocks.count - before))
    }

    @Test func whoIsTalkedToIsNotKnockedAt() throws {
        let house = House()
        house.isTalkedTo = true
        let presence = check(house)
        presence.add(puma)
        presence.doubt(puma)
        try loop.run(for: .seconds(120))
        #expect(house.knocks.isEmpty)
    }

    @Test func nobodyIsToldOfThoseForgotten() throws {
        let house = House()
        house.answersAfter = .seconds(1)
        house.opens = false
        let presence = check(house)
        presence.add(puma)
        presence.doubt(puma)
        #expect(try loop.run(until: { house.knocks.count == 1 }, within: .seconds(3)))
        presence.keep { _ in false }
        try loop.run(for: .seconds(60))
        #expect(house.told.isEmpty)
        #expect(house.knocks.count == 1)
    }
}
