import CBluetooth
import Glibc
import NighCore
import NighUV

/// A pipe over one RFCOMM connection.
///
/// Written bytes go to the socket in pieces that the kernel takes without blocking. The rest waits here and follows as
/// the radio makes room. RFCOMM has no half-close, and reports the end of a connection as an error, once. So the pipe
/// reads all bytes of the other side before it reports the end. A pipe that is closed with `.afterWriting` stays until
/// the kernel has sent everything, or nothing for a while.
///
/// Loop only.
final class RFCOMMPipe {
    private enum Phase {
        case open
        /// A write has failed. That is handled in a later turn.
        case failing
        /// The connection has ended, and the reason is still being determined.
        case ending
        /// Closed by this side. The socket is closed once everything that waits has been sent.
        case lingering
        case over
    }

    /// The limit for waiting bytes is the amount that a good radio sends in one second. The pieces for the kernel are
    /// small, because it turns a whole piece into frames before it sends the first one, and from about 23,000 bytes on
    /// it has no memory for that.
    private static let sizes = SocketStream.Sizes(
        highWaterMark: 256 * 1024, pieceSize: 8 * 1024, piecesPerWakeUp: 16)
    /// How long a closed pipe stays without sending anything.
    static let lingerTime = Moment.Span.seconds(10)
    /// How often a lingering pipe checks whether everything has been sent; the kernel does not report it.
    private static let lingerCheckInterval = Moment.Span.milliseconds(20)
    /// The most reads per wake-up before the loop's other work gets its turn.
    private static let readsPerWakeUp = 16
    /// How long to wait for the adapter's state: an adapter that is switched off first ends its connections, and is off
    /// a third of a millisecond later.
    private static let adapterCheckDelay = Moment.Span.milliseconds(10)
    /// The most reads of a broken pipe for bytes that are still there.
    private static let maximumLastReads = 256

    private let loop: UVEventLoop
    private let socket: BluetoothSocket
    private let adapter: BlueZObjects.Adapter
    /// The device at the other end.
    let device: BluetoothAddress
    let localAddress: TransportAddress?
    let remoteAddress: TransportAddress?
    /// The memory that the kernel had for sending before anything was sent.
    private let initialSendRoom: Int

    /// Called once, when the pipe is over and its owner may release it.
    var didFinish: ((RFCOMMPipe) -> Void)?

    // As in `SocketPipe`, there is no run-time check for exclusive access.
    @exclusivity(unchecked) private var stream: SocketStream
    private var handler: (any PipeHandler)?
    private var phase = Phase.open
    private var lingerUntil = Moment.never
    /// The room in the kernel at the last check, and the bytes that waited here.
    private var lastCheck = (sendRoom: 0, waiting: 0)
    private var timer: LoopTimer?

    /// Takes over a connected socket of that adapter. Throws if the socket is not connected or the loop cannot watch
    /// it.
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
        initialSendRoom = socket.sendRoom
        stream = SocketStream(socket.descriptor, Self.sizes, on: loop)
        do throws(NighError) {
            try stream.begin(on: loop) { [weak self] in self?.handle($0) }
        } catch {
            throw .socket(EMFILE)
        }
    }

    /// Whether the handler gets bytes that arrive.
    private var isAlive: Bool { phase == .open || phase == .failing }

    // MARK: Socket events

    private func handle(_ events: DescriptorEvents) {
        // An error arrives as no event, or as all requested events. Reading and writing show which error it is.
        if events.isEmpty || events.contains(.readable) { read() }
        if phase != .over, events.isEmpty || events.contains(.writable) { writeWaiting() }
        if events.isEmpty, phase != .over { stream.resume() }
    }

    // MARK: Reading

    private func read() {
        for _ in 0..<Self.readsPerWakeUp {
            guard stream.isReading, phase == .open, let handler else { return }
            switch stream.receive() {
            case .bytes(let bytes, let isAll):
                handler.pipe(self, received: bytes)
                // The loop reports bytes that arrive after this again.
                if isAll { return }
            case .end: return readEnded(0)
            case .failed(let number): return readEnded(number)
            }
        }
    }

    private func readEnded(_ number: Int32) {
        guard number != EAGAIN && number != EINTR else { return checkForEnd() }
        fail(errno: number)
    }

    /// Ends the pipe if the socket is no longer connected. The kernel reports the error of a closed connection only
    /// once, so it may have been missed.
    private func checkForEnd() {
        guard socket.otherEnd == nil, errno == ENOTCONN else { return }
        // More bytes may have arrived between the two checks.
        readRemaining()
        fail(errno: ECONNRESET)
    }

    // MARK: Writing

    private func writeWaiting() {
        guard phase != .failing else { return }
        let number = stream.writeWaiting()
        guard number == 0 else { return failLater(number) }
        if phase == .open, stream.takeWritableNotice() { handler?.pipeBecameWritable(self) }
    }

    // MARK: The end

    /// Ends the pipe in a later turn, because the error was found inside a call by the handler.
    private func failLater(_ number: Int32) {
        if phase == .open { phase = .failing }
        loop.later { [weak self] in
            self?.readRemaining()
            self?.fail(errno: number)
        }
    }

    private func readRemaining() {
        for _ in 0..<Self.maximumLastReads {
            guard isAlive, stream.isReading, let handler else { return }
            guard case .bytes(let bytes, _) = stream.receive() else { return }
            handler.pipe(self, received: bytes)
        }
    }

    /// Ends the pipe after an error. A close by the other side, the end of its program and its crash all look alike:
    /// like a reset, unless this machine's adapter was the cause.
    private func fail(errno number: Int32) {
        let isEnd = [0, ECONNRESET, ENOTCONN, EPIPE].contains(number)
        guard isEnd, isAlive else { return fail(with: .socket(number)) }
        phase = .ending
        stream.end()
        timer = loop.schedule(at: loop.now + Self.adapterCheckDelay) { [weak self] in
            guard let self else { return }
            timer = nil
            let isUp = adapter.index.map(RadioSwitch.isUp) ?? true
            fail(with: isUp ? nil : .switchedOff(adapter.name))
        }
    }

    /// Ends the pipe now if its connection is over and that has not been reported yet. Must not be called from inside a
    /// call by the handler.
    func endIfOver() {
        guard phase == .ending || (isAlive && socket.otherEnd == nil) else { return }
        readRemaining()
        fail(with: nil)
    }

    /// Ends the pipe and reports why. If this side has closed it, reports instead that nothing waits any more. Must not
    /// be called from inside a call by the handler.
    func fail(with fault: BluetoothFault?) {
        guard phase != .over else { return }
        let (handler, isClosedHere) = (self.handler, phase == .lingering)
        finish()
        if isClosedHere {
            handler?.pipeDrained(self)
        } else {
            handler?.pipeClosed(self, error: fault?.error(.conversing))
        }
    }

    /// Ends the pipe and notifies nobody but its owner.
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
        let check = (sendRoom: socket.sendRoom, waiting: stream.waiting.byteCount)
        if check.sendRoom > lastCheck.sendRoom || check.waiting < lastCheck.waiting {
            lingerUntil = loop.now + Self.lingerTime
        }
        lastCheck = check
        let isSent = check.waiting == 0 && check.sendRoom >= initialSendRoom
        guard !isSent, loop.now < lingerUntil, socket.otherEnd != nil else { return fail(with: nil) }
        timer = loop.schedule(at: loop.now + Self.lingerCheckInterval) { [weak self] in self?.linger() }
    }
}

// Documented by the protocol.
extension RFCOMMPipe: Pipe {
    var writableBytes: Int { stream.writableBytes }

    var counters: PipeCounters { stream.counters }

    func start(handler: any PipeHandler) {
        loop.checkIsolated()
        precondition(self.handler == nil, "a pipe was started twice")
        guard isAlive else { return }
        self.handler = handler
        stream.isReading = true
    }

    func write(_ queue: inout ByteQueue) {
        guard phase == .open else { return queue.removeAll() }
        let number = stream.write(&queue)
        if number != 0 { failLater(number) }
    }

    func pauseReading() {
        guard isAlive else { return }
        stream.isReading = false
    }

    func resumeReading() {
        guard phase == .open, handler != nil else { return }
        stream.isReading = true
    }

    func close(_ mode: PipeCloseMode) {
        guard isAlive || phase == .ending else { return }
        guard mode == .afterWriting else { return finish() }
        if let timer { loop.cancel(timer) }
        phase = .lingering
        stream.isReading = false
        lingerUntil = loop.now + Self.lingerTime
        lastCheck = (socket.sendRoom, stream.waiting.byteCount)
        loop.later { [weak self] in self?.linger() }
    }
}
