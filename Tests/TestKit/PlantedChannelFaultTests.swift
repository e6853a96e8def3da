import NighCore
import NighTestKit
import NighTestKit
import Testing

@testable import Worlds

/// Damages what users read from channels on purpose, and tests that the world reports it.
struct PlantedChannelFaultTests {
    /// The things that a channel must never do to a message.
    enum Fault: CaseIterable {
        case losesAMessage
        case repeatsAMessage
        case swapsMessages
        case changesAByte
        /// The channel itself loses a message: somebody else has read it.
        case givesAMessageToAnotherReader
    }

    @Test(arguments: Fault.allCases)
    func `A world reports a message of a channel that is lost, repeated, moved or changed`(_ fault: Fault) {
        var caught = 0
        for seed in 1...60 as ClosedRange<UInt64> where caught < 3 {
            nonisolated(unsafe) var damaged = 0
            // A world that keeps no log runs again if something is found.
            let report = World.run(seed: seed, keepingLog: true) { world in
                damage(world, fault) { damaged += 1 }
            }
            // In a storm any conversation may end, and its messages may be lost then.
            guard damaged > 5 || report.finding != nil else { continue }
            let rules: [Violation.Rule] = [.exactlyOnce, .order, .delivery]
            #expect(
                report.finding.map { rules.contains($0.rule) } == true,
                "seed \(seed): \(report.finding?.message ?? "nothing")")
            caught += 1
        }
        #expect(caught == 3)
    }

    private func damage(_ world: World, _ fault: Fault, note: @escaping () -> Void) {
        if fault == .givesAMessageToAnotherReader { return readAlong(in: world, note: note) }
        var count = 0
        var held: Message?
        world.messagesRead = { message in
            count += 1
            if let last = held {
                held = nil
                return [message, last]
            }
            guard count % 5 == 0, !message.payload.isEmpty else { return [message] }
            note()
            switch fault {
            case .losesAMessage: return []
            case .repeatsAMessage: return [message, message]
            case .swapsMessages:
                held = message
                return []
            default:
                var bytes = message.bytes
                bytes[bytes.count - 1] ^= 1
                return [Message(origin: message.origin, payload: ByteSlice(bytes))]
            }
        }
    }

    private func readAlong(in world: World, note: @escaping () -> Void) {
        world.schedule(after: .milliseconds(170)) {
            for port in world.activeRuns.flatMap({ ($0.channels?.open ?? [:]).values })
            where port.poll() != nil {
                note()
            }
            if !world.isQuiet { readAlong(in: world, note: note) }
        }
    }
}
