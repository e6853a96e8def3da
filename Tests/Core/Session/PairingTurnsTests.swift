import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests a session that several peers ask for a pairing before there are digits.
@Suite struct PairingTurnsTests {
    private let place = Neighbourhood()

    private func join(
        _ name: String, adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> Neighbourhood.Member {
        let member = place.join(name) {
            $0.acceptsPairing = true
            adjust(&$0)
        }
        try place.run(.seconds(1))
        return member
    }

    /// Lets a peer ask for a pairing and never say anything again.
    private func fallSilent(_ peer: Neighbourhood.Member, asking other: Neighbourhood.Member) throws {
        peer.faults.plan.delay = .milliseconds(100)
        peer.pair(with: other)
        while pairing(of: other, with: peer) == nil { try place.run(.milliseconds(10)) }
        peer.faults.stall()
    }

    private func pairing(of member: Neighbourhood.Member, with other: Neighbourhood.Member) -> Pairing? {
        member.session.driver.machine.peers[other.id]?.pairing
    }

    @Test func aPeerThatAsksAndThenSaysNothingKeepsNobodyOut() throws {
        let (lynx, puma, silent) = (try join("Lynx"), try join("Puma"), try join("Silent"))
        try fallSilent(silent, asking: lynx)
        puma.pair(with: lynx)
        // As long as two nonces are apart.
        try place.run(.seconds(6))
        #expect(puma.codes.count == 1 && puma.codes == lynx.codes)
        puma.session.peer(lynx.id).confirmPairing(digitsAgree: true)
        lynx.session.peer(puma.id).confirmPairing(digitsAgree: true)
        try place.run(.seconds(1))
        #expect(puma.outcomes == [.success(lynx.id)] && lynx.pairedPeers == [puma.id])
        #expect(pairing(of: lynx, with: silent) == nil, "it is busy while digits are shown")
    }

    @Test func aPeerThatAsksAndThenSaysNothingDoesNotKeepTheProgramFromAsking() throws {
        let (lynx, puma, silent) = (try join("Lynx"), try join("Puma"), try join("Silent"))
        try fallSilent(silent, asking: lynx)
        lynx.pair(with: puma)
        try place.run(.seconds(1))
        #expect(puma.codes.count == 1 && puma.codes == lynx.codes)
        #expect(lynx.outcomes.isEmpty)
    }

    @Test func aPeerThatDoesNotRevealItsNonceLosesItsLink() throws {
        let (lynx, silent) = (try join("Lynx"), try join("Silent"))
        try fallSilent(silent, asking: lynx)
        try place.run(.seconds(11))
        #expect(pairing(of: lynx, with: silent) == nil)
        #expect(lynx.session.driver.machine.links.isEmpty)
        #expect(lynx.session.inconsistencies.isEmpty)
    }

    @Test func peersThatAskAndThenSayNothingDoNotTakeTheLastPlaces() throws {
        let lynx = try join("Lynx") { $0.limits.unauthenticatedPipes = 2 }
        for number in 0..<2 { try fallSilent(try join("Silent \(number)"), asking: lynx) }
        let puma = try join("Puma")
        puma.invite(lynx)
        try place.run(.seconds(1))
        #expect(puma.outcomes == [.success(lynx.id)])
    }

    @Test func theProgramHearsNothingOfPeersThatAskAndGiveUp() throws {
        let (lynx, stranger) = (try join("Lynx"), try join("Stranger"))
        stranger.invite(lynx)
        try place.run(.seconds(1))
        let before = lynx.events.count
        for _ in 0..<300 {
            stranger.pair(with: lynx)
            stranger.session.peer(lynx.id).confirmPairing(digitsAgree: false)
            try place.run(.milliseconds(1))
        }
        #expect(lynx.events.count == before)
        #expect(lynx.statistics.refusals["pairing refused"] == 300, "they are counted")
        let puma = try join("Puma")
        puma.pair(with: lynx)
        try place.run(.seconds(6))
        #expect(puma.codes.count == 1 && puma.codes == lynx.codes)
    }

    /// An attacker in the middle may give up unseen each exchange whose digits differ from those that the other side's
    /// screen shows. With 24 nonces in the two minutes that these stand, it hits one of a million with a chance of one
    /// in 40,000; with as many as it can ask for, it would hit.
    @Test func aPeerGetsFewNoncesHoweverOftenItAsks() throws {
        let nonces = NonceCount()
        let lynx = try join("Lynx") { $0.layers.append(nonces) }
        let stranger = try join("Stranger")
        stranger.invite(lynx)
        try place.run(.seconds(1))
        for _ in 0..<1_000 {
            stranger.pair(with: lynx)
            stranger.session.peer(lynx.id).confirmPairing(digitsAgree: false)
            try place.run(.milliseconds(20))
        }
        #expect((1...5).contains(nonces.count), "\(nonces.count) in 20 s")
    }

    /// Each peer that waits gets its turn, also if another one asks again and again.
    @Test func aPeerThatWaitsIsNotOvertakenByOneThatAsksAnew() throws {
        let (lynx, puma, stranger) = (try join("Lynx"), try join("Puma"), try join("Stranger"))
        for peer in [puma, stranger] { peer.invite(lynx) }
        try place.run(.seconds(1))
        func askAndGiveUp() {
            stranger.pair(with: lynx)
            stranger.session.peer(lynx.id).confirmPairing(digitsAgree: false)
        }
        askAndGiveUp()
        try place.run(.milliseconds(1))
        puma.pair(with: lynx)
        for _ in 0..<300 where puma.codes.isEmpty {
            askAndGiveUp()
            try place.run(.milliseconds(20))
        }
        #expect(puma.codes.count == 1 && puma.codes == lynx.codes)
    }
}

/// Counts the pairing nonces that a session sends.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
private final class NonceCount: SessionLayer, LinkObserver, @unchecked Sendable {
    private var bytes: [UInt8] = []

    func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) {
        if case .sent(let slice) = event { bytes += slice.bytes }
    }

    var count: Int {
        // The header of a frame of 33 bytes of the type `pair`, and the kind of the message.
        let beginning: [UInt8] = [0, 0, 33, FrameType.pair.rawValue, 2]
        return bytes.indices.count { bytes[$0...].starts(with: beginning) }
    }
}
