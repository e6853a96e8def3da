import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite struct ConnectingTests {
    @Test func twoSessionsFindEachOtherConnectAndExchangeMessages() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        #expect(puma.outcomes == [.success(lynx.id)])
        #expect(puma.states(of: lynx.id) == [.available, .connecting, .connected])
        #expect(lynx.states(of: puma.id) == [.available, .connecting, .connected])

        try puma.session.trySend(Array("hello".utf8), to: lynx.id)
        try lynx.session.trySend(Array("hello yourself".utf8), to: puma.id)
        try place.run(.milliseconds(10))
        #expect(lynx.texts == ["hello"])
        #expect(puma.texts == ["hello yourself"])
        #expect(lynx.messages[0].origin == MessageOrigin(peer: puma.id, lane: .main, isReliable: true))
    }

    @Test func anInvitationFailsTwoSecondsAfterATransportWasAskedForPlacesInVain() throws {
        let peer = try ScriptedPeer()
        peer.transport.findsPlaces = false
        peer.session.invite(at: ScriptedPeer.address) { peer.outcomes.append($0) }
        try peer.loop.runQueued()
        // A pipe that breaks without proof may hide other places.
        try peer.openDialled()
        try peer.cut()
        try peer.run(.milliseconds(1_999))
        #expect(peer.outcomes.isEmpty)
        try peer.run(.milliseconds(1))
        #expect(peer.outcomes.count == 1 && peer.failure != nil)
    }
}
