/// A pipe around a pipe of the transport that a ``CheckedTransport`` wraps: passes everything on, and holds it to the contract.
///
/// `@unchecked Sendable`: a pipe that breaks its contract may call on any thread, so the loop, a constant, is looked at before
/// anything else is; the rest is confined to it.
final class CheckedPipe: @unchecked Sendable {
    /// Its number among its transport's pipes.
    let number: Int
    let localAddress: TransportAddress?
    let remoteAddress: TransportAddress?

    /// The pipe that is held to the contract.
    let inner: any Pipe
    private let owner: CheckedTransport
    private let loop: any EventLoop
    private var handler: (any PipeHandler)?
    private var ledger = PipeLedger()
    /// Whether the handler is being told something: what is counted then may be before or after it.
    private var tellDepth = 0

    init(_ inner: any Pipe, number: Int, of owner: CheckedTransport, on loop: any EventLoop) {
        self.inner = inner
        self.number = number
        self.owner = owner
        self.loop = loop
        localAddress = inner.localAddress
        remoteAddress = inner.remoteAddress
    }

    /// What the wrapped pipe is known by.
    var key: ObjectIdentifier { ObjectIdentifier(inner) }

    /// Its transport is cut off, and no good word of it is waited for.
    func cutOff() { inner.close(.now) }

    /// Reports to the handler, if there is one, that the pipe is over: as closed, or as drained if the handler has closed it.
    func tellCutOff(_ error: NighError) {
        let told = handler
        handler = nil
        if ledger.isOpen { told?.pipeClosed(self, error: error) } else { told?.pipeDrained(self) }
    }

    /// Nobody is told anything any more.
    func abandon() { handler = nil }

    @inline(__always)
    private func checking(_ check: (inout PipeLedger) throws(ContractBreach) -> Void) {
        do throws(ContractBreach) { try check(&ledger) } catch { owner.broke(error, on: loop) }
    }

    /// Checks what is told, and tells it if it is in order. What ends the pipe is told once it is forgotten here.
    @inline(__always)
    private func hear(
        _ word: String, by pipe: any Pipe, isLast: Bool = false,
        _ check: (inout PipeLedger) throws(ContractBreach) -> Void,
        tell: (any PipeHandler) -> Void
    ) {
        do throws(ContractBreach) {
            guard try owner.mayTell(word, on: loop) else { return }
            guard pipe === inner else {
                throw ContractBreach(.toldInItsOwnName, "\(word) was told in the name of another pipe")
            }
            try check(&ledger)
            guard let handler else { return }
            if isLast {
                self.handler = nil
                owner.forget(self)
            }
            tellDepth &+= 1
            defer { tellDepth &-= 1 }
            tell(handler)
        } catch {
            owner.broke(error, on: loop)
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
        if tellDepth == 0 { checking { ledger throws(ContractBreach) in try ledger.check(counters) } }
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
            if tellDepth == 0 { try ledger.checkReceived(counters) }
        }
        queue.removeAll()
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

    func close(_ manner: PipeCloseManner) {
        if manner == .now, ledger.isOpen { handler = nil }
        ledger.closed(manner)
        guard owner.isPassing else { return }
        if handler == nil { owner.forget(self) }
        owner.calling { inner.close(manner) }
    }
}

extension CheckedPipe: PipeHandler {
    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        hear("received", by: pipe) { ledger throws(ContractBreach) in
            try ledger.received(bytes.count, counted: owner.calling { inner.counters.bytesReceived })
        } tell: {
            $0.pipe(self, received: bytes)
        }
    }

    func pipeBecameWritable(_ pipe: any Pipe) {
        hear("pipeBecameWritable", by: pipe) { ledger throws(ContractBreach) in
            try ledger.becameWritable(owner.calling { inner.writableBytes })
        } tell: {
            $0.pipeBecameWritable(self)
        }
    }

    func pipeEnded(_ pipe: any Pipe) {
        hear("pipeEnded", by: pipe) { ledger throws(ContractBreach) in
            try ledger.ended()
        } tell: {
            $0.pipeEnded(self)
        }
    }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        hear("pipeClosed", by: pipe, isLast: true) { ledger throws(ContractBreach) in
            try ledger.wasClosed()
            if let error { try owner.ledger.check(error, "pipeClosed") }
        } tell: {
            $0.pipeClosed(self, error: error)
        }
    }

    func pipeDrained(_ pipe: any Pipe) {
        hear("pipeDrained", by: pipe, isLast: true) { ledger throws(ContractBreach) in
            try ledger.drained(waiting: owner.calling { inner.counters.bytesWaiting })
        } tell: {
            $0.pipeDrained(self)
        }
    }
}
