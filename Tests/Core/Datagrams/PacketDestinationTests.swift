import Testing

@testable import NighCore

@Suite("The place where the packets of a path go") struct PacketDestinationTests {
    private let home = DatagramSource(1)
    private let elsewhere = DatagramSource(2)
    private var generator = SeededGenerator(seed: 1)

    /// A destination to which packets have come from elsewhere.
    private mutating func moved(byteCount: Int) -> PacketDestination {
        var destination = PacketDestination()
        destination.begin(at: home)
        destination.note(elsewhere, byteCount: byteCount, generator: &generator)
        return destination
    }

    @Test("is the place of the offer until another one has answered")
    mutating func answer() throws {
        var destination = moved(byteCount: 100)
        #expect(destination.place == home && destination.hasCandidate)
        let probe = destination.takeProbe(byteCount: 40)
        let (token, place) = try #require(probe)
        #expect(place == elsewhere)
        let isMovedByAnother = destination.noteAnswer(token &+ 1)
        #expect(!isMovedByAnother && destination.place == home)
        let isMoved = destination.noteAnswer(token)
        #expect(isMoved && destination.place == elsewhere && !destination.hasCandidate)
        let isMovedAgain = destination.noteAnswer(token)
        #expect(!isMovedAgain)
    }

    @Test("gets no more bytes than came from there before it has answered, questions and answers together")
    mutating func budget() {
        var destination = moved(byteCount: 100)
        let first = destination.answerPlace(elsewhere, byteCount: 60)
        let tooLong = destination.takeProbe(byteCount: 41)
        let second = destination.takeProbe(byteCount: 40)
        let third = destination.answerPlace(elsewhere, byteCount: 1)
        #expect(first == elsewhere && tooLong == nil && second != nil)
        // An answer that may not go there goes where all packets go.
        #expect(third == home)
        destination.note(elsewhere, byteCount: 1, generator: &generator)
        let fourth = destination.answerPlace(elsewhere, byteCount: 1)
        #expect(fourth == elsewhere)
    }

    @Test("stays if packets come from there again")
    mutating func back() throws {
        var destination = moved(byteCount: 100)
        let probe = destination.takeProbe(byteCount: 40)
        let token = try #require(probe).token
        destination.note(home, byteCount: 50, generator: &generator)
        #expect(!destination.hasCandidate)
        let isMoved = destination.noteAnswer(token)
        #expect(!isMoved && destination.place == home)
    }

    @Test("is asked with another token, and with no more bytes than came from there, if it is a third one")
    mutating func third() throws {
        var destination = moved(byteCount: 100)
        let first = destination.takeProbe(byteCount: 40)
        let last = DatagramSource(3)
        destination.note(last, byteCount: 40, generator: &generator)
        let second = destination.takeProbe(byteCount: 40)
        let more = destination.takeProbe(byteCount: 1)
        #expect(second?.place == last && more == nil)
        let tokens = (try #require(first).token, try #require(second).token)
        #expect(tokens.0 != tokens.1)
        let answerElsewhere = destination.answerPlace(elsewhere, byteCount: 1)
        #expect(answerElsewhere == home)
    }
}
