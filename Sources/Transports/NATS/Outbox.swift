import NighCore
import Synchronization

/// The commands of the loop to a client's thread, in order.
///
/// The publisher bounds the queue, by sending no more than others have granted. ``NATSConnection`` drops packets beyond
/// ``limit``, so that a mistake there cannot fill the memory. Callable from any thread.
final class Outbox: Sendable {
    enum Command: Sendable {
        case publish([UInt8], subject: String, answers: String?)
        case subscribe(String)
        case unsubscribe(String)
        case mark(UInt64)
    }

    /// The most bytes that wait.
    static let limit = 64 << 20

    private struct State {
        var commands = ContiguousArray<Command>()
        /// The number of the connection that the commands are for.
        var generation: UInt64 = 0
        var isAsleep = false
        var hasEnded = false
    }

    private let state = Guarded(State())
    private let waiting = Atomic<Int>(0)

    /// The bytes of the packets that the library has not been given yet.
    var byteCount: Int { waiting.load(ordering: .sequentiallyConsistent) }

    /// Adds a command for the connection numbered `generation`. Commands for an earlier one are dropped. Returns
    /// whether the thread has to be woken.
    func add(_ command: Command, for generation: UInt64) -> Bool {
        if case .publish(let packet, _, _) = command {
            waiting.add(packet.count, ordering: .sequentiallyConsistent)
        }
        return state.withLock { state in
            if state.generation != generation {
                drop(state.commands)
                state.commands.removeAll(keepingCapacity: true)
                state.generation = generation
            }
            state.commands.append(command)
            defer { state.isAsleep = false }
            return state.isAsleep
        }
    }

    /// Has the thread end, once it is awake.
    func end() { state.withLock { $0.hasEnded = true } }

    // MARK: On the client's thread

    /// Whether the thread is to end.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Exchanges `commands`, which is empty, for those that wait. Returns the number of their connection.
    func take(_ commands: inout ContiguousArray<Command>) -> UInt64 {
        state.withLock { state in
            swap(&state.commands, &commands)
            return state.generation
        }
    }

    /// Returns false if there is something to do. Otherwise the next command wakes the thread.
    func fallAsleep() -> Bool {
        state.withLock { state in
            state.isAsleep = state.commands.isEmpty && !state.hasEnded
            return state.isAsleep
        }
    }

    /// No command needs to wake the thread any more.
    func wakeUp() { state.withLock { $0.isAsleep = false } }

    /// Counts a packet that the library has been given, or that was dropped.
    func packetLeft(_ byteCount: Int) { waiting.subtract(byteCount, ordering: .sequentiallyConsistent) }

    /// Counts the packets among `commands`, which are not carried out.
    func drop(_ commands: some Collection<Command>) {
        for case .publish(let packet, _, _) in commands { packetLeft(packet.count) }
    }
}
