import Glibc

/// A mutex. On a loop it is held for a few instructions only, and never while other code is called that may wait. A
/// thread that waits with a `Condition` does not hold it meanwhile.
///
/// It is a pthread mutex because ThreadSanitizer does not understand how `Synchronization.Mutex` locks, and code that
/// cannot be checked for data races will have some.
///
/// `@unchecked Sendable`: a pthread mutex may be used from any thread, and the pointer never changes.
@usableFromInline
package struct Lock: ~Copyable, @unchecked Sendable {
    @usableFromInline package let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    /// - Parameter isRecursive: whether the thread that holds the lock may take it again.
    package init(isRecursive: Bool = false) {
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        if isRecursive { pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_RECURSIVE)) }
        pthread_mutex_init(mutex, &attributes)
        pthread_mutexattr_destroy(&attributes)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs `body` with the lock held.
    @inlinable
    @inline(__always)
    package borrowing func withLock<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }
}

/// A value that can be accessed only while its lock is held.
///
/// `@unchecked Sendable`: `withLock` is the only access to the value. For the same reason, the run-time check for
/// exclusive access would find nothing.
@usableFromInline
package final class Guarded<Value: ~Copyable>: @unchecked Sendable {
    @usableFromInline let lock = Lock()
    @exclusivity(unchecked) @usableFromInline var value: Value

    @usableFromInline
    package init(_ value: consuming Value) { self.value = value }

    /// Runs `body` with the lock held.
    @inlinable
    @inline(__always)
    package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try lock.withLock { () throws(Failure) in try body(&value) }
    }
}
