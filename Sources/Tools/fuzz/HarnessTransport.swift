import NighCore

/// A transport that dials nobody. It remembers the dials, and events answer them.
final class HarnessTransport: Transport, @unchecked Sendable {
    // Confined to the loop's thread.
    let scheme = "stage"
    let capabilities = TransportCapabilities(
        datagrams: true, typicalMTU: 1_400, typicalLatency: .zero, expectedConnectTime: .zero, priority: 1)
    var events: (any TransportEvents)?
    private var dials: [DialID] = []

    func start(on loop: any EventLoop, events: any TransportEvents) { self.events = events }
    func advertise(_ advertisement: Advertisement) {}
    func updateAdvertisement(_ advertisement: Advertisement) {}
    func stopAdvertising() {}
    func browse(_ service: ServiceName) {}
    func stopBrowsing() {}
    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) { dials.append(dial) }
    func cancelDial(_ dial: DialID) { dials.removeAll { $0 == dial } }
    func diagnose() -> [Diagnosis] { [] }

    func shutdown() {
        events = nil
        dials = []
    }

    var hasDial: Bool { !dials.isEmpty }

    func takeDial() -> DialID? { dials.isEmpty ? nil : dials.removeFirst() }
}

/// One end of a pipe whose other end is played by events. Confined to the thread that runs the loop; hence
/// `@unchecked Sendable`.
final class HarnessPipe: Pipe, @unchecked Sendable {
    let localAddress: TransportAddress? = nil
    let remoteAddress: TransportAddress? = nil
    private(set) var counters = PipeCounters()
    /// The bytes that the session has written and nobody has taken.
    private(set) var written = ByteQueue()
    private(set) var isClosed = false
    private let loop: any EventLoop
    private var handler: (any PipeHandler)?
    /// The handler that has closed the pipe, and is notified next that nothing waits.
    private var drainHandler: (any PipeHandler)?
    private var isPaused = false
    private var isBlocked = false
    private var heldSlices: [ByteSlice] = []
    private(set) var port: HarnessPort?

    /// The room that the pipe always reports, unless it is blocked.
    private static let room = 1 << 18

    init(on loop: any EventLoop) { self.loop = loop }

    var writableBytes: Int { isBlocked ? 0 : Self.room }

    func start(handler: any PipeHandler) { self.handler = handler }

    func write(_ queue: inout ByteQueue) {
        counters.bytesWritten += queue.byteCount
        written.append(contentsOf: &queue)
    }

    func openDatagrams() -> (any DatagramPort)? {
        port = isClosed ? nil : HarnessPort()
        return port
    }

    func pauseReading() { isPaused = true }
    func resumeReading() { isPaused = false }

    func close(_ mode: PipeCloseMode) {
        guard !isClosed else { return }
        isClosed = true
        if mode == .afterWriting { drainHandler = handler }
        handler = nil
        port?.close()
        loop.execute { [self] in
            drainHandler?.pipeDrained(self)
            drainHandler = nil
        }
    }

    func takeWritten() -> [UInt8] {
        defer { written.removeAll() }
        return written.bytes
    }

    func deliver(_ bytes: ByteSlice) {
        guard !isPaused else {
            // Keeps up to 64 slices until reading resumes, and drops the others.
            if heldSlices.count < 64 { heldSlices.append(bytes) }
            return
        }
        counters.bytesReceived += bytes.count
        handler?.pipe(self, received: bytes)
    }

    /// Delivers a slice that came while reading was paused. Returns whether there was one.
    func deliverHeld() -> Bool {
        guard !isPaused, !heldSlices.isEmpty else { return false }
        deliver(heldSlices.removeFirst())
        return true
    }

    func cut() {
        let handler = handler
        self.handler = nil
        isClosed = true
        port?.close()
        handler?.pipeClosed(self, error: nil)
    }

    func end() { handler?.pipeEnded(self) }

    func block(_ isBlocked: Bool) {
        guard self.isBlocked != isBlocked else { return }
        self.isBlocked = isBlocked
        if !isBlocked { handler?.pipeBecameWritable(self) }
    }
}

/// The port for packets beside a harness's pipe: those of the session stay here, and events bring those of its peer.
/// Confined to the thread that runs the loop.
final class HarnessPort: DatagramPort {
    /// Where the packets of the peer come from, if nothing goes wrong.
    static let peer = DatagramSource(1)

    let place: [UInt8] = []
    let longestPacket = 1_400
    private var handler: (any DatagramHandler)?
    private var sent: [[UInt8]] = []

    func start(handler: any DatagramHandler, prefix: UInt64?) { self.handler = handler }

    func source(of place: [UInt8]) -> DatagramSource? { place.isEmpty ? Self.peer : nil }

    func send(_ packet: UnsafeRawBufferPointer, to source: DatagramSource) -> DatagramOutcome {
        if packet.count > longestPacket { return .tooLong }
        // What goes to another source, or is more than anybody takes, is lost.
        if source == Self.peer, sent.count < 256 { sent.append(Array(packet)) }
        return .sent
    }

    func takeSent() -> [[UInt8]] {
        defer { sent = [] }
        return sent
    }

    func deliver(_ packet: [UInt8], from source: DatagramSource) {
        guard !packet.isEmpty, packet.count <= longestPacket else { return }
        var packet = packet
        packet.withUnsafeMutableBytes { handler?.datagramPort(self, received: $0, from: source) }
    }

    func close() { handler = nil }
}
