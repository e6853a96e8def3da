import Glibc
import Synchronization

/// Tells whether the caller runs on one certain thread, such as that of an event loop.
@usableFromInline
package final class ThreadMark: Sendable {
    @usableFromInline let number = Atomic<UInt>(0)

    package init() {}

    /// Marks the calling thread.
    package func begin() { number.store(UInt(pthread_self()), ordering: .relaxed) }

    /// Removes the mark.
    package func end() { number.store(0, ordering: .relaxed) }

    /// Whether the caller runs on the marked thread.
    @inlinable
    @inline(__always)
    package var isCurrent: Bool { number.load(ordering: .relaxed) == UInt(pthread_self()) }
}

/// An event loop with one thread of its own from beginning to end. A session compares that thread itself: asking the
/// loop would take a tenth of the time of a small message.
package protocol ThreadedEventLoop: EventLoop {
    /// The mark of the thread.
    var threadMark: ThreadMark { get }
}
