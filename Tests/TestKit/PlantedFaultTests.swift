import NighTestKit
import Testing

@testable import NighCore
@testable import Worlds

/// Damages the state of a session on purpose, and tests that the world reports it.
struct PlantedFaultTests {
    /// A kind of damage that a session must never do to its own state.
    enum Fault: CaseIterable {
        /// A message is admitted, but not kept.
        case losesAMessage
        /// A message is kept, but was not admitted.
        case keepsAMessageTooMany
        /// A peer's links are counted wrongly.
        case miscountsLinks
        /// A connected conversation has no link, and nothing looks for one.
        case losesALink
        /// An awaited answer may never come, and nothing checks the deadline.
        case sleepsThroughADeadline

        func apply(_ machine: SessionMachine, _ peer: PeerRecord, _ conversation: Conversation) {
            switch self {
            case .losesAMessage: try? conversation.port.admit(100)
            case .keepsAMessageTooMany:
                conversation.append(ByteSlice([1, 2, 3]), on: .main, pool: &machine.outbox.pool)
            case .miscountsLinks: peer.linkCount += 1
            case .losesALink: conversation.link = nil
            case .sleepsThroughADeadline: peer.carryingLink?.movesAt = Moment(nanoseconds: 0)
            }
        }
    }

    @Test(arguments: Fault.allCases)
    func `An inconsistent session is reported`(_ fault: Fault) {
        for seed in [1, 2, 4] as [UInt64] {
            let report = World.run(seed: seed) { world in apply(world, fault) }
            #expect(
                report.finding?.rule == .consistency, "seed \(seed): \(report.finding?.message ?? "nothing")")
        }
    }

    @Test func `A session that forgets whom it refuses is reported`() {
        let findings = (1...8 as ClosedRange<UInt64>).compactMap { seed in
            World.run(seed: seed) { $0.forgetsRefusals = true }.finding
        }
        #expect(findings.count >= 4)
        #expect(findings.allSatisfy { $0.rule == .refusals }, "\(findings.map(\.rule))")
    }

    /// Applies the fault to the first session that has a conversation.
    private func apply(_ world: World, _ fault: Fault) {
        world.schedule(after: .milliseconds(10)) {
            for run in world.activeRuns {
                guard let machine = run.session?.driver.machine,
                    let peer = machine.sortedPeers.first(where: { $0.state == .connected }),
                    let conversation = peer.conversation, !conversation.port.hasStaged
                else { continue }
                return fault.apply(machine, peer, conversation)
            }
            apply(world, fault)
        }
    }
}
