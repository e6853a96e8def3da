/// The list of ports that other threads want the loop to look at, with one wake-up for all ports on it.
///
/// The wake-up is a closure that is made once, so that adding a port allocates nothing in the steady state.
final class PortNotifier: Sendable {
    private struct State {
        var ports: ContiguousArray<PeerPort> = []
        var isAwake = false
        var isClosed = false
    }

    private let state = Guarded(State())
    private let loop: any EventLoop
    private let wake: @Sendable () -> Void

    /// Creates an empty list. `wake` is executed on the loop when a port was added.
    init(loop: any EventLoop, wake: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.wake = wake
    }

    /// Adds a port that was not on the list (`PeerPort.markListed`).
    func add(_ port: PeerPort) {
        let mustWake = state.withLock { state in
            guard !state.isClosed else { return false }
            state.ports.append(port)
            defer { state.isAwake = true }
            return !state.isAwake
        }
        if mustWake { loop.execute(wake) }
    }

    /// Moves the list to `ports`, which should be empty and keeps its capacity. The next `add` wakes the loop again.
    func take(into ports: inout ContiguousArray<PeerPort>) {
        state.withLock { state in
            swap(&state.ports, &ports)
            state.isAwake = false
        }
    }

    /// Empties the list for good, because nobody looks at it any more. Each port on it refers to it.
    func close() {
        let ports = state.withLock { state in
            state.isClosed = true
            defer { state.ports = [] }
            return state.ports
        }
        // A port that nobody else holds ends here, without the lock.
        _ = ports
    }
}
