import Testing

@testable import NighCore

/// Tests what ends with a link: the link itself, the request on it, or the conversation.
@Suite struct LinkEndingTests {
    /// Keeps how links ended.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Witness: LinkObserver, @unchecked Sendable {
        private(set) var endings: [LinkEnding] = []

        func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) {
            if case .ended(let ending) = event { endings.append(ending) }
        }
    }

    @Test("A link on which nobody asks for anything is ended after 20 s, with a reason for both sides")
    func noRequest() throws {
        let witness = Witness()
        let peer = try ScriptedPeer { $0.observer = witness }
        try peer.open()
        try peer.greet()
        for second in 1..<20 {
            try peer.run(.seconds(1))
            try peer.say(.ping, [0, 0, 0, 0, 0, 0, 0, UInt8(second)])
        }
        try peer.run(.milliseconds(999))
        #expect(try peer.hearFrames().contains { $0.type == FrameType.close.rawValue } == false)
        #expect(witness.endings.isEmpty)
        try peer.run(.milliseconds(1))
        #expect(try peer.hearFrames() == [.close(13)])
        #expect(witness.endings == [LinkEnding(words: "no answer in time", code: 13, isByPeer: false)])
    }

    @Test("What a peer did wrong is recorded in the words that it is told")
    func violation() throws {
        let witness = Witness()
        let peer = try ScriptedPeer { $0.observer = witness }
        try peer.beginConversation()
        try peer.say(.accept, peer.conversation + [UInt8](repeating: 0, count: 8) + ScriptedPeer.standing)
        let words = "an answer nobody asked for"
        #expect(
            try peer.hearFrames() == [.init(.close, [0, 1, UInt8(words.utf8.count)] + Array(words.utf8))])
        #expect(
            witness.endings == [
                LinkEnding(words: "the other side broke the protocol: \(words)", code: 1, isByPeer: false)
            ])
    }

    @Test("A grant that shrinks ends the conversation, since the other side cannot mean it")
    func shrinkingGrant() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        var less = ScriptedPeer.standing
        less[21] = 15
        try peer.say(.acknowledge, ScriptedPeer.standing)
        #expect(peer.state == .connected)
        try peer.say(.acknowledge, less)
        #expect(peer.endings == [.protocolViolation("a grant that shrinks")])
        let close = try #require(try peer.hearFrames().last)
        #expect(close.type == FrameType.close.rawValue && close.payload.prefix(2) == [0, 1])
    }

    /// Close codes by what they end: known ones, and later ones, whose range says it.
    private static let link: [UInt16] =
        [2, 3, 4, 6, 10, 12, 13, 15, 17, 18, 19, 0xFF, 0x0100, 0x01FF, 0x0400, 0xFFFE]
    private static let request: [UInt16] = [5, 7, 8, 9, 14, 0x0200, 0x0277, 0x02FF]
    private static let conversation: [UInt16] = [0, 1, 11, 16, 0x0300, 0x03AB, 0x03FF]

    @Test(
        "A conversation looks for another link where only the link has ended", arguments: link)
    func linkEnds(code: UInt16) throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.say(close: code)
        #expect(peer.state == .reconnecting)
        #expect(peer.dials.count == (code == 2 ? 1 : 2))
    }

    @Test(
        "A conversation is over at once where that was said on its link", arguments: request + conversation)
    func conversationEnds(code: UInt16) throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.say(close: code)
        #expect(peer.moves.contains(.disconnected) && !peer.moves.contains(.reconnecting))
        #expect(peer.endings.count == 1 && peer.endings != [.linkLost])
        try peer.run(.seconds(20))
        #expect(peer.dials.count == 1)
    }

    @Test(
        "A conversation that asked to go on and was refused on one link may go on over another",
        arguments: link + request)
    func refusedToGoOn(code: UInt16) throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.losesLinkAndAsks()
        try peer.say(close: code)
        #expect(peer.state == .reconnecting)
        try peer.run(.seconds(2))
        #expect(peer.dials.count == 3)
    }

    @Test(
        "A conversation that asked to go on is over where the other side says that it is",
        arguments: conversation)
    func overWhileAsking(code: UInt16) throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.losesLinkAndAsks()
        try peer.say(close: code)
        #expect(peer.endings.count == 1)
        try peer.run(.seconds(20))
        #expect(peer.dials.count == 2)
    }

    @Test("The code of a later version is recorded as it was said")
    func laterCode() throws {
        let witness = Witness()
        let peer = try ScriptedPeer { $0.observer = witness }
        try peer.beginConversation()
        try peer.say(close: 0x0305)
        #expect(witness.endings == [LinkEnding(words: "the peer left", code: 0x0305, isByPeer: true)])
    }
}
