import NighCore

/// Records what a pipe receives and reports. Its transport's `TransportRecorder` creates it, and waits for it.
///
/// The monitor guards what is recorded; hence `@unchecked Sendable`.
public final class PipeRecorder: PipeHandler, @unchecked Sendable {
    /// The pipe, which is to be used on its loop.
    public let pipe: any Pipe
    /// The dial that opened the pipe; nil if the pipe was accepted.
    public let dial: DialID?
    private let monitor: Monitor
    private var recordedBytes: [UInt8] = []
    private var recordedSliceCount = 0
    private var recordedLog: [String] = []
    private var recordedError: NighError?
    private var reaction: (ByteSlice) -> Void = { _ in }

    init(_ pipe: any Pipe, dial: DialID?, _ monitor: Monitor) {
        self.pipe = pipe
        self.dial = dial
        self.monitor = monitor
        pipe.start(handler: self)
    }

    /// The bytes received so far.
    public var received: [UInt8] { monitor.read { recordedBytes } }

    /// The number of bytes received so far.
    public var receivedCount: Int { monitor.read { recordedBytes.count } }

    /// The number of slices in which the bytes came.
    public var sliceCount: Int { monitor.read { recordedSliceCount } }

    /// The other events, in order: `writable`, `ended`, `drained`, `closed`, or `closed: ` and the cause.
    public var log: [String] { monitor.read { recordedLog } }

    /// The error with which the pipe was closed.
    public var error: NighError? { monitor.read { recordedError } }

    /// Calls `reaction` with all bytes that come from now on, on the loop.
    public func onReceive(_ reaction: @escaping (ByteSlice) -> Void) {
        monitor.change { self.reaction = reaction }
    }

    /// Writes `bytes` as one slice. Must be called on the loop.
    public func send(_ bytes: some Collection<UInt8>) {
        var queue = ByteQueue()
        queue.append(ByteSlice(bytes))
        pipe.write(&queue)
    }

    /// Records the bytes.
    public func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        monitor.change {
            bytes.withUnsafeBytes { recordedBytes.append(contentsOf: $0) }
            recordedSliceCount += 1
            reaction(bytes)
        }
    }

    /// Records `writable`.
    public func pipeBecameWritable(_ pipe: any Pipe) { record("writable") }

    /// Records `ended`.
    public func pipeEnded(_ pipe: any Pipe) { record("ended") }

    /// Records `drained`.
    public func pipeDrained(_ pipe: any Pipe) { record("drained") }

    /// Records `closed`, and the error.
    public func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        monitor.change {
            recordedError = error
            record(error.map { "closed: \($0.cause)" } ?? "closed")
        }
    }

    private func record(_ event: String) { monitor.change { recordedLog.append(event) } }
}
