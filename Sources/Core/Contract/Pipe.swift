/// An ordered byte stream in both directions, opened or accepted by a transport.
///
/// ## The contract, for every member
/// - Everything happens on the transport's loop: the calls to the pipe, and the pipe's calls to its handler.
/// - The pipe **never calls its handler from inside a call** made to the pipe. It does so in a later turn.
/// - Written bytes arrive whole, in order and unchanged, up to where the pipe breaks. Nothing else is promised. In
///   particular, the boundaries between writes mean nothing.
/// - After `close` returns, the pipe does not call its handler again, whatever still comes, except for `pipeDrained`.
/// - The pipe releases its handler with the last call to it, with `close(.now)`, and when the transport is shut down.
public protocol Pipe: AnyObject {
    /// The address of this end, if the transport can name it.
    var localAddress: TransportAddress? { get }

    /// The address of the other end, if the transport can name it.
    var remoteAddress: TransportAddress? { get }

    /// How many bytes may be written now without being held up: the high-water mark minus the bytes that wait. Zero or
    /// less while the pipe is backed up; the pipe calls its handler when that ends.
    var writableBytes: Int { get }

    /// The byte counts so far. After `close(.afterWriting)`, `bytesWaiting` counts the bytes that are still to be sent.
    var counters: PipeCounters { get }

    /// Sets the handler and begins to read. Called once, in the turn in which the pipe was opened.
    func start(handler: any PipeHandler)

    /// Takes all bytes out of `queue` and sends them, now or as soon as possible. It never blocks and never refuses:
    /// bytes beyond `writableBytes` are held in memory, so the caller checks `writableBytes` first. The pipe keeps
    /// slices by reference and releases them once they are sent. Ignored once the pipe has failed, whether or not the
    /// handler has been notified.
    func write(_ queue: inout ByteQueue)

    /// Stops taking bytes from the other end until `resumeReading`, which slows down the writer there. At most the
    /// bytes that were already under way are still delivered. Pauses do not nest.
    func pauseReading()

    /// Continues reading after `pauseReading`.
    func resumeReading()

    /// Opens the pipe's port for datagrams to the other end; nil if there are none. Called at most once, while the pipe
    /// is open.
    func openDatagrams() -> (any DatagramPort)?

    /// Ends the pipe. `.afterWriting` first sends the bytes that wait, in the background and for a bounded time, and
    /// then calls `pipeDrained`. `.now` drops them and calls nothing. The second and later calls do nothing.
    func close(_ mode: PipeCloseMode)
}

extension Pipe {
    /// Returns nil: most pipes have no datagrams.
    public func openDatagrams() -> (any DatagramPort)? { nil }
}

/// How a pipe is closed.
public enum PipeCloseMode: Sendable {
    /// Sends the bytes that wait, for a bounded time, and then closes.
    case afterWriting
    /// Closes at once and drops the bytes that wait.
    case now
}

/// Receives the reports of a pipe, which passes itself as `pipe`. The session's links implement it; all calls come on
/// the loop.
public protocol PipeHandler: AnyObject {
    /// Delivers received bytes, at least one. The handler may keep the slice for as long as it likes.
    func pipe(_ pipe: any Pipe, received bytes: ByteSlice)

    /// Reports that there is room to write again: `writableBytes` was zero or less and is now well above it.
    func pipeBecameWritable(_ pipe: any Pipe)

    /// Reports that the other end has finished writing, so nothing more will be received. Called once. Writing still
    /// works.
    func pipeEnded(_ pipe: any Pipe)

    /// Reports that the pipe broke, or that the other end closed it in both directions. It is the last call, and is not
    /// made after this side's own `close`. Without an error, the other end closed the pipe in good order.
    func pipeClosed(_ pipe: any Pipe, error: NighError?)

    /// Reports, after this side's `close(.afterWriting)`, that none of the written bytes wait any more: `bytesWaiting`
    /// is 0. Either they were handed on, so that shutting down the transport loses none of them, or they were dropped
    /// because the pipe broke or its time was up. Called once and in a later turn, even if nothing waited when the pipe
    /// was closed. It is the last call.
    func pipeDrained(_ pipe: any Pipe)
}

/// The byte counts of a pipe.
public struct PipeCounters: Hashable, Sendable {
    /// The bytes handed to the handler.
    public var bytesReceived = 0
    /// The bytes that `write` took.
    public var bytesWritten = 0
    /// Those of the written bytes that wait in this process.
    public var bytesWaiting = 0

    /// Creates counters that are all zero.
    public init() {}
}
