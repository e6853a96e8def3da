import Testing

@testable import NighCore

/// Tests what ends with a link: the link itself, the request on it, or the conversation.
@Suite struct LinkEndingTests {
    /// Keeps how links ended.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Witness: SessionLayer, LinkObserver, @unchecked Sendable {
        private(set) var endings: [LinkEnding] = []

        func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) {
            if case .ended(let ending) = event { endings.append(ending) }
        }
    }

    @Test("A link without a request ends after 20 s, with a reason on both sides")
    func noRequest() throws {
        let witness = Witness()
        let peer = try ScriptedPeer { $0.layers.append(witness) }
        try peer.open()
        try peer.exchangeHellos()
        for second in 1..<20 {
            try peer.run(.seconds(1))
            try peer.send(.ping, [0, 0, 0, 0, 0, 0, 0, UInt8(second)])
        }
        try peer.run(.milliseconds(999))
        #expect(try peer.takeFrames().contains { $0.type == FrameType.close.rawValue } == false)
        #expect(witness.endings.isEmpty)
        try peer.run(.milliseconds(1))
        #expect(try peer.takeFrames() == [.close(13)])
        #expect(witness.endings == [LinkEnding(reason: "no answer in time", code: 13, isByPeer: false)])
    }

    @Test("A peer's violation is recorded in the same words that the peer receives")
    func violation() throws {
        let witness = Witness()
        let peer = try ScriptedPeer { $0.layers.append(witness) }
        try peer.beginConversation()
        try peer.send(.accept, peer.conversation + [UInt8](repeating: 0, count: 8) + ScriptedPeer.standing)
        let words = "an answer without a request"
        #expect(
            try peer.takeFrames() == [.init(.close, [0, 1, UInt8(words.utf8.count)] + Array(words.utf8))])
        #expect(
            witness.endings == [
                LinkEnding(reason: "protocol violation: \(words)", code: 1, isByPeer: false)
            ])
    }

    @Test("A grant that shrinks ends the conversation with a protocol violation")
    func shrinkingGrant() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        var less = ScriptedPeer.standing
        less[21] = 15
        try peer.send(.acknowledge, ScriptedPeer.standing)
        #expect(peer.state == .connected)
        try peer.send(.acknowledge, less)
        #expect(peer.endings == [.protocolViolation("a grant that shrinks")])
        let close = try #require(try peer.takeFrames().last)
        #expect(close.type == FrameType.close.rawValue && close.payload.prefix(2) == [0, 1])
    }

    /// Close codes by what they end: known ones, and later ones, whose range says it.
    private static let link: [UInt16] =
        [2, 3, 4, 6, 10, 12, 13, 15, 17, 18, 19, 0xFF, 0x0100, 0x01FF, 0x0400, 0xFFFE]
    private static let request: [UInt16] = [5, 7, 8, 9, 14, 0x0200, 0x0277, 0x02FF]
    private static let conversation: [UInt16] = [0, 1, 11, 16, 0x0300, 0x03AB, 0x03FF]

    @Test("A conversation looks for another link if only the link has ended", arguments: link)
    func linkEnds(code: UInt16) throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.send(close: code)
        #expect(peer.state == .reconnecting)
        #expect(peer.dials.count == (code == 2 ? 1 : 2))
    }

    @Test("A conversation ends at once if its link says so", arguments: request + conversation)
    func conversationEnds(code: UInt16) throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.send(close: code)
        #expect(peer.moves.contains(.disconnected) && !peer.moves.contains(.reconnecting))
        #expect(peer.endings.count == 1 && peer.endings != [.linkLost])
        try peer.run(.seconds(20))
        #expect(peer.dials.count == 1)
    }

    @Test(
        "A resume that is refused on one link is tried over another",
        arguments: link + request)
    func refusedToGoOn(code: UInt16) throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.losesLinkAndAsks()
        try peer.send(close: code)
        #expect(peer.state == .reconnecting)
        try peer.run(.seconds(2))
        #expect(peer.dials.count == 3)
    }

    @Test(
        "A resume ends when the other side says that the conversation is over",
        arguments: conversation)
    func overWhileAsking(code: UInt16) throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.losesLinkAndAsks()
        try peer.send(close: code)
        #expect(peer.endings.count == 1)
        try peer.run(.seconds(20))
        #expect(peer.dials.count == 2)
    }

    @Test("The close code of a later version is recorded unchanged")
    func laterCode() throws {
        let witness = Witness()
        let peer = try ScriptedPeer { $0.layers.append(witness) }
        try peer.beginConversation()
        try peer.send(close: 0x0305)
        #expect(witness.endings == [LinkEnding(reason: "the peer left", code: 0x0305, isByPeer: true)])
    }
}
