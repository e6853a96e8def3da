import Glibc

/// A recursive lock on which a thread can wait until something that the lock guards has changed.
///
/// The testbed's monitor guards what probes record on their loops. The thread that runs the check reads it.
package final class Monitor: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        var mutexAttributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&mutexAttributes)
        pthread_mutexattr_settype(&mutexAttributes, Int32(PTHREAD_MUTEX_RECURSIVE))
        pthread_mutex_init(mutex, &mutexAttributes)
        pthread_mutexattr_destroy(&mutexAttributes)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` with the lock held.
    package func read<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    /// Runs `body` with the lock held, then wakes the waiting threads.
    package func change<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(condition)
            pthread_mutex_unlock(mutex)
        }
        return try body()
    }

    /// Waits until `isTrue` returns true, for at most `duration` as `LoadAdjustedClock` measures it, which is longer on a busy
    /// machine. Calls `isTrue` with the lock held. Returns whether it became true.
    package func wait(within duration: Duration, until isTrue: () -> Bool) -> Bool {
        let clock = LoadAdjustedClock()
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            let left = duration - clock.elapsed
            if wait(atMost: max(.zero, min(left, .milliseconds(50))), until: isTrue) { return true }
            guard left > .zero else { return false }
            clock.advance()
        }
    }

    /// Waits until `isTrue` returns true, with the lock held, for at most `duration` of real time. Calls `isTrue` after
    /// every change, and does nothing else.
    private func wait(atMost duration: Duration, until isTrue: () -> Bool) -> Bool {
        var deadline = timespec()
        clock_gettime(CLOCK_MONOTONIC, &deadline)
        let (seconds, attoseconds) = duration.components
        let nanoseconds = deadline.tv_nsec + Int(attoseconds / 1_000_000_000)
        deadline.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
        deadline.tv_nsec = nanoseconds % 1_000_000_000
        while !isTrue() {
            guard pthread_cond_timedwait(condition, mutex, &deadline) == 0 else { return isTrue() }
        }
        return true
    }
}
