import NighCore

/// A pipe that forwards to another one, and reports that one's events as its own. A test double implements only the
/// members that it changes.
package protocol ForwardingPipe: Pipe {
    /// The pipe to which calls are forwarded.
    var inner: any Pipe { get }

    /// Reports received bytes to the handler.
    func deliver(_ bytes: ByteSlice, to handler: any PipeHandler)

    /// Reports to the handler that the inner pipe has closed.
    func reportClosed(_ error: NighError?, to handler: any PipeHandler)
}

extension ForwardingPipe {
    package var localAddress: TransportAddress? { inner.localAddress }
    package var remoteAddress: TransportAddress? { inner.remoteAddress }
    package var writableBytes: Int { inner.writableBytes }
    package var counters: PipeCounters { inner.counters }
    package func start(handler: any PipeHandler) {
        inner.start(handler: PipeEventForwarder(from: self, to: handler))
    }
    package func write(_ queue: inout ByteQueue) { inner.write(&queue) }
    package func pauseReading() { inner.pauseReading() }
    package func resumeReading() { inner.resumeReading() }
    package func close(_ mode: PipeCloseMode) { inner.close(mode) }

    package func deliver(_ bytes: ByteSlice, to handler: any PipeHandler) {
        handler.pipe(self, received: bytes)
    }
    package func reportClosed(_ error: NighError?, to handler: any PipeHandler) {
        handler.pipeClosed(self, error: error)
    }
}

/// Passes the inner pipe's events on as those of the outer one. Only the inner pipe holds this object, so the handler
/// lives as long as that pipe may report events.
package final class PipeEventForwarder: PipeHandler {
    private let outer: any ForwardingPipe
    private let handler: any PipeHandler

    package init(from outer: any ForwardingPipe, to handler: any PipeHandler) {
        self.outer = outer
        self.handler = handler
    }

    package func pipe(_ inner: any Pipe, received bytes: ByteSlice) { outer.deliver(bytes, to: handler) }
    package func pipeBecameWritable(_ inner: any Pipe) { handler.pipeBecameWritable(outer) }
    package func pipeEnded(_ inner: any Pipe) { handler.pipeEnded(outer) }
    package func pipeClosed(_ inner: any Pipe, error: NighError?) { outer.reportClosed(error, to: handler) }
    package func pipeDrained(_ inner: any Pipe) { handler.pipeDrained(outer) }
}
