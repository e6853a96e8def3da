/// The state of a stream's port, which its lock guards: the bytes that wait in each direction, how each one ended, and
/// the tasks that wait.
struct StreamPortState {
    /// How one direction stands.
    enum Direction {
        case open
        /// The last byte was written, or has come.
        case finished
        /// This side gave it up for this reason.
        case cancelled(String)
        /// It failed: the other side gave it up, or the conversation has ended.
        case failed(NighError)

        var isOpen: Bool { if case .open = self { true } else { false } }

        var hasFailed: Bool {
            switch self {
            case .cancelled, .failed: true
            case .open, .finished: false
            }
        }
    }

    var sending = Direction.open
    /// Whether the other side was told how sending ended, or need not be told.
    var isSendingEndTaken = false
    var unsent: StreamFrameQueue

    var receiving = Direction.open
    var isStopTaken = false
    var arrived = Ring<ByteSlice>()
    var unread = 0
    /// The chunk into which short pieces are copied, so that each does not keep a large one.
    var tail: Chunk?
    var read: UInt64 = 0
    /// How many of the read bytes the loop knows.
    var readTaken: UInt64 = 0

    var writers = StreamWaiters()
    var readers = StreamWaiters()
    /// Tasks that wait for both, or for `StreamPort.wake`.
    var watchers = StreamWaiters()
    /// Tasks to be resumed once the lock is released.
    var woken = StreamWaiters()
    var loopWaiter: LoopWaiter?
    private var reportedFailures = ReportedFailures()
    var isWoken = false
    /// Whether the link is lost, and the session looks for another one.
    var isReconnecting = false
    var lastWaiter: UInt64 = 0

    /// Code on a loop that waits as a task does.
    struct LoopWaiter {
        let loop: any EventLoop
        let work: @Sendable () -> Void
        let wantsBytes: Bool
        let wantsRoom: Bool
    }

    /// The directions whose failure was reported to code on a loop.
    private struct ReportedFailures {
        var sending = false
        var receiving = false
    }

    init(unsent: StreamFrameQueue) { self.unsent = unsent }

    /// Whether something can be read, or nothing more comes.
    var isReadable: Bool { unread > 0 || !receiving.isOpen }

    /// Whether something can be written if `room` bytes may wait, or nothing more can be.
    func isWritable(within room: Int) -> Bool { unsent.byteCount < room || !sending.isOpen }

    /// Whether a task waits for bytes, or for anything that happens.
    var hasReader: Bool { !(readers.isEmpty && watchers.isEmpty) || loopWaiter?.wantsBytes == true }

    /// Whether a direction has failed since code on a loop was last told.
    var hasUnreportedFailure: Bool {
        sending.hasFailed && !reportedFailures.sending || receiving.hasFailed && !reportedFailures.receiving
    }

    /// Drops the unread bytes, as if they had been read.
    mutating func dropUnread() {
        read &+= UInt64(unread)
        unread = 0
        arrived.removeAll()
        tail = nil
    }

    /// Wakes the tasks and the code on a loop that wait for room to write.
    mutating func wakeWriters() {
        if loopWaiter?.wantsRoom == true || hasUnreportedFailure { notifyLoop() }
        woken.take(from: &writers)
        woken.take(from: &watchers)
    }

    /// Wakes the tasks and the code on a loop that wait for something to read.
    mutating func wakeReaders() {
        if loopWaiter?.wantsBytes == true || hasUnreportedFailure { notifyLoop() }
        woken.take(from: &readers)
        woken.take(from: &watchers)
    }

    /// Gives the work to the loop, which does it later, so the lock may be held.
    mutating func notifyLoop() {
        guard let waiter = loopWaiter.take() else { return }
        reportedFailures = ReportedFailures(sending: sending.hasFailed, receiving: receiving.hasFailed)
        waiter.loop.execute(waiter.work)
    }
}
