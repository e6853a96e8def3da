@testable import NighCore

/// A pipe that records what passes through it, slice by slice and in order.
final class WatchedPipe: Pipe, PipeHandler {
    enum Entry {
        /// One call of `write`, with the slices that it took.
        case wrote([ByteSlice])
        case received(ByteSlice)

        var byteCount: Int {
            switch self {
            case .wrote(let slices): slices.reduce(0) { $0 + $1.count }
            case .received(let slice): slice.count
            }
        }
    }

    private let inner: any Pipe
    private var handler: (any PipeHandler)?
    var entries: [Entry] = []

    var writes: [[ByteSlice]] {
        entries.compactMap { if case .wrote(let slices) = $0 { slices } else { nil } }
    }
    var reads: [ByteSlice] { entries.compactMap { if case .received(let slice) = $0 { slice } else { nil } } }

    init(_ inner: any Pipe) { self.inner = inner }

    var localAddress: TransportAddress? { inner.localAddress }
    var remoteAddress: TransportAddress? { inner.remoteAddress }
    var writableBytes: Int { inner.writableBytes }
    var counters: PipeCounters { inner.counters }

    func start(handler: any PipeHandler) {
        self.handler = handler
        inner.start(handler: self)
    }

    func write(_ queue: inout ByteQueue) {
        entries.append(.wrote((0..<queue.sliceCount).map { queue[$0] }))
        inner.write(&queue)
    }

    func pauseReading() { inner.pauseReading() }
    func resumeReading() { inner.resumeReading() }

    func close(_ mode: PipeCloseMode) {
        inner.close(mode)
        if mode == .now { handler = nil }
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        entries.append(.received(bytes))
        handler?.pipe(self, received: bytes)
    }

    func pipeBecameWritable(_ pipe: any Pipe) { handler?.pipeBecameWritable(self) }
    func pipeEnded(_ pipe: any Pipe) { handler?.pipeEnded(self) }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        handler?.pipeClosed(self, error: error)
        handler = nil
    }

    func pipeDrained(_ pipe: any Pipe) {
        handler?.pipeDrained(self)
        handler = nil
    }
}
