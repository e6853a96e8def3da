import CBluetooth
import Glibc
import NighCore
import NighUV

/// A pipe over one RFCOMM connection.
///
/// What is written goes to the socket in pieces that the kernel takes without holding anybody up; the rest waits here and
/// follows as the radio makes room. RFCOMM has no half-close, and its end comes as an error, once: so what the other side had said
/// is read before the end is told, and a pipe closed with `.afterWriting` stays until the kernel has sent everything, for a
/// bounded time.
///
/// Confined to its loop; hence `@unchecked Sendable`.
final class RFCOMMPipe: @unchecked Sendable {
    private enum Phase {
        case open
        /// The connection has ended, and why will show.
        case ending
        /// Closed here: what waits is sent, and gone, before the socket is closed.
        case lingering
        case over
    }

    /// As much may wait as a good radio sends in a second. At once the kernel is handed little: it makes frames of it all before it sends
    /// the first, and from about 23,000 bytes on has no memory for that.
    private static let measures = SocketStream.Measures(
        highWaterMark: 256 * 1024, pieceSize: 8 * 1024, share: 16)
    /// For how long a closed pipe goes on sending.
    static let lingerTime = Moment.Span.seconds(10)
    /// How often a lingering pipe looks whether all has been sent: the kernel does not tell.
    private static let lingerLook = Moment.Span.milliseconds(20)
    /// How often one wake reads before others have their turn.
    private static let share = 16
    /// An adapter that is switched off ends its connections first, and is off a third of a millisecond later.
    private static let adapterTime = Moment.Span.milliseconds(10)
    /// How often a broken pipe is read for what is still there.
    private static let lastReads = 256

    private let loop: UVEventLoop
    private let socket: BluetoothSocket
    private let adapter: BlueZObjects.Adapter
    /// The device at the other end.
    let device: BluetoothAddress
    let localAddress: TransportAddress?
    let remoteAddress: TransportAddress?
    /// What the kernel had for sending when nothing was sent yet.
    private let fullRoom: Int

    /// Told once, when the pipe is over and its owner may forget it.
    var didFinish: ((RFCOMMPipe) -> Void)?

    @exclusivity(unchecked) private var stream: SocketStream
    private var handler: (any PipeHandler)?
    private var phase = Phase.open
    private var lingerUntil = Moment.never
    private var timer: LoopTimer?

    /// Takes over a socket that is connected, by that adapter. Fails where the loop cannot wait for it.
    init(
        _ socket: BluetoothSocket, by adapter: BlueZObjects.Adapter, on loop: UVEventLoop
    ) throws(BluetoothFault) {
        guard let otherEnd = socket.otherEnd else { throw .socket(ENOTCONN) }
        self.loop = loop
        self.socket = socket
        self.adapter = adapter
        device = otherEnd.device
        remoteAddress = BluetoothDestination(otherEnd.device, channel: nil).transportAddress
        localAddress = BluetoothDestination(adapter.address, channel: nil).transportAddress
        fullRoom = socket.sendRoom
        stream = SocketStream(socket.descriptor, Self.measures, on: loop)
        do throws(NighError) {
            try stream.begin(on: loop) { [weak self] in self?.happened($0) }
        } catch {
            throw .socket(EMFILE)
        }
    }

    // MARK: What the socket tells

    private func happened(_ events: DescriptorEvents) {
        // An error comes as no event, or as all that were asked for: reading and writing tell which it is.
        if events.isEmpty || events.contains(.readable) { read() }
        if phase != .over, events.isEmpty || events.contains(.writable) { writeOn() }
        if events.isEmpty, phase != .over { stream.resume() }
    }

    // MARK: Reading

    private func read() {
        for _ in 0..<Self.share {
            guard stream.isReading, phase == .open, let handler else { return }
            switch stream.receive() {
            case .bytes(let bytes, let isAll):
                handler.pipe(self, received: bytes)
                // Whatever comes after that is told again.
                if isAll { return }
            case .end: return readEnded(0)
            case .failed(let number): return readEnded(number)
            }
        }
    }

    private func readEnded(_ number: Int32) {
        guard number != EAGAIN && number != EINTR else { return lookForEnd() }
        fail(number)
    }

    /// The error of a closed connection is told once only; whoever missed it finds the socket unconnected.
    private func lookForEnd() {
        guard socket.otherEnd == nil, errno == ENOTCONN else { return }
        // More may have come between the two looks.
        readWhatIsThere()
        fail(ECONNRESET)
    }

    // MARK: Writing

    private func writeOn() {
        let number = stream.writeOn()
        guard number == 0 else { return failLater(number) }
        if phase == .open, stream.takeRelief() { handler?.pipeBecameWritable(self) }
    }

    // MARK: The end

    /// Found out in a call of the handler's own, so it is told in a later turn.
    private func failLater(_ number: Int32) {
        loop.execute { [weak self] in
            self?.readWhatIsThere()
            self?.fail(number)
        }
    }

    private func readWhatIsThere() {
        for _ in 0..<Self.lastReads {
            guard phase == .open, stream.isReading, let handler else { return }
            guard case .bytes(let bytes, _) = stream.receive() else { return }
            handler.pipe(self, received: bytes)
        }
    }

    /// A close by the other side, its program's end and its crash all look alike: as a reset, unless it was this machine's adapter.
    private func fail(_ number: Int32) {
        let isEnd = [0, ECONNRESET, ENOTCONN, EPIPE].contains(number)
        guard isEnd, phase == .open else { return breakOff(.socket(number)) }
        phase = .ending
        stream.end()
        timer = loop.schedule(at: loop.now + Self.adapterTime) { [weak self] in
            guard let self else { return }
            timer = nil
            let isUp = adapter.index.map(RadioSwitch.isUp) ?? true
            breakOff(isUp ? nil : .switchedOff(adapter.name))
        }
    }

    /// Ends it now where its connection is over and that has not been told yet. Not to be called from inside a call of the handler's
    /// own.
    func endIfOver() {
        guard phase == .ending || (phase == .open && socket.otherEnd == nil) else { return }
        readWhatIsThere()
        breakOff(nil)
    }

    /// Ends it and tells why, or who has closed it that nothing waits any more. Not to be called from inside a call of the handler's
    /// own.
    func breakOff(_ fault: BluetoothFault?) {
        guard phase != .over else { return }
        let (handler, isClosedHere) = (self.handler, phase == .lingering)
        finish()
        if isClosedHere {
            handler?.pipeDrained(self)
        } else {
            handler?.pipeClosed(self, error: fault?.error(.conversing))
        }
    }

    /// Everything is over; nobody is told but the owner.
    func finish() {
        guard phase != .over else { return }
        phase = .over
        handler = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        stream.end()
        socket.close()
        let finished = didFinish
        didFinish = nil
        finished?(self)
    }

    private func linger() {
        timer = nil
        guard phase == .lingering else { return }
        let isSent = stream.waiting.isEmpty && socket.sendRoom >= fullRoom
        guard !isSent, loop.now < lingerUntil, socket.otherEnd != nil else { return breakOff(nil) }
        timer = loop.schedule(at: loop.now + Self.lingerLook) { [weak self] in self?.linger() }
    }
}

// What these do stands with the protocol.
extension RFCOMMPipe: Pipe {
    var writableBytes: Int { stream.writableBytes }

    var counters: PipeCounters { stream.counters }

    func start(handler: any PipeHandler) {
        loop.checkIsolated()
        precondition(self.handler == nil, "a pipe was started twice")
        guard phase == .open else { return }
        self.handler = handler
        stream.isReading = true
    }

    func write(_ queue: inout ByteQueue) {
        guard phase == .open else { return queue.removeAll() }
        let number = stream.write(&queue)
        if number != 0 { failLater(number) }
    }

    func pauseReading() {
        guard phase == .open else { return }
        stream.isReading = false
    }

    func resumeReading() {
        guard phase == .open, handler != nil else { return }
        stream.isReading = true
    }

    func close(_ manner: PipeCloseManner) {
        guard phase == .open || phase == .ending else { return }
        guard manner == .afterWriting else { return finish() }
        if let timer { loop.cancel(timer) }
        phase = .lingering
        stream.isReading = false
        lingerUntil = loop.now + Self.lingerTime
        loop.execute { [weak self] in self?.linger() }
    }
}
