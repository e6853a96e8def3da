import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Calls that invite a peer which is being invited already. They share the invitation, but each has its own time.
@Suite struct JoinedInvitationTests {
    private let place = Neighbourhood()

    /// The moments at which calls were answered, in milliseconds from the first, and the outcomes.
    private final class Answers: @unchecked Sendable {
        var times: [String: Int] = [:]
        var outcomes: [String: Result<PeerID, NighError>] = [:]

        func cause(of call: String) -> NighError.Cause? {
            guard case .failure(let error)? = outcomes[call] else { return nil }
            return error.cause
        }
    }

    private let answers = Answers()

    private func note(_ call: String) -> @Sendable (Result<PeerID, NighError>) -> Void {
        let (answers, loop, start) = (answers, place.loop, place.loop.now)
        return {
            answers.times[call] = Int((loop.now - start).nanoseconds / 1_000_000)
            answers.outcomes[call] = $0
        }
    }

    @Test("A call that joins a longer invitation is answered in its own time", arguments: [false, true])
    func impatientCall(byAddress: Bool) throws {
        let (puma, lynx) = (place.join("Puma"), place.join("Lynx", accepting: false))
        try place.run(.seconds(1))
        puma.session.invite(lynx.id, timeout: .seconds(9), completion: note("patient"))
        try place.run(.seconds(1))
        if byAddress {
            puma.session.invite(at: lynx.address, timeout: .seconds(2), completion: note("impatient"))
        } else {
            puma.session.invite(lynx.id, timeout: .seconds(2), completion: note("impatient"))
        }
        try place.run(.seconds(5))
        #expect(answers.cause(of: "impatient") == .timedOut && answers.times["impatient"] == 2_000)
        #expect(answers.outcomes["patient"] == nil && lynx.endedInvitations.isEmpty, "the other goes on")
        try #require(lynx.invitations.first).accept()
        try place.run(.seconds(1))
        #expect(answers.outcomes["patient"] == .success(lynx.id) && lynx.invitations.count == 1)
    }

    @Test("A call that joins a shorter invitation keeps its own time: the peer is asked again")
    func patientCall() throws {
        let (puma, lynx) = (place.join("Puma"), place.join("Lynx", accepting: false))
        try place.run(.seconds(1))
        puma.session.invite(lynx.id, timeout: .seconds(2), completion: note("impatient"))
        try place.run(.seconds(1))
        puma.session.invite(lynx.id, timeout: .seconds(6), completion: note("patient"))
        try place.run(.seconds(3))
        #expect(answers.cause(of: "impatient") == .timedOut && answers.times["impatient"] == 2_000)
        #expect(answers.outcomes["patient"] == nil)
        #expect(lynx.invitations.count == 2 && lynx.endedInvitations.count == 1)
        #expect(
            puma.states(of: lynx.id) == [.available, .connecting], "one invitation, as its program sees it")
        try place.run(.milliseconds(2_999))
        #expect(answers.outcomes["patient"] == nil)
        try place.run(.milliseconds(2))
        #expect(answers.cause(of: "patient") == .timedOut)
        try place.run(.seconds(1))
        #expect(lynx.invitations.count == 2 && lynx.endedInvitations.count == 2)
        #expect(puma.state(of: lynx.id) == .available)
    }

    @Test(
        "A peer that accepts while the time named to it is over here, but not there, is connected and stays so"
    )
    func lateAcceptance() throws {
        let (puma, lynx) = (place.join("Puma"), place.join("Lynx", accepting: false))
        try place.run(.seconds(1))
        puma.session.invite(lynx.id, timeout: .seconds(2), completion: note("impatient"))
        try place.run(.seconds(1))
        puma.session.invite(lynx.id, timeout: .seconds(6), completion: note("patient"))
        let invitation = try #require(lynx.invitations.first)
        puma.faults.plan.delay = .milliseconds(300)
        try place.run(.milliseconds(999))
        invitation.accept()
        try place.run(.seconds(2))
        #expect(
            answers.cause(of: "impatient") == .timedOut && answers.outcomes["patient"] == .success(lynx.id))
        #expect(lynx.states(of: puma.id).suffix(2) == [.connecting, .connected])
        #expect(lynx.invitations.count == 1)
    }

    @Test("An invitation ends with the last of its calls that still waits")
    func cancelledPatientCall() throws {
        let (puma, lynx) = (place.join("Puma"), place.join("Lynx", accepting: false))
        try place.run(.seconds(1))
        puma.session.invite(lynx.id, timeout: .seconds(9), completion: note("cancelled"))
        puma.session.invite(lynx.id, timeout: .seconds(2), completion: note("impatient"))
        try place.run(.seconds(1))
        let machine = puma.session.driver.machine
        guard case .inviting(let invitation)? = machine.peers[lynx.id]?.phase else {
            Issue.record("it does not invite")
            return
        }
        puma.session.driver.inTurn { machine.cancel(invitation.calls[0].token, now: place.loop.now) }
        #expect(answers.cause(of: "cancelled") == .cancelled)
        try place.run(.seconds(2))
        #expect(answers.cause(of: "impatient") == .timedOut && answers.times["impatient"] == 2_000)
        #expect(lynx.endedInvitations.count == 1 && puma.state(of: lynx.id) == .available)
    }

    @Test("An invitation that finds no link uses the one of a call by address")
    func linkOfTheAddress() throws {
        let (puma, lynx) = (place.join("Puma"), place.join("Lynx"))
        try place.run(.seconds(1))
        puma.faults.plan.hang = .all
        puma.session.invite(lynx.id, timeout: .seconds(9), completion: note("by name"))
        try place.run(.seconds(1))
        puma.faults.plan.hang = nil
        puma.session.invite(at: lynx.address, timeout: .seconds(2), completion: note("by address"))
        try place.run(.seconds(1))
        #expect(answers.outcomes["by address"] == .success(lynx.id))
        #expect(answers.outcomes["by name"] == .success(lynx.id))
        #expect(puma.session.inspection.links == 1 && lynx.session.inspection.links == 1)
    }
}
