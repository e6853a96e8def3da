/// An ordered stream of bytes both ways, opened or accepted by a transport.
///
/// ## The contract, for every member
/// - Everything happens on the transport's loop, both the calls and what the handler is told.
/// - The handler is **never called from inside a call** made to the pipe; it is told in a later turn.
/// - What was written arrives whole, in order and unchanged, up to where the pipe breaks; nothing else is promised. In
///   particular, how the bytes were cut into writes means nothing.
/// - After `close` returns, the handler is not called again, whatever still comes, but for `pipeDrained`.
/// - The pipe lets go of its handler with the last call to it, with `close(.now)`, and when the transport is shut down.
public protocol Pipe: AnyObject {
    /// This end, where the transport can name it.
    var localAddress: TransportAddress? { get }

    /// The other end, where the transport can name it.
    var remoteAddress: TransportAddress? { get }

    /// How many bytes may be written now without being held up: high-water mark less what waits. Zero or less when
    /// the pipe is backed up; the handler is told when that ends.
    var writableBytes: Int { get }

    /// What has passed so far. After `close(.afterWriting)`, `bytesWaiting` tells what is still to be sent.
    var counters: PipeCounters { get }

    /// Sets who is told, and begins to read. Called once, in the turn in which the pipe was opened.
    func start(handler: any PipeHandler)

    /// Takes all bytes out of `queue` and sends them, now or as soon as possible. Never blocks, never refuses: beyond
    /// `writableBytes` it holds them in memory, so the caller looks there first. It keeps slices by reference and
    /// lets go of them once sent. Ignored once the pipe has failed (the handler has been told or will be).
    func write(_ queue: inout ByteQueue)

    /// Takes no more bytes from the other end until `resumeReading`; what this holds up slows the writer there. At
    /// most what was under way already is still told. Calls do not add up.
    func pauseReading()

    /// Reads again.
    func resumeReading()

    /// Ends the pipe. `.afterWriting` first sends what was written, in the background and for a bounded time, and then
    /// tells `pipeDrained`; `.now` drops it and tells nothing. The second and later calls do nothing.
    func close(_ manner: PipeCloseManner)
}

/// How a pipe is closed.
public enum PipeCloseManner: Sendable {
    /// What was written before is sent first, for as long as that takes but for a bounded time.
    case afterWriting
    /// At once; what waits is dropped.
    case now
}

/// Who a pipe tells what happens, with itself as `pipe`. The session's links implement it; all calls come on the loop.
public protocol PipeHandler: AnyObject {
    /// Bytes came, at least one. The slice may be kept as long as wanted.
    func pipe(_ pipe: any Pipe, received bytes: ByteSlice)

    /// `writableBytes` was zero or less and is well above it again.
    func pipeBecameWritable(_ pipe: any Pipe)

    /// The other end has finished writing; nothing more will be received. Told once. Writing still works.
    func pipeEnded(_ pipe: any Pipe)

    /// The pipe broke, or the other end closed it altogether. The last call; not made after this side's own `close`.
    /// Without an error the other end closed it in good order.
    func pipeClosed(_ pipe: any Pipe, error: NighError?)

    /// After this side's `close(.afterWriting)`: nothing of what was written waits any more, and `bytesWaiting` is 0. It has
    /// been handed on so that shutting down the transport loses none of it, or it was dropped: the pipe broke, or its time
    /// was up. Told once and in a later turn, also where nothing waited when the pipe was closed. The last call.
    func pipeDrained(_ pipe: any Pipe)
}

/// What has passed through a pipe.
public struct PipeCounters: Hashable, Sendable {
    /// Bytes handed to the handler.
    public var bytesReceived = 0
    /// Bytes taken by `write`.
    public var bytesWritten = 0
    /// Bytes of those that wait in this process.
    public var bytesWaiting = 0

    /// All zero.
    public init() {}
}
