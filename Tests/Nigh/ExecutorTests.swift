import Dispatch
import Nigh
import Testing

/// On Linux, Swift's tasks and Dispatch's global queues share their threads, which a program may block. So a call must
/// not leave the executor of its caller for them.
@Suite("A call of a session", .timeLimit(.minutes(15))) struct ExecutorTests {
    /// A caller with a queue of its own.
    private actor Caller {
        private final class Queue: SerialExecutor {
            let queue = DispatchQueue(label: "caller")
            static let mark = DispatchSpecificKey<Bool>()

            init() { queue.setSpecific(key: Self.mark, value: true) }

            func enqueue(_ job: consuming ExecutorJob) {
                let job = UnownedJob(job)
                queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
            }
        }

        /// A value that knows where it was written.
        private final class Value: Encodable, @unchecked Sendable {
            // One call at a time touches it.
            var wasWrittenHere = false

            func encode(to encoder: any Encoder) throws {
                wasWrittenHere = DispatchQueue.getSpecific(key: Queue.mark) == true
                var container = encoder.singleValueContainer()
                try container.encode("value")
            }
        }

        private let queue = Queue()

        nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

        /// Whether each call that writes a value runs on the caller's queue.
        func calls(of session: Session, _ peer: Peer, _ group: Group) async throws -> [Bool] {
            let values = (0..<4).map { _ in Value() }
            try await peer.send(values[0])
            try await session.send(values[1], to: [peer])
            try await session.broadcast(values[2])
            try await group.send(values[3])
            return values.map(\.wasWrittenHere)
        }
    }

    @Test func `A call of a session runs where its caller runs`() async throws {
        try await TestNetwork().pair { puma, _, asLynx in
            let group = try await puma.join("all")
            #expect(try await Caller().calls(of: puma, asLynx, group) == [true, true, true, true])
        }
    }
}
