import NighCore
import Testing

@testable import Nigh

@Suite("Automatic invitations") struct AutomaticInvitationsTests {
    private let puma = Identity.ephemeral(seed: 1).peerID
    private let start = Moment(nanoseconds: 1_000_000_000)

    private func after(_ milliseconds: Int64) -> Moment { start + .milliseconds(milliseconds) }

    /// Invitations of Puma, which was found and invited at the start.
    private func invited() -> AutomaticInvitations {
        var invitations = AutomaticInvitations()
        invitations.available(puma, at: start)
        #expect(invitations.nextMoment == start)
        #expect(invitations.takeDue(at: start) == [puma])
        return invitations
    }

    @Test func `A peer that becomes available is invited once`() {
        var invitations = invited()
        invitations.available(puma, at: after(1))
        #expect(invitations.takeDue(at: after(100_000)) == [])
        #expect(invitations.nextMoment == nil)
    }

    @Test func `An invitation that fails is repeated, with pauses that grow to 30 s`() {
        var invitations = invited()
        var now = start
        for pause: Int64 in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000] {
            invitations.failed(puma, because: NighError(.connecting, .linkLost), isPaired: false, at: now)
            now = now + .milliseconds(pause)
            #expect(invitations.nextMoment == now)
            #expect(invitations.takeDue(at: now) == [puma])
        }
    }

    @Test func `The next invitation waits as long as the peer requests`() {
        var invitations = invited()
        var busy = NighError(.inviting, .busy)
        busy.retryAfter = .seconds(5)
        invitations.failed(puma, because: busy, isPaired: false, at: start)
        #expect(invitations.nextMoment == after(5_000))
    }

    @Test(arguments: [NighError(.inviting, .declined("no")), NighError(.inviting, .timedOut)])
    func `A peer that declines is invited again only when it was lost and found`(error: NighError) {
        var invitations = invited()
        invitations.failed(puma, because: error, isPaired: false, at: start)
        invitations.available(puma, at: after(60_000))
        #expect(invitations.nextMoment == nil)
        invitations.lost(puma)
        invitations.available(puma, at: after(70_000))
        #expect(invitations.takeDue(at: after(70_000)) == [puma])
    }

    @Test func `Invitations wait for the pairing that the peer has to have, and for room`() {
        var invitations = invited()
        let unpaired = NighError(.inviting, .notPaired)
        invitations.failed(puma, because: unpaired, isPaired: false, at: start)
        #expect(invitations.nextMoment == nil)
        invitations.paired(puma, at: after(60_000))
        #expect(invitations.takeDue(at: after(60_000)) == [puma])
        // The other side has not noted it yet.
        invitations.failed(puma, because: unpaired, isPaired: true, at: after(60_000))
        #expect(invitations.takeDue(at: after(60_500)) == [puma])
        let full = NighError(.inviting, .limit("peers", 8))
        invitations.failed(puma, because: full, isPaired: true, at: after(60_500))
        #expect(invitations.nextMoment == after(61_500))
    }

    @Test func `An invitation follows a conversation that failed, and not one that ended cleanly`() {
        var invitations = AutomaticInvitations()
        invitations.connected(puma)
        invitations.disconnected(puma, because: NighError(.conversing, .silent), at: start)
        invitations.available(puma, at: start)
        #expect(invitations.nextMoment == after(500))
        #expect(invitations.takeDue(at: after(500)) == [puma])
        invitations.connected(puma)
        invitations.disconnected(puma, because: NighError(.conversing, .peerLeft), at: after(600))
        invitations.available(puma, at: after(700))
        #expect(invitations.nextMoment == nil)
    }

    @Test func `A peer that the program disconnected is not invited again`() {
        var invitations = AutomaticInvitations()
        invitations.connected(puma)
        invitations.finish(puma)
        invitations.disconnected(puma, because: NighError(.conversing, .left), at: start)
        invitations.available(puma, at: after(10))
        #expect(invitations.nextMoment == nil)
    }
}
