import Synchronization

/// The streams and resources that are under way with one peer of a session. They end when the peer is no longer
/// connected.
final class TransferList: Sendable {
    private struct State {
        var ends: [UInt64: @Sendable () -> Void] = [:]
        var last: UInt64 = 0
        var isOver = false
    }

    private let state = Mutex(State())

    /// Adds a transfer that `end` ends, and returns its number. Nil if it is too late: then `end` is not called.
    func add(_ end: @escaping @Sendable () -> Void) -> UInt64? {
        state.withLock { state in
            guard !state.isOver else { return nil }
            state.last += 1
            state.ends[state.last] = end
            return state.last
        }
    }

    func remove(_ number: UInt64) { state.withLock { _ = $0.ends.removeValue(forKey: number) } }

    /// Ends all transfers, and those that would be added.
    func end() {
        let ends = state.withLock { state in
            defer { state.ends = [:] }
            state.isOver = true
            return Array(state.ends.values)
        }
        for end in ends { end() }
    }
}
