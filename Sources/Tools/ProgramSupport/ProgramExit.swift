import NighCore

/// Decides when the program ends and with which status: the first reason counts.
///
/// `@unchecked Sendable`: the variables are guarded by the lock.
public final class ProgramExit: @unchecked Sendable {
    private let lock = Lock()
    private var decided: Int32?
    private var waiting: CheckedContinuation<Int32, Never>?

    /// Creates an exit that is not decided yet.
    public init() {}

    /// Waits for the status, and returns it. Only one caller may wait.
    public func status() async -> Int32 {
        await withCheckedContinuation { continuation in
            let status = lock.withLock {
                if decided == nil { waiting = continuation }
                return decided
            }
            if let status { continuation.resume(returning: status) }
        }
    }

    /// Ends the program with this status. Only the first call counts. Any thread may call this.
    public func request(_ status: Int32) {
        let waiting = lock.withLock { () -> CheckedContinuation<Int32, Never>? in
            guard decided == nil else { return nil }
            decided = status
            return self.waiting
        }
        waiting?.resume(returning: status)
    }
}
