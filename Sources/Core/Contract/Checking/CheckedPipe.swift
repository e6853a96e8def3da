/// Wraps a pipe of the transport that a ``CheckedTransport`` wraps. It passes everything on, and checks it against the
/// contract.
///
/// A pipe that breaks its contract may call on any thread. So each report first checks that it
/// is on the loop, for which it needs only constants. The rest of the state is confined to the loop.
final class CheckedPipe {
    /// The pipe's number among its transport's pipes, in the order in which they opened.
    let number: Int
    let localAddress: TransportAddress?
    let remoteAddress: TransportAddress?

    /// The wrapped pipe.
    let inner: any Pipe
    private let owner: CheckedTransport
    private let loop: any EventLoop
    private var handler: (any PipeHandler)?
    private var ledger = PipeLedger()
    /// How many calls to the handler are in progress. During one, the wrapped pipe may or may not have counted the
    /// bytes that it is delivering.
    private var handlerCallDepth = 0

    init(_ inner: any Pipe, number: Int, of owner: CheckedTransport, on loop: any EventLoop) {
        self.inner = inner
        self.number = number
        self.owner = owner
        self.loop = loop
        localAddress = inner.localAddress
        remoteAddress = inner.remoteAddress
    }

    /// Identifies the wrapped pipe.
    var key: ObjectIdentifier { ObjectIdentifier(inner) }

    /// Closes the wrapped pipe because its transport was cut off. Whatever the pipe reports about that is ignored.
    func cutOff() { inner.close(.now) }

    /// Reports to the handler, if there is one, that the pipe is over: as closed, or as drained if the handler has
    /// closed it.
    func reportCutOff(_ error: NighError) {
        let receiver = handler
        handler = nil
        if ledger.isOpen { receiver?.pipeClosed(self, error: error) } else { receiver?.pipeDrained(self) }
    }

    /// Drops the handler, which gets no more calls.
    func abandon() { handler = nil }

    @inline(__always)
    private func checking(_ check: (inout PipeLedger) throws(ContractBreach) -> Void) {
        do throws(ContractBreach) { try check(&ledger) } catch { owner.handleBreach(error, on: loop) }
    }

    /// Checks a report of the wrapped pipe, and passes it on if it keeps the contract. A report that ends the pipe
    /// (`isLast`) is passed on after this pipe was removed from its transport.
    @inline(__always)
    private func relay(
        _ event: String, by pipe: any Pipe, isLast: Bool = false,
        _ check: (inout PipeLedger) throws(ContractBreach) -> Void,
        report: (any PipeHandler) -> Void
    ) {
        do throws(ContractBreach) {
            guard try owner.checkMayReport(event, on: loop) else { return }
            guard pipe === inner else {
                throw ContractBreach(.toldInItsOwnName, "\(event) was reported in the name of another pipe")
            }
            try check(&ledger)
            guard let handler else { return }
            if isLast {
                self.handler = nil
                owner.forget(self)
            }
            handlerCallDepth &+= 1
            defer { handlerCallDepth &-= 1 }
            report(handler)
        } catch {
            owner.handleBreach(error, on: loop)
        }
    }
}

extension CheckedPipe: Pipe {
    var writableBytes: Int {
        guard owner.isPassing else { return 0 }
        return owner.calling { inner.writableBytes }
    }

    var counters: PipeCounters {
        guard owner.isPassing else { return PipeCounters() }
        let counters = owner.calling { inner.counters }
        if handlerCallDepth == 0 { checking { ledger throws(ContractBreach) in try ledger.check(counters) } }
        return counters
    }

    func start(handler: any PipeHandler) {
        guard owner.isPassing, ledger.isOpen else { return }
        precondition(self.handler == nil, "a pipe was started twice")
        self.handler = handler
        owner.calling { inner.start(handler: self) }
    }

    func write(_ queue: inout ByteQueue) {
        guard owner.isPassing else { return queue.removeAll() }
        let count = queue.byteCount
        let counters = owner.calling {
            inner.write(&queue)
            return inner.counters
        }
        let left = queue.byteCount
        checking { ledger throws(ContractBreach) in
            try ledger.wrote(count, left: left, counters)
            if handlerCallDepth == 0 { try ledger.checkReceived(counters) }
        }
        queue.removeAll()
    }

    func openDatagrams() -> (any DatagramPort)? {
        guard owner.isPassing, ledger.isOpen else { return nil }
        guard let port = owner.calling({ inner.openDatagrams() }) else { return nil }
        return CheckedDatagramPort(port, of: owner, on: loop)
    }

    func pauseReading() {
        guard owner.isPassing else { return }
        owner.calling { inner.pauseReading() }
        ledger.paused()
        _ = counters
    }

    func resumeReading() {
        guard owner.isPassing else { return }
        ledger.resumed()
        owner.calling { inner.resumeReading() }
    }

    func close(_ mode: PipeCloseMode) {
        if mode == .now, ledger.isOpen { handler = nil }
        ledger.closed(mode)
        guard owner.isPassing else { return }
        if handler == nil { owner.forget(self) }
        owner.calling { inner.close(mode) }
    }
}

extension CheckedPipe: PipeHandler {
    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        relay("received", by: pipe) { ledger throws(ContractBreach) in
            try ledger.received(bytes.count, counted: owner.calling { inner.counters.bytesReceived })
        } report: {
            $0.pipe(self, received: bytes)
        }
    }

    func pipeBecameWritable(_ pipe: any Pipe) {
        relay("pipeBecameWritable", by: pipe) { ledger throws(ContractBreach) in
            try ledger.becameWritable(owner.calling { inner.writableBytes })
        } report: {
            $0.pipeBecameWritable(self)
        }
    }

    func pipeEnded(_ pipe: any Pipe) {
        relay("pipeEnded", by: pipe) { ledger throws(ContractBreach) in
            try ledger.ended()
        } report: {
            $0.pipeEnded(self)
        }
    }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        relay("pipeClosed", by: pipe, isLast: true) { ledger throws(ContractBreach) in
            try ledger.wasClosed()
            if let error { try owner.ledger.check(error, "pipeClosed") }
        } report: {
            $0.pipeClosed(self, error: error)
        }
    }

    func pipeDrained(_ pipe: any Pipe) {
        relay("pipeDrained", by: pipe, isLast: true) { ledger throws(ContractBreach) in
            try ledger.drained(waiting: owner.calling { inner.counters.bytesWaiting })
        } report: {
            $0.pipeDrained(self)
        }
    }
}
