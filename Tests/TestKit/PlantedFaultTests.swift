import Testing

@testable import NighCore
@testable import NighTestKit

/// What a session keeps is put out of order on purpose, and the world it lives in says so.
struct PlantedFaultTests {
    /// Something that a session must never do to itself.
    enum Fault: CaseIterable {
        /// A message is admitted and not kept.
        case losesAMessage
        /// A message is kept that was not admitted.
        case keepsAMessageTooMany
        /// A peer's links are counted wrongly.
        case miscountsLinks
        /// What is said to a peer goes to no link, and nobody looks for one.
        case losesALink
        /// An answer that is waited for may never come, and nobody looks at the clock.
        case sleepsThroughADeadline

        func befall(_ machine: SessionMachine, _ peer: PeerRecord, _ conversation: Conversation) {
            switch self {
            case .losesAMessage: try? conversation.port.admit(100)
            case .keepsAMessageTooMany:
                conversation.append(ByteSlice([1, 2, 3]), on: .main, pool: &machine.outbox.pool)
            case .miscountsLinks: peer.linkCount += 1
            case .losesALink: conversation.link = nil
            case .sleepsThroughADeadline: peer.carrier?.movesAt = Moment(nanoseconds: 0)
            }
        }
    }

    @Test(arguments: Fault.allCases)
    func aSessionThatContradictsItselfIsReported(_ fault: Fault) {
        for seed in [1, 2, 4] as [UInt64] {
            let report = World.run(seed: seed) { world in befall(world, fault) }
            #expect(
                report.finding?.rule == .consistency, "seed \(seed): \(report.finding?.words ?? "nothing")")
        }
    }

    /// Has the fault befall the first session that has a conversation.
    private func befall(_ world: World, _ fault: Fault) {
        world.later(.milliseconds(10)) {
            for life in world.awake {
                guard let machine = life.session?.driver.machine,
                    let peer = machine.sortedPeers.first(where: { $0.state == .connected }),
                    let conversation = peer.conversation, !conversation.port.hasStaged
                else { continue }
                return fault.befall(machine, peer, conversation)
            }
            befall(world, fault)
        }
    }
}
