import Glibc
import NighCore

/// Lets threads wait until something that a `Lock` guards has changed.
///
/// A thread waits in a loop: with the lock held, it looks whether what it needs is there, and waits if not. A thread
/// that changes it calls `notify`, with the lock held.
///
/// `@unchecked Sendable`: a pthread condition may be used from any thread, and the pointer never changes.
package struct Condition: ~Copyable, @unchecked Sendable {
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // The clock of `LoopThread.now`.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    /// Releases the lock, which the caller holds, until `notify` is called, and takes it again. May also return without
    /// a reason.
    package borrowing func wait(with lock: borrowing Lock) { pthread_cond_wait(condition, lock.mutex) }

    /// Waits as `wait(with:)` does, but returns at `moment` at the latest.
    package borrowing func wait(with lock: borrowing Lock, until moment: Moment) {
        var time = timespec(
            tv_sec: Int(moment.nanoseconds / 1_000_000_000), tv_nsec: Int(moment.nanoseconds % 1_000_000_000))
        pthread_cond_timedwait(condition, lock.mutex, &time)
    }

    /// Wakes all threads that wait.
    package borrowing func notify() { pthread_cond_broadcast(condition) }
}
