import NighCore
import Testing

@testable import Nigh

@Suite("Automatic invitations") struct AutomaticInvitationsTests {
    private let puma = Identity.ephemeral(seed: 1).peerID
    private let start = Moment(nanoseconds: 1_000_000_000)

    private func after(_ milliseconds: Int64) -> Moment { start + .milliseconds(milliseconds) }

    @Test("invite a peer once when it becomes available")
    func once() {
        var invitations = AutomaticInvitations()
        invitations.available(puma, at: start)
        #expect(invitations.nextMoment == start)
        #expect(invitations.takeDue(at: start) == [puma])
        invitations.available(puma, at: after(1))
        #expect(invitations.takeDue(at: after(100_000)) == [])
        #expect(invitations.nextMoment == nil)
    }

    @Test("are repeated after failures, with pauses that grow to 30 s")
    func backOff() {
        var invitations = AutomaticInvitations()
        invitations.available(puma, at: start)
        var now = start
        var pauses: [Int64] = []
        for _ in 0..<9 {
            #expect(invitations.takeDue(at: now) == [puma])
            invitations.failed(puma, because: NighError(.connecting, .linkLost), isPaired: false, at: now)
            let next = invitations.nextMoment ?? now
            pauses.append((next - now).nanoseconds / 1_000_000)
            now = next
        }
        #expect(pauses == [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
    }

    @Test("wait as long as the peer requests")
    func retryAfter() {
        var invitations = AutomaticInvitations()
        invitations.available(puma, at: start)
        _ = invitations.takeDue(at: start)
        var busy = NighError(.inviting, .busy)
        busy.retryAfter = .seconds(5)
        invitations.failed(puma, because: busy, isPaired: false, at: start)
        #expect(invitations.nextMoment == after(5_000))
    }

    @Test(
        "do not repeat an invitation that was declined or not answered, until the peer is lost and found",
        arguments: [NighError(.inviting, .declined("no")), NighError(.inviting, .timedOut)])
    func declined(_ error: NighError) {
        var invitations = AutomaticInvitations()
        invitations.available(puma, at: start)
        _ = invitations.takeDue(at: start)
        invitations.failed(puma, because: error, isPaired: false, at: start)
        invitations.available(puma, at: after(60_000))
        #expect(invitations.nextMoment == nil)
        invitations.lost(puma)
        invitations.available(puma, at: after(70_000))
        #expect(invitations.takeDue(at: after(70_000)) == [puma])
    }

    @Test("wait for the pairing that the peer has to have, and for room if there is none")
    func unpaired() {
        var invitations = AutomaticInvitations()
        invitations.available(puma, at: start)
        _ = invitations.takeDue(at: start)
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

    @Test("follow a conversation that failed, and not one that ended cleanly")
    func afterConversations() {
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

    @Test("do not reconnect a peer that the program disconnected")
    func programLeft() {
        var invitations = AutomaticInvitations()
        invitations.connected(puma)
        invitations.finish(puma)
        invitations.disconnected(puma, because: NighError(.conversing, .left), at: start)
        invitations.available(puma, at: after(10))
        #expect(invitations.nextMoment == nil)
    }
}
