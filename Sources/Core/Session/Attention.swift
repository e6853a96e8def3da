/// How other threads get the loop to look at their ports: a list, and one wake-up for all that is on it.
///
/// The wake-up is a closure made once, so that asking for attention allocates nothing in the steady state.
final class Attention: Sendable {
    private struct State {
        var ports: ContiguousArray<PeerPort> = []
        var isAwake = false
    }

    private let state = Guarded(State())
    private let loop: any EventLoop
    private let wake: @Sendable () -> Void

    /// `wake` is executed on the loop when something was put on the list.
    init(loop: any EventLoop, wake: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.wake = wake
    }

    /// Puts a port on the list that was not on it (`PeerPort.list`).
    func wants(_ port: PeerPort) {
        let mustWake = state.withLock { state in
            state.ports.append(port)
            defer { state.isAwake = true }
            return !state.isAwake
        }
        if mustWake { loop.execute(wake) }
    }

    /// Moves the list to `ports`, which should be empty and keeps its room; the next `wants` wakes the loop again.
    func take(into ports: inout ContiguousArray<PeerPort>) {
        state.withLock { state in
            swap(&state.ports, &ports)
            state.isAwake = false
        }
    }
}
