import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Two sessions that invite each other, also while links break.
///
/// A link that breaks with a request on it leaves a question open: has the other side accepted? Whatever it did, each
/// call is answered in its time, both sides come to one conversation, and none is told that the other left.
@Suite struct CrossingInvitationTests {
    /// Two sessions with one or two ways to each other, which take a while. A side accepts only by an invitation of its
    /// own.
    private final class Meeting {
        let network: SimulatedNetwork
        let members: [SessionProbe]
        private let answeredAt = [Recorder(), Recorder()]

        private final class Recorder: @unchecked Sendable {
            // Confined to the virtual loop.
            var moments: [Moment] = []
        }

        /// - Parameter greaterFirst: whether the first member has the greater PeerID.
        init(greaterFirst: Bool, delay: String, hasSpare: Bool = true) throws {
            let plan = try FaultPlan(parsing: "delay=\(delay),direction=out")
            let wires = (1...2).map {
                SimulatedNetwork.Wire("way\($0)", priority: 100 * $0, plan: plan)
            }
            let network = SimulatedNetwork(wires: Array(wires.prefix(hasSpare ? 2 : 1))) {
                $0.security = .none
            }
            self.network = network
            members = [1, 2].map { Identity.ephemeral(seed: $0) }
                .sorted { ($0.peerID > $1.peerID) == greaterFirst }
                .map { network.join(identity: $0, accepting: false) }
        }

        func invite(by number: Int, timeout: Duration) {
            let (member, other) = (members[number], members[1 - number])
            let (recorder, loop) = (answeredAt[number], network.loop)
            member.session.invite(other.id, context: [UInt8(number)], timeout: timeout) { [unowned member] in
                member.outcomes.append($0)
                recorder.moments.append(loop.now)
                if case .success(let peer) = $0 { try? member.session.trySend([7], to: peer) }
            }
        }

        func answers(of number: Int) -> [Moment] { answeredAt[number].moments }

        func state(at number: Int) -> PeerState { members[number].state(of: members[1 - number].id) }

        /// Cuts the pipes of the preferred way that `dialler` has dialled; all of them if it is nil.
        func cut(dialledBy dialler: Int?) {
            for (number, member) in members.enumerated() {
                for pipe in member.faults.pipes where dialler == nil || pipe.isInbound == (number != dialler)
                {
                    member.faults.cut(.pipe(pipe.number))
                }
            }
        }

        /// Both are in one conversation, unless `isConnected` is false, and none has ended.
        func expectOneConversation(_ isConnected: Bool = true, _ story: String = "") {
            for (number, member) in members.enumerated() {
                if isConnected {
                    #expect(member.messages.map(\.bytes) == [[7]], "\(story): member \(number)")
                    #expect(state(at: number) == .connected, "\(story): member \(number)")
                }
                #expect(member.endings.isEmpty, "\(story): member \(number)")
            }
            let conversations = members.indices.map {
                members[$0].session.inspection(of: members[1 - $0].id)?.conversation
            }
            #expect(conversations[0] == conversations[1], "\(story)")
        }
    }

    @Test func `A side that accepts after its own request was lost goes on with the one accepted`() throws {
        // The greater side's request arrives, its link breaks with the acceptance, and the smaller side's request,
        // which was given up for it, arrives afterwards.
        let meeting = try Meeting(greaterFirst: true, delay: "5ms")
        let (first, second) = (meeting.members[0], meeting.members[1])
        try meeting.network.run(for: .seconds(1))
        second.wires[0].plan.delay = .milliseconds(300)
        first.wires[1].plan.dialDelay = .seconds(1)
        meeting.invite(by: 0, timeout: .seconds(5))
        try meeting.network.run(for: .milliseconds(100))
        meeting.invite(by: 1, timeout: .seconds(5))
        let hasAccepted = try meeting.network.time { meeting.state(at: 1) == .connected } < 2_000
        try #require(hasAccepted && meeting.state(at: 0) == .connecting)
        meeting.cut(dialledBy: 0)
        try meeting.network.run(for: .seconds(4))
        meeting.expectOneConversation()
        #expect(meeting.members.map(\.outcomes.count) == [1, 1])
    }

    /// Every order of the steps of two handshakes, and a cut of either side's link or of both between any two steps. A
    /// step takes 100 ms, so the moments between two steps are as good as one.
    @Test(arguments: [false, true], [false, true])
    func `Crossing invitations end in one conversation, wherever their links are cut`(
        greaterFirst: Bool, hasSpare: Bool
    ) throws {
        for lead in [0, 60, 160, 260] {
            for cutAt in stride(from: 25, through: 675, by: 50) {
                for dialler in [0, 1, nil] {
                    let meeting = try Meeting(greaterFirst: greaterFirst, delay: "100ms", hasSpare: hasSpare)
                    let story = "the second \(lead) ms later, cut at \(cutAt) ms, dialled by \(dialler ?? 2)"
                    try meet(meeting, lead: lead, cutAt: cutAt, dialler: dialler, story)
                    // Without a spare way an invitation may fail, but only before its request is sent.
                    meeting.expectOneConversation(hasSpare || cutAt > lead + 200, story)
                }
            }
        }
    }

    /// Lets both members invite each other, the second one `lead` milliseconds after the first, and cuts pipes. Checks
    /// that both calls are answered once and in their time.
    private func meet(_ meeting: Meeting, lead: Int, cutAt: Int, dialler: Int?, _ story: String) throws {
        let acts: [(at: Int, () -> Void)] = [
            (0, { meeting.invite(by: 0, timeout: .seconds(3)) }),
            (lead, { meeting.invite(by: 1, timeout: .seconds(3)) }),
            (cutAt, { meeting.cut(dialledBy: dialler) }),
        ]
        try meeting.network.run(for: .milliseconds(300))
        let start = meeting.network.loop.now
        var elapsed = 0
        for (moment, act) in acts.sorted(by: { $0.at < $1.at }) {
            try meeting.network.run(for: .milliseconds(Int64(moment - elapsed)))
            elapsed = moment
            act()
        }
        try meeting.network.run(for: .milliseconds(Int64(4_000 + lead - elapsed)))
        for number in 0...1 {
            let latest = start + Moment.Span.milliseconds(Int64(3_000 + lead * number))
            let answers = meeting.answers(of: number)
            #expect(answers.count == 1 && answers[0] <= latest, "\(story): member \(number)")
        }
    }

    @Test func `An acceptance that crosses the cancellation of its invitation is ignored`() throws {
        let network = SimulatedNetwork()
        let (puma, lynx) = try network.meet(plan: try FaultPlan(parsing: "delay=50ms"))
        puma.invite(lynx)
        #expect(try network.run(until: { lynx.state(of: puma.id) == .connected }, within: .seconds(5)))
        puma.session.cancelInvitation(of: lynx.id)
        try network.run(for: .seconds(5))
        #expect(lynx.states(of: puma.id) == [.available, .connecting, .connected, .disconnected, .available])
        #expect(lynx.lastCause(of: puma.id)?.cause == .peerLeft)
        #expect(puma.state(of: lynx.id) == .available)
    }

    @Test(arguments: [false, true])
    func `An inviter gets the context of the invitation that crossed its own once both are connected`(
        isPossible: Bool
    ) throws {
        let peer = try ScriptedPeer()
        try peer.invite()
        try peer.send(.crossed, [5])
        #expect(peer.probe.invitingContexts.isEmpty, "the peer has not accepted")
        var standing = ScriptedPeer.standing
        // Otherwise the peer claims to have messages that were never sent.
        if !isPossible { standing[7] = 5 }
        try peer.send(.accept, peer.conversation + [UInt8](repeating: 0, count: 8) + standing)
        #expect((peer.state == .connected) == isPossible)
        #expect(peer.probe.invitingContexts == (isPossible ? [[5]] : []))
    }

    /// The peer has accepted this side's invitation meanwhile, and knows its own no more.
    @Test func `A conversation that the peer does not know resumes at once as this side's own invitation`()
        throws
    {
        let peer = try ScriptedPeer()
        let hello = Frames.hello(seed: 1, incarnation: 7, name: "Scripted")
        // Only the side with the greater PeerID may have to go on with its own invitation.
        try #require(hello.peer < peer.session.id)
        try peer.invite(hello)
        try peer.cut()
        try peer.open()
        try peer.exchangeHellos(hello)
        try peer.send(.invite, ScriptedPeer.invitation(number: 1))
        try #require(peer.probe.state(of: hello.peer) == .connected)
        try peer.cut()
        try peer.run(.milliseconds(700))
        func resume() throws -> [UInt8]? {
            try peer.openDialled()
            try peer.exchangeHellos(hello)
            let request = try peer.takeFrames().first { $0.type == FrameType.resume.rawValue }
            return request.map { Array($0.payload.prefix(8)) }
        }
        let accepted = [UInt8](repeating: 9, count: 8)
        #expect(try resume() == accepted)
        let dials = peer.dials.count
        try peer.send(.decline, accepted + [3, 0, 0, 0, 0, 0])
        #expect(peer.dials.count == dials + 1)
        #expect(try resume() == peer.conversation)
        #expect(peer.probe.state(of: hello.peer) == .reconnecting)
    }

    /// In half of the rounds the programs answer no invitation.
    @Test func `Two hundred double invitations end with one link each`() throws {
        for round in 0..<200 {
            var random = SeededGenerator(seed: UInt64(round))
            var plan = FaultPlan()
            plan.delay = .milliseconds(Int64.random(in: 0...30, using: &random))
            plan.jitter = .milliseconds(Int64.random(in: 0...10, using: &random))
            plan.seed = random.next()
            let network = SimulatedNetwork(seed: random.next())
            let (puma, lynx) = (
                network.join("Puma", plan: plan, accepting: round % 2 == 0),
                network.join("Lynx", plan: plan, accepting: round % 2 == 0)
            )
            try network.run(for: .milliseconds(200))
            puma.invite(lynx, context: [1])
            try network.run(for: .microseconds(Int64.random(in: 0...150_000, using: &random)))
            lynx.invite(puma, context: [2])
            try network.run(for: .seconds(3))
            for (member, other, context) in [(puma, lynx, 2), (lynx, puma, 1)]
                as [(SessionProbe, SessionProbe, UInt8)]
            {
                try #require(member.outcomes == [.success(other.id)], "round \(round)")
                try #require(member.machine.links.count == 1, "round \(round)")
                try #require(
                    member.states(of: other.id) == [.available, .connecting, .connected], "round \(round)")
                if round % 2 == 1 { #expect(member.invitingContexts == [[context]], "round \(round)") }
            }
        }
    }
}

extension SessionProbe {
    /// The contexts with which others have invited, whether or not this side was asked.
    fileprivate var invitingContexts: [[UInt8]] {
        events.compactMap { event in
            switch event {
            case .invited(let invitation): invitation.context
            case .invitationsCrossed(_, let context): context
            default: nil
            }
        }
    }
}
