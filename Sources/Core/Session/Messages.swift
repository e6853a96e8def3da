/// Where a message came from, and how.
public struct MessageOrigin: Hashable, Sendable {
    /// Who sent it.
    public let peer: PeerID
    /// The lane it came by; unreliable messages count as `.main`.
    public let lane: Lane
    /// Whether it was sent reliably.
    public let isReliable: Bool

    /// An origin.
    public init(peer: PeerID, lane: Lane, isReliable: Bool) {
        self.peer = peer
        self.lane = lane
        self.isReliable = isReliable
    }
}

/// A message that was received and kept.
public struct Message: Sendable {
    /// Where it came from, and how.
    public let origin: MessageOrigin
    /// What it says, sharing memory with what was received. Take `payload.copy()` to store a small one for long.
    public let payload: ByteSlice

    /// Who sent it.
    public var peer: PeerID { origin.peer }
    /// What it says, copied into an array.
    public var bytes: [UInt8] { payload.bytes }
}

/// Called on the session's loop with each message, in place: the span is valid for the time of the call, nothing is
/// copied. It must not block. It may call the session, also to send.
public typealias MessageHandler = @Sendable (_ bytes: RawSpan, _ origin: MessageOrigin) -> Void

/// Called on the session's loop with each event. It must not block. It may call the session.
public typealias EventHandler = @Sendable (SessionEvent) -> Void

/// The messages of all peers, each peer's lane in the order sent; for one task at a time.
///
/// Bounded: what is not read slows the senders down (`SessionLimits.receiveWindow`), each for itself. Ends when the
/// session is closed, after everything that came has been read.
public struct MessageSequence: AsyncSequence, Sendable {
    let inbox: MessageInbox

    /// The next message without waiting; nil when none is there now. Callable from any thread.
    public func poll() -> Message? { inbox.poll() }

    /// The next message; nil when the session is closed and everything is read, or the task is cancelled. It runs where
    /// its caller runs, and where a message is there already it does not wait for anybody's turn.
    public nonisolated(nonsending) func next() async -> Message? {
        if let message = inbox.poll() { return message }
        return await inbox.waitForNext()
    }

    /// What `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(sequence: self) }

    /// Reads the sequence it was made from.
    public struct Iterator: AsyncIteratorProtocol {
        let sequence: MessageSequence

        /// The next element, as the sequence's own `next` gives it.
        public nonisolated(nonsending) mutating func next() async -> Message? { await sequence.next() }

        /// The same, with the caller's isolation as `for await` states it.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Message? {
            await sequence.next()
        }
    }
}

/// The events of a session in order; for one task at a time.
///
/// Bounded by `SessionLimits.unreadEvents`: beyond it the oldest are dropped, and `.missed` tells how many. Ends after
/// `.closed`.
public struct EventSequence: AsyncSequence, Sendable {
    let inbox: Inbox<SessionEvent>

    /// The next event without waiting; nil when none is there now. Callable from any thread.
    public func poll() -> SessionEvent? { missed() ?? inbox.poll() }

    /// The next event; nil after the last, or when the task is cancelled.
    public nonisolated(nonsending) func next() async -> SessionEvent? {
        while true {
            if let event = poll() { return event }
            guard await inbox.wait() else { return nil }
        }
    }

    private func missed() -> SessionEvent? {
        let count = inbox.takeDropped()
        return count > 0 ? .missed(count) : nil
    }

    /// What `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(sequence: self) }

    /// Reads the sequence it was made from.
    public struct Iterator: AsyncIteratorProtocol {
        let sequence: EventSequence

        /// The next element, as the sequence's own `next` gives it.
        public mutating func next() async -> SessionEvent? { await sequence.next() }
    }
}
