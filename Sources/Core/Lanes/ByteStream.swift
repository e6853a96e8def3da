/// A stream of bytes to and from a connected peer, next to other streams and to messages.
///
/// Each direction has its own end: after `finish` the other direction goes on. Every byte arrives exactly once and in
/// order, also when the link breaks and another link takes over; otherwise both programs get an error with the reason.
/// A stream whose bytes are not read slows its own writer and nothing else.
///
/// Any task may use a stream; let one write and one read. A stream that nobody refers to any more is cancelled, but
/// bytes written before `finish` still arrive.
public final class ByteStream: Sendable {
    let port: StreamPort

    init(_ port: StreamPort) { self.port = port }

    deinit {
        port.cancelReading(Self.abandoned)
        port.cancelWriting(Self.abandoned)
    }

    private static let abandoned = "the program let go of the stream"

    /// The peer at the other end.
    public var peer: PeerID { port.peer }
    /// The identity that the peer acts for.
    package var identity: PeerID { port.identity }
    /// The name and the short PeerID of the peer, for errors.
    package var peerLabel: String { port.label }
    /// The name that the opening side gave the stream. Several streams may have the same name.
    public var name: String { port.name }
    /// Whether the peer opened the stream.
    public var isIncoming: Bool { !port.isOwn }
    package var purpose: StreamPurpose { port.purpose }

    // MARK: Writing

    /// Writes all of `bytes`. Waits while as many bytes wait to be sent as `limits.streamWindow` says. Returns when
    /// they are accepted, which is before they arrive.
    ///
    /// Fails if the peer has stopped reading, the stream is finished or cancelled, or the conversation has ended. If
    /// the task is cancelled, some of the bytes may have been written.
    public nonisolated(nonsending) func write(_ bytes: some Collection<UInt8>) async throws(NighError) {
        try await write(ByteSlice(bytes))
    }

    /// Writes all bytes of a slice; see the first `write`.
    public nonisolated(nonsending) func write(_ bytes: ByteSlice) async throws(NighError) {
        var position = 0
        while position < bytes.count {
            if Task.isCancelled { throw NighError(.sending, .cancelled, peer: peerLabel) }
            let count = try tryWrite(bytes[position..<bytes.count])
            position += count
            if count == 0 { await port.waitForRoom() }
        }
    }

    /// Writes as many of the bytes as there is room for, without waiting, and returns how many.
    public func tryWrite(_ bytes: ByteSlice) throws(NighError) -> Int {
        try bytes.withUnsafeBytes { bytes throws(NighError) in try port.write(bytes) }
    }

    /// Waits until there may be room to write, or writing has ended, or the task is cancelled.
    package nonisolated(nonsending) func waitForRoom() async { await port.waitForRoom() }

    /// Writes as many of the bytes as there is room for, without waiting, and returns how many.
    package func tryWrite(_ bytes: UnsafeRawBufferPointer) throws(NighError) -> Int {
        try port.write(bytes)
    }

    /// Ends writing. Everything that was written arrives, and then the peer's program sees the end.
    public func finish() { port.finish() }

    /// Gives up writing: unsent bytes are dropped, and the peer's program gets an error with the reason. Does nothing
    /// after `finish`.
    public func cancelWriting(because reason: String = "") { port.cancelWriting(reason) }

    /// Waits until nothing more can be written, and returns why: the error that a write fails with from then on.
    /// Returns nil if this side has finished.
    ///
    /// A side that takes its time for an answer learns from this that nobody waits for it any more, also when the peer
    /// has finished its own direction before. If the task is cancelled, the error is `cancelled`, and the stream is as
    /// before.
    public nonisolated(nonsending) func stopped() async -> NighError? { await port.waitForStop() }

    // MARK: Reading

    /// The result of `poll`.
    package enum Reading {
        case bytes(ByteSlice)
        /// Nothing has come that is not read.
        case nothing
        case end
        case failed(NighError)
    }

    /// Takes the next bytes without waiting.
    package func poll() -> Reading { port.read() }

    /// Waits for the next bytes. Returns nil after the last. Fails if the peer gave up writing or the conversation has
    /// ended, but not before everything that had come was read. Fails if the task is cancelled while nothing is there,
    /// and takes nothing then.
    public nonisolated(nonsending) func read() async throws(NighError) -> ByteSlice? {
        while true {
            switch poll() {
            case .bytes(let bytes): return bytes
            case .end: return nil
            case .failed(let error): throw error
            case .nothing: break
            }
            if Task.isCancelled { throw NighError(.receiving, .cancelled, peer: peerLabel) }
            await port.waitForBytes()
        }
    }

    /// Gives up reading: unread bytes are dropped, and the peer's program gets an error with the reason as soon as it
    /// writes.
    public func cancelReading(because reason: String = "") { port.cancelReading(reason) }

    /// Gives up both directions.
    public func cancel(because reason: String = "") {
        cancelReading(because: reason)
        cancelWriting(because: reason)
    }
}

// For code that reads and writes in one task.
extension ByteStream {
    /// Waits until `wake` was called or `isReconnecting` has changed, or with `bytes` until there is something to read
    /// or reading has ended, or with `room` until there is room to write or writing has ended.
    package nonisolated(nonsending) func waitForActivity(bytes: Bool, room: Bool) async {
        await port.waitForActivity(bytes: bytes, room: room)
    }

    /// Runs `work` once on the loop, in a later turn, as soon as there is something to read (with `bytes`) or room to
    /// write (with `room`), or a direction has failed. A failure runs work once, and later only work that asks for its
    /// direction. Replaces the work of an earlier call. Call this on `loop` only.
    package func notify(bytes: Bool, room: Bool, on loop: any EventLoop, _ work: @escaping () -> Void) {
        port.notify(bytes: bytes, room: room, on: loop, work)
    }

    /// Why no more bytes come, even if some are still unread; nil if more may come, or they ended in good order.
    package var failure: NighError? { port.failure }

    /// Whether the link is lost, and the session looks for another one. A change does what `wake` does.
    package var isReconnecting: Bool { port.isReconnecting }

    /// Ends the present or the next `waitForActivity`.
    package func wake() { port.wake() }
}

extension ByteStream: AsyncSequence {
    /// Reads the stream; see `read`.
    public struct Iterator: AsyncIteratorProtocol {
        let stream: ByteStream

        /// The next bytes; nil after the last.
        public mutating func next() async throws(NighError) -> ByteSlice? { try await stream.read() }

        /// The next bytes, with the isolation of the caller, as `for try await` asks for it.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(NighError) -> ByteSlice? {
            try await stream.read()
        }
    }

    /// Creates the iterator that `for try await` uses.
    public func makeAsyncIterator() -> Iterator { Iterator(stream: self) }
}
