import NighCore

/// When the program is to leave, and with which status: whichever reason comes first.
///
/// `@unchecked Sendable`: what changes is guarded by the lock.
public final class ProgramEnd: @unchecked Sendable {
    private let lock = Lock()
    private var decided: Int32?
    private var waiting: CheckedContinuation<Int32, Never>?

    /// Not decided yet.
    public init() {}

    /// The status, once there is one. For one caller.
    public func status() async -> Int32 {
        await withCheckedContinuation { continuation in
            let status = lock.withLock {
                if decided == nil { waiting = continuation }
                return decided
            }
            if let status { continuation.resume(returning: status) }
        }
    }

    /// The program is to leave with that status. The first counts; from any thread.
    public func come(_ status: Int32) {
        let waiting = lock.withLock { () -> CheckedContinuation<Int32, Never>? in
            guard decided == nil else { return nil }
            decided = status
            return self.waiting
        }
        waiting?.resume(returning: status)
    }
}
