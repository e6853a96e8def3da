import NighTestKit
import Testing

@testable import NighCore

/// Tests a peer that breaks the protocol: both sides report it, and the peer is told what it did.
@Suite struct ViolationTests {
    private let place = Neighbourhood()

    @Test func aPeerThatBreaksTheProtocolGetsTheReason() throws {
        let (first, second) = try place.pair()
        let driver = first.session.driver
        let link = try #require(driver.machine.peers[second.id]?.link)
        link.machine.control.write(.piece, payload: [1, 2, 3])
        driver.machine.markDirty(link)
        driver.flushSoon()
        try place.run(.seconds(1))
        #expect(second.lastCause(of: first.id)?.cause == .protocolViolation("a piece without a message"))
        #expect(
            first.lastCause(of: second.id)?.cause
                == .protocolViolation("reported by the other side: a piece without a message"))
    }

    /// An answer that claims to have received five messages.
    private func claim(of peer: ScriptedPeer) -> [UInt8] {
        var standing = ScriptedPeer.standing
        standing[7] = 5
        return peer.conversation + [UInt8](repeating: 0, count: 8) + standing
    }

    @Test func anAcceptanceThatClaimsMessagesThatWereNeverSentBeginsNoConversation() throws {
        let peer = try ScriptedPeer()
        try peer.invite()
        try peer.send(.accept, claim(of: peer))
        #expect(
            peer.failure?.cause
                == .protocolViolation("impossible counts at the beginning of a conversation"))
        #expect(!peer.moves.contains(.connected) && peer.state != .connecting)
        #expect(peer.session.inconsistencies == [])
    }

    @Test func aResumeThatClaimsMessagesThatWereNeverSentEndsTheConversation() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.losesLinkAndAsks()
        try peer.send(.accept, claim(of: peer))
        #expect(peer.endings == [.protocolViolation("an impossible count of messages")])
        #expect(peer.state != .reconnecting)
        #expect(peer.session.inconsistencies == [])
    }
}
