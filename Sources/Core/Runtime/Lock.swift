import Glibc

/// A plain lock, held for a few instructions and never while calling out.
///
/// A pthread mutex and not `Synchronization.Mutex`, because that one locks in a way ThreadSanitizer cannot see, and a
/// project that cannot be checked for races will have some.
///
/// `@unchecked Sendable`: a pthread mutex is made to be used from any thread, and the pointer never changes.
@usableFromInline
package final class Lock: @unchecked Sendable {
    @usableFromInline let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    package init() { pthread_mutex_init(mutex, nil) }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs `body` with the lock held.
    @inlinable
    @inline(__always)
    package func withLock<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }
}

/// A value that is only reached with its lock held.
///
/// `@unchecked Sendable`: `withLock` is the only way to the value.
final class Guarded<Value: ~Copyable>: @unchecked Sendable {
    private let lock = Lock()
    private var value: Value

    init(_ value: consuming Value) { self.value = value }

    /// Runs `body` with the lock held.
    @inline(__always)
    func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try lock.withLock { () throws(Failure) in try body(&value) }
    }
}
