import NighCore
import NighSystem

/// A recursive lock on which a thread can wait until something that the lock guards has changed.
///
/// The testbed's monitor guards what probes record on their loops. The thread that runs the check reads it.
package final class Monitor: Sendable {
    private let lock = Lock(isRecursive: true)
    private let changed = Condition()

    package init() {}

    /// Runs `body` with the lock held.
    package func read<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try lock.withLock(body)
    }

    /// Runs `body` with the lock held, then wakes the waiting threads.
    package func change<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try lock.withLock { () throws(Failure) in
            defer { changed.notify() }
            return try body()
        }
    }

    /// Waits until `isTrue` returns true, for at most `duration` as `LoadAdjustedClock` measures it, which is longer on
    /// a busy machine. Calls `isTrue` with the lock held. Returns whether it became true.
    package func wait(within duration: Duration, until isTrue: () -> Bool) -> Bool {
        let clock = LoadAdjustedClock()
        return lock.withLock {
            while true {
                let left = duration - clock.elapsed
                if wait(atMost: max(.zero, min(left, .milliseconds(50))), until: isTrue) { return true }
                guard left > .zero else { return false }
                clock.advance()
            }
        }
    }

    /// Waits until `isTrue` returns true, with the lock held, for at most `duration` of real time. Calls `isTrue` after
    /// every change, and does nothing else.
    private func wait(atMost duration: Duration, until isTrue: () -> Bool) -> Bool {
        let deadline = LoopThread.now + Moment.Span(duration)
        while !isTrue() {
            guard LoopThread.now < deadline else { return false }
            changed.wait(with: lock, until: deadline)
        }
        return true
    }
}
