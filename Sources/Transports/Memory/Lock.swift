import Glibc

/// A plain lock, held for a few instructions and never while calling out.
///
/// A pthread mutex and not `Synchronization.Mutex`, because that one locks in a way ThreadSanitizer cannot see, and a
/// project that cannot be checked for races will have some.
final class Lock: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init() { pthread_mutex_init(mutex, nil) }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs `body` with the lock held.
    @inline(__always)
    func withLock<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
