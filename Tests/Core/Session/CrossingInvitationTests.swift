import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Two sessions that invite each other while links break.
///
/// A link that breaks with a request on it leaves a question open: has the other side accepted? Whatever it did, each
/// call is answered in its time, both sides come to one conversation, and none is told that the other left.
@Suite struct CrossingInvitationTests {
    /// Two sessions with one or two ways to each other, which take a while. A side accepts only by an invitation of its
    /// own.
    final class Meeting {
        let loop = VirtualEventLoop()
        let members: [SessionProbe]
        /// The faults of each member's transports, the preferred one first.
        let faults: [[FaultControl]]
        private let answeredAt: [Recorder]
        private static let identities = [Identity.ephemeral(seed: 1), Identity.ephemeral(seed: 2)]

        final class Recorder: @unchecked Sendable {
            var moments: [Moment] = []
        }

        /// - Parameter greaterFirst: whether the first member has the greater PeerID.
        init(greaterFirst: Bool, delay: Duration, hasSpare: Bool = true) {
            let identities = Self.identities.sorted { ($0.peerID > $1.peerID) == greaterFirst }
            let hubs = [MemoryHub(), MemoryHub()]
            var members: [SessionProbe] = []
            var faults: [[FaultControl]] = []
            var plan = FaultPlan()
            plan.delay = delay
            for number in 0..<2 {
                var outgoing = plan
                outgoing.direction = .outgoing
                var transports: [any Transport] = []
                var controls: [FaultControl] = []
                for (way, hub) in hubs.prefix(hasSpare ? 2 : 1).enumerated() {
                    let transport = FaultyTransport(
                        MemoryTransport(hub: hub, address: "\(number)-\(way)"), plan: outgoing)
                    controls.append(transport.control)
                    transports.append(
                        RelabelledTransport(transport, scheme: "way\(way)", priority: 100 * (way + 1)))
                }
                var configuration = SessionConfiguration(
                    service: "test", name: DisplayName(fitting: "member \(number)"))
                configuration.seed = UInt64(number + 1)
                configuration.security = .none
                let session = Session(
                    configuration, identity: identities[number], transports: transports, loop: loop)
                let probe = SessionProbe(number: number, session: session, faults: controls[0])
                probe.onViolation = { Issue.record("\($0)") }
                members.append(probe)
                faults.append(controls)
            }
            self.members = members
            self.faults = faults
            answeredAt = [Recorder(), Recorder()]
            for member in members { member.start(reading: .handler, accepting: false) }
        }

        func run(_ duration: Duration) throws { try loop.run(for: duration) }

        func invite(by number: Int, timeout: Duration) {
            let (member, other) = (members[number], members[1 - number])
            let recorder = answeredAt[number]
            member.session.invite(other.id, context: [UInt8(number)], timeout: timeout) {
                [unowned member, unowned loop] in
                member.outcomes.append($0)
                recorder.moments.append(loop.now)
                if case .success(let peer) = $0 { try? member.session.trySend([7], to: peer) }
            }
        }

        func answers(of number: Int) -> [Moment] { answeredAt[number].moments }

        /// The conversation of a member, by its number in the session machine.
        func conversation(of number: Int) -> UInt64? {
            members[number].session.inspection(of: members[1 - number].id)?.conversation
        }

        func state(at number: Int) -> PeerState { members[number].state(of: members[1 - number].id) }

        /// Why conversations ended at a member.
        func endings(at number: Int) -> [NighError.Cause] {
            members[number].events.compactMap {
                if case .disconnected(_, let error) = $0 { error.cause } else { nil }
            }
        }

        /// Cuts the pipes of the preferred way that `dialler` has dialled; all of them if it is nil.
        func cut(dialledBy dialler: Int?) {
            for (number, controls) in faults.enumerated() {
                for pipe in controls[0].pipes where dialler == nil || pipe.isInbound == (number != dialler) {
                    controls[0].cut(.pipe(pipe.number))
                }
            }
        }
    }

    @Test(
        "A side that accepts after its own request was lost goes on with the one that the peer has accepted")
    func withdrawnForTheOther() throws {
        // The greater side's request arrives, its link breaks with the acceptance, and the smaller side's request,
        // which was given up for it, arrives afterwards.
        let meeting = Meeting(greaterFirst: true, delay: .milliseconds(5))
        try meeting.run(.seconds(1))
        meeting.faults[1][0].plan.delay = .milliseconds(300)
        meeting.faults[0][1].plan.dialDelay = .seconds(1)
        meeting.invite(by: 0, timeout: .seconds(5))
        try meeting.run(.milliseconds(100))
        meeting.invite(by: 1, timeout: .seconds(5))
        var hasAccepted = false
        for _ in 0..<2_000 where !hasAccepted {
            try meeting.run(.milliseconds(1))
            hasAccepted = meeting.state(at: 1) == .connected
        }
        try #require(hasAccepted && meeting.state(at: 0) == .connecting)
        meeting.cut(dialledBy: 0)
        try meeting.run(.seconds(4))
        for number in 0...1 {
            #expect(meeting.endings(at: number).isEmpty, "member \(number)")
            #expect(meeting.state(at: number) == .connected, "member \(number)")
            #expect(meeting.members[number].messages.map(\.bytes) == [[7]], "member \(number)")
            #expect(meeting.members[number].outcomes.count == 1, "member \(number)")
        }
        #expect(meeting.conversation(of: 0) == meeting.conversation(of: 1))
    }

    /// Every order of the steps of two handshakes, and a cut of either side's link or of both between any two steps. A
    /// step takes 100 ms, so the moments between two steps are as good as one.
    @Test(
        "Crossing invitations end in one conversation, wherever their links are cut",
        arguments: [false, true], [false, true])
    func everyCut(greaterFirst: Bool, hasSpare: Bool) throws {
        for lead in [0, 60, 160, 260] {
            for cutAt in stride(from: 25, through: 675, by: 50) {
                for dialler in [0, 1, nil] {
                    let meeting = Meeting(
                        greaterFirst: greaterFirst, delay: .milliseconds(100), hasSpare: hasSpare)
                    try meet(meeting, lead: lead, cutAt: cutAt, dialler: dialler)
                    let story = "the second \(lead) ms later, cut at \(cutAt) ms, dialled by \(dialler ?? 2)"
                    for number in 0...1 {
                        // Without a spare way an invitation may fail, but only before its request is sent.
                        if hasSpare || cutAt > lead + 200 {
                            let texts = meeting.members[number].messages.map(\.bytes)
                            #expect(texts == [[7]], "\(story): member \(number)")
                            #expect(meeting.state(at: number) == .connected, "\(story): member \(number)")
                        }
                        #expect(meeting.endings(at: number).isEmpty, "\(story): member \(number)")
                        #expect(meeting.members[number].session.inconsistencies.isEmpty, "\(story)")
                    }
                    #expect(meeting.conversation(of: 0) == meeting.conversation(of: 1), "\(story)")
                }
            }
        }
    }

    /// Lets both members invite each other, the second one `lead` milliseconds after the first, and cuts pipes. Checks
    /// that both calls are answered once and in their time.
    private func meet(_ meeting: Meeting, lead: Int, cutAt: Int, dialler: Int?) throws {
        let acts: [(at: Int, () -> Void)] = [
            (0, { meeting.invite(by: 0, timeout: .seconds(3)) }),
            (lead, { meeting.invite(by: 1, timeout: .seconds(3)) }),
            (cutAt, { meeting.cut(dialledBy: dialler) }),
        ]
        try meeting.run(.milliseconds(300))
        let start = meeting.loop.now
        var elapsed = 0
        for (moment, act) in acts.sorted(by: { $0.at < $1.at }) {
            try meeting.run(.milliseconds(Int64(moment - elapsed)))
            elapsed = moment
            act()
        }
        try meeting.run(.milliseconds(Int64(4_000 + lead - elapsed)))
        for number in 0...1 {
            let latest = start + Moment.Span.milliseconds(Int64(3_000 + lead * number))
            let answers = meeting.answers(of: number)
            #expect(
                answers.count == 1 && answers[0] <= latest,
                "the second \(lead) ms later, cut at \(cutAt) ms: member \(number)")
        }
    }
}
