import NighCore
import NighMemory
import NighTestKit

/// Connecting under TLS, over memory and in virtual time.
///
/// A connection that lasts 100 ms makes the next one cheaper by a ticket. In virtual time none lasts that long, however
/// slow the machine is. `@unchecked Sendable`: confined to the thread that runs it.
final class CountedHandshake: @unchecked Sendable {
    private let loop = VirtualEventLoop(workLimit: .max)
    private let hub = MemoryHub()
    private let caller: Session
    private let answerer: Session
    private let payload = ByteSlice([UInt8](repeating: 0x6e, count: 16))

    init() {
        let (loop, hub) = (loop, hub)
        func session(_ name: String, _ role: SessionRole, seed: UInt64) -> Session {
            var configuration = SessionConfiguration(
                service: "bench", name: DisplayName(fitting: name), role: role)
            configuration.seed = seed
            configuration.datagrams = false
            configuration.timings = .counted
            return Session(
                configuration, identity: .ephemeral(seed: seed),
                transports: [MemoryTransport(hub: hub, address: name)], loop: loop)
        }
        caller = session("caller", .client, seed: 1)
        answerer = session("answerer", .server, seed: 2)
    }

    /// Connects, sends a message there and back, and leaves, again and again.
    func run(_ counter: OperationCounter) throws {
        var isDone = false
        answerer.start(
            onEvent: {
                if case .invited(let invitation) = $0 { invitation.accept() }
            },
            onMessage: { [unowned self] bytes, origin in
                bytes.withUnsafeBytes { bytes in
                    Bursts.demand { try answerer.trySend(bytes, to: origin.peer) }
                }
            })
        let left = Flag()
        caller.start(
            onEvent: { _ in },
            onMessage: { [unowned self] _, origin in
                caller.disconnect(origin.peer) { _ in left.isSet = true }
            })
        while !isDone {
            left.isSet = false
            caller.invite(at: TransportAddress(scheme: "memory", value: "answerer")) {
                [unowned self] result in
                if case .success(let peer) = result {
                    Bursts.demand { try caller.trySend(payload, to: peer) }
                }
            }
            guard try loop.run(until: { left.isSet }, within: .milliseconds(50)) else {
                throw NighError(.connecting, .timedOut)
            }
            isDone = !counter.operationEnded()
        }
        caller.crash()
        answerer.crash()
    }

    /// `@unchecked Sendable`: confined to the thread that runs the loop.
    private final class Flag: @unchecked Sendable {
        var isSet = false
    }
}
