import Glibc
import NighCore
import NighMemory
import NighTestKit

/// A defect of the memory transport, with the name of the check that must notice it.
enum Defect: String, CaseIterable, Sendable {
    case callsBackAfterClose = "quiet-after-close"
    case losesLastByte = "close-after-writing"
    case spoilsAByte = "both-ways"
    case cutsHugeWrites = "huge-write"
    case failsInsideTheCall = "dial-elsewhere"
    case tellsOffTheLoop = "listen-and-dial"
    case ignoresPause = "pause-and-resume"
    case neverSaysWritable = "pressure-dialled-writes"
    case neverSaysFull = "pressure-accepted-writes"
    case keepsAWriterWaiting = "close-while-writer-waits"
    case ignoresCancel = "dial-cancelled"
    case timesOutEarly = "dial-timeout"
    case failsWithoutScheme = "dial-refused"
    case countsWrongly = "counters"
    case closesTwice = "close-twice"
    case neverDrains = "drained"
    case drainsEarly = "drained-held-up"
    case endsAfterClosed = "order-of-events"
    case mixesPipes = "many-pipes"
    case tellsAfterShutdown = "shutdown"
    case forgetsLost = "found-changed-lost"
    case findsTwice = "browse-later"
    case keepsTellingRoutes = "browse-again"
    case ignoresSecondAdvertise = "advertise-replaced"
    case updateIsAnotherListener = "update-in-place"
    case stoppingClosesPipes = "stop-advertising"
    case keepsPipes = "open-and-close"
    case hasNothingToSay = "diagnose"
    case spoilsPackets = "packets-arrive"
    case deliversAfterClose = "packets-after-close"
    case mixesPackets = "packets-of-their-pipe"
}

/// A change to what is written, at one place of each pipe, mostly to whole frames.
enum Mangling: String, CaseIterable, Sendable {
    case losesAWrite, repeatsAWrite, swapsTwoWrites, spoilsABit
}

final class BrokenTransport: Transport, @unchecked Sendable {
    /// The defect, or nil for a correct transport.
    let defect: Defect?
    let mangling: Mangling?
    private let inner: any Transport
    private var loop: (any EventLoop)!
    private var events: (any TransportEvents)?
    private var pipes: [BrokenPipe] = []
    private var hasAdvertised = false
    var lastHandler: (any PipeHandler)?
    var firstPort: BrokenPort?

    static let otherLoop = ThreadEventLoop()

    init(_ defect: Defect?, mangling: Mangling? = nil, around inner: any Transport) {
        self.inner = inner
        self.defect = defect
        self.mangling = mangling
    }

    var scheme: String { inner.scheme }
    var capabilities: TransportCapabilities { inner.capabilities }

    func start(on loop: any EventLoop, events: any TransportEvents) {
        self.loop = loop
        self.events = events
        inner.start(on: loop, events: self)
    }
    func advertise(_ advertisement: Advertisement) {
        if defect == .ignoresSecondAdvertise, hasAdvertised { return }
        hasAdvertised = true
        inner.advertise(advertisement)
    }
    func updateAdvertisement(_ advertisement: Advertisement) {
        inner.updateAdvertisement(advertisement)
        guard defect == .updateIsAnotherListener, hasAdvertised else { return }
        inner.stopAdvertising()
        inner.advertise(advertisement)
    }
    func stopAdvertising() {
        inner.stopAdvertising()
        if defect == .stoppingClosesPipes { for pipe in pipes { pipe.close(.now) } }
    }
    func browse(_ service: ServiceName) { inner.browse(service) }
    func stopBrowsing() { if defect != .keepsTellingRoutes { inner.stopBrowsing() } }
    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        if defect == .failsInsideTheCall, address.scheme != scheme {
            let error = NighError(.connecting, .invalid("address"), transport: scheme)
            events?.dialFailed(dial, error: error, by: self)
            return
        }
        inner.dial(address, as: dial, timeout: defect == .timesOutEarly ? timeout / 2 : timeout)
    }
    func cancelDial(_ dial: DialID) { if defect != .ignoresCancel { inner.cancelDial(dial) } }
    func diagnose() -> [Diagnosis] { defect == .hasNothingToSay ? [] : inner.diagnose() }
    func shutdown() {
        inner.shutdown()
        guard defect == .tellsAfterShutdown else { return }
        loop.execute { self.events?.listeningChanged([], by: self) }
    }
}

extension BrokenTransport: TransportEventHandler {
    func handle(_ event: TransportEvent, by transport: any Transport) {
        guard let events else { return }
        switch event {
        case .pipeOpened(let pipe, let dial):
            let broken = BrokenPipe(pipe, owner: self, loop: loop)
            if defect == .keepsPipes || defect == .stoppingClosesPipes { pipes.append(broken) }
            guard defect == .tellsOffTheLoop else { return events.pipeOpened(broken, dial: dial, by: self) }
            Self.otherLoop.execute { self.events?.pipeOpened(broken, dial: dial, by: self) }
        case .dialFailed(let dial, var error) where defect == .failsWithoutScheme:
            error.transport = nil
            events.dialFailed(dial, error: error, by: self)
        case .routeLost where defect == .forgetsLost: break
        case .routeFound where defect == .findsTwice:
            for _ in 1...2 { event.report(to: events, by: self) }
        default: event.report(to: events, by: self)
        }
    }
}

final class BrokenPipe: ForwardingPipe, PipeHandler, @unchecked Sendable {
    let inner: any Pipe
    private let owner: BrokenTransport
    private let loop: any EventLoop
    private var defect: Defect? { owner.defect }
    private var handler: (any PipeHandler)?
    private var isClosed = false
    private var writeCount = 0
    private var heldBack: [UInt8] = []

    init(_ inner: any Pipe, owner: BrokenTransport, loop: any EventLoop) {
        self.inner = inner
        self.owner = owner
        self.loop = loop
    }

    var writableBytes: Int { defect == .neverSaysFull ? 1_000 : inner.writableBytes }
    var counters: PipeCounters {
        var counters = inner.counters
        if defect == .countsWrongly { counters.bytesReceived += 1 }
        return counters
    }

    func start(handler: any PipeHandler) {
        self.handler = handler
        inner.start(handler: self)
    }
    func write(_ queue: inout ByteQueue) {
        if defect == .losesLastByte, queue.byteCount > 1 {
            var kept = ByteQueue()
            while queue.byteCount > 1, let slice = queue.popFirst(atMost: queue.byteCount - 1) {
                kept.append(slice)
            }
            queue = kept
        }
        if defect == .cutsHugeWrites, queue.byteCount > 1 << 24 { queue.removeAll() }
        if defect == .spoilsAByte, queue.byteCount > 2_000 {
            var bytes = queue.bytes
            bytes[1_999] ^= 1
            queue.removeAll()
            queue.append(ByteSlice(bytes))
        }
        if let mangling = owner.mangling { mangle(&queue, mangling) }
        inner.write(&queue)
    }
    private func mangle(_ queue: inout ByteQueue, _ mangling: Mangling) {
        // Nobody might miss what small writes say.
        guard queue.byteCount >= 90 else { return }
        writeCount += 1
        let bytes = queue.bytes
        switch (mangling, writeCount) {
        case (.losesAWrite, 2): queue.removeAll()
        case (.repeatsAWrite, 2): queue.append(ByteSlice(bytes))
        case (.swapsTwoWrites, 2):
            heldBack = bytes
            queue.removeAll()
        case (.swapsTwoWrites, 3): queue.append(ByteSlice(heldBack))
        case (.spoilsABit, 2):
            queue.removeAll()
            queue.append(ByteSlice(bytes.dropLast() + [bytes[bytes.count - 1] ^ 1]))
        default: break
        }
    }
    func openDatagrams() -> (any DatagramPort)? {
        inner.openDatagrams().map { BrokenPort($0, owner: owner) }
    }
    func pauseReading() { if defect != .ignoresPause { inner.pauseReading() } }
    func close(_ mode: PipeCloseMode) {
        if defect == .closesTwice, mode == .afterWriting {
            inner.close(.now)
        } else {
            inner.close(mode)
        }
        switch defect {
        case .callsBackAfterClose: loop.execute { self.handler?.pipeClosed(self, error: nil) }
        case .drainsEarly: if mode == .afterWriting { loop.execute { self.pipeDrained(self.inner) } }
        default: if mode == .now, !isClosed { handler = nil }
        }
        isClosed = true
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        if defect == .mixesPipes {
            owner.lastHandler = owner.lastHandler ?? handler
            owner.lastHandler?.pipe(self, received: bytes)
        } else {
            handler?.pipe(self, received: bytes)
        }
    }
    func pipeBecameWritable(_ pipe: any Pipe) {
        if defect != .neverSaysWritable { handler?.pipeBecameWritable(self) }
    }
    func pipeEnded(_ pipe: any Pipe) { if defect != .endsAfterClosed { handler?.pipeEnded(self) } }
    func pipeDrained(_ pipe: any Pipe) {
        if defect == .neverDrains { return }
        let handlerToNotify = handler
        handler = nil
        handlerToNotify?.pipeDrained(self)
    }
    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        if defect == .keepsAWriterWaiting { return }
        let handlerToNotify = handler
        handler = nil
        handlerToNotify?.pipeClosed(self, error: error)
        if defect == .endsAfterClosed { handlerToNotify?.pipeEnded(self) }
    }
}

final class BrokenPort: DatagramPort, DatagramHandler, @unchecked Sendable {
    private let inner: any DatagramPort
    private let owner: BrokenTransport
    private var handler: (any DatagramHandler)?

    init(_ inner: any DatagramPort, owner: BrokenTransport) {
        self.inner = inner
        self.owner = owner
    }

    var place: [UInt8] { inner.place }
    var longestPacket: Int { inner.longestPacket }

    func start(handler: any DatagramHandler, prefix: UInt64?) {
        self.handler = handler
        inner.start(handler: self, prefix: prefix)
    }
    func source(of place: [UInt8]) -> DatagramSource? { inner.source(of: place) }
    func send(_ packet: UnsafeRawBufferPointer, to source: DatagramSource) -> DatagramOutcome {
        inner.send(packet, to: source)
    }
    func close() { if owner.defect != .deliversAfterClose { inner.close() } }

    func datagramPort(
        _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer, from source: DatagramSource
    ) {
        if owner.defect == .spoilsPackets { packet[packet.count - 1] ^= 1 }
        if owner.defect == .mixesPackets {
            owner.firstPort = owner.firstPort ?? self
            owner.firstPort?.deliver(packet, from: source)
        } else {
            deliver(packet, from: source)
        }
    }
    private func deliver(_ packet: UnsafeMutableRawBufferPointer, from source: DatagramSource) {
        handler?.datagramPort(self, received: packet, from: source)
    }
}
