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

    /// As much may wait before the pipe counts as backed up: a second of a good radio.
    static let highWaterMark = 256 * 1024
    /// For how long a closed pipe goes on sending.
    static let lingerTime = Moment.Span.seconds(10)
    /// How often a lingering pipe looks whether all has been sent: the kernel does not tell.
    private static let lingerLook = Moment.Span.milliseconds(20)
    /// The most that is handed to the kernel at once. It makes frames of it all before it sends the first, and from about 23,000
    /// bytes on has no memory for that.
    private static let pieceSize = 8 * 1024
    /// How many slices one call sends at most.
    private static let callPieces = 16
    /// How often one wake reads, or writes, before others have their turn.
    private static let share = 16
    /// An adapter that is switched off ends its connections first, and is off a third of a millisecond later.
    private static let adapterTime = Moment.Span.milliseconds(10)
    /// How often a broken pipe is read for what is still there.
    private static let lastReads = 256

    private let loop: UVEventLoop
    private let buffer: ReadBuffer
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

    private var watch: DescriptorWatch?
    private var handler: (any PipeHandler)?
    private var phase = Phase.open
    private var waiting = ByteQueue()
    private var bytesReceived = 0
    private var bytesWritten = 0
    private var isReading = false
    private var owesRoom = false
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
        buffer = loop.readBuffer
        device = otherEnd.device
        remoteAddress = BluetoothDestination(otherEnd.device, channel: nil).transportAddress
        localAddress = BluetoothDestination(adapter.address, channel: nil).transportAddress
        fullRoom = socket.sendRoom
        do throws(NighError) {
            watch = try loop.watch(socket.descriptor, for: []) { [weak self] in self?.happened($0) }
        } catch {
            throw .socket(EMFILE)
        }
    }

    // MARK: What the socket tells

    private func happened(_ events: DescriptorEvents) {
        // An error comes as no event, or as all that were asked for: reading and writing tell which it is.
        if events.isEmpty || events.contains(.readable) { read() }
        if phase != .over, events.isEmpty || events.contains(.writable) { writeOn() }
        if events.isEmpty, phase != .over { watch?.resume() }
    }

    private func watchWhatIsWanted() {
        var wanted: DescriptorEvents = []
        if isReading { wanted.insert(.readable) }
        if !waiting.isEmpty { wanted.insert(.writable) }
        watch?.events = wanted
    }

    // MARK: Reading

    private func read() {
        for _ in 0..<Self.share {
            guard isReading, phase == .open, handler != nil else { return }
            let (count, isAll) = receive()
            guard count > 0 else { return readEnded(count < 0 ? errno : 0) }
            // Whatever comes after that is told again.
            if isAll { return }
        }
    }

    /// Reads once and hands over what there is: what `recv` said, and whether there was room for more.
    private func receive() -> (count: Int, isAll: Bool) {
        let room = buffer.room()
        let count = recv(socket.descriptor, room.baseAddress, room.count, 0)
        guard count > 0 else { return (count, true) }
        bytesReceived &+= count
        handler?.pipe(self, received: buffer.take(count))
        return (count, count < room.count)
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

    /// Sends from the front of `queue` what the socket takes now. False when the pipe has broken.
    private func send(from queue: inout ByteQueue) -> Bool {
        for _ in 0..<Self.share {
            guard !queue.isEmpty else { return true }
            var offered = 0
            let sent = withUnsafeTemporaryAllocation(of: iovec.self, capacity: Self.callPieces) { pieces in
                var count = 0
                while count < min(queue.sliceCount, Self.callPieces), offered < Self.pieceSize {
                    // The queue keeps the slice until what is sent of it has been dropped.
                    queue[count].withUnsafeBytes {
                        let size = min($0.count, Self.pieceSize &- offered)
                        let base = UnsafeMutableRawPointer(mutating: $0.baseAddress)
                        pieces.initializeElement(at: count, to: iovec(iov_base: base, iov_len: size))
                        offered &+= size
                    }
                    count += 1
                }
                var message = msghdr()
                message.msg_iov = pieces.baseAddress
                message.msg_iovlen = count
                return sendmsg(socket.descriptor, &message, Int32(MSG_NOSIGNAL))
            }
            guard sent >= 0 else {
                let number = errno
                if number == EAGAIN || number == EINTR || number == ENOBUFS || number == ENOMEM {
                    return true
                }
                failLater(number)
                return false
            }
            queue.drop(sent)
            if sent < offered { return true }
        }
        return true
    }

    private func writeOn() {
        guard send(from: &waiting) else { return }
        watchWhatIsWanted()
        guard owesRoom, waiting.byteCount <= Self.highWaterMark / 2, phase == .open else { return }
        owesRoom = false
        handler?.pipeBecameWritable(self)
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
            guard phase == .open, isReading, handler != nil, receive().count > 0 else { return }
        }
    }

    /// A close by the other side, its program's end and its crash all look alike: as a reset, unless it was this machine's adapter.
    private func fail(_ number: Int32) {
        let isEnd = [0, ECONNRESET, ENOTCONN, EPIPE].contains(number)
        guard isEnd, phase == .open else { return breakOff(.socket(number)) }
        phase = .ending
        watch?.cancel()
        watch = nil
        waiting.removeAll()
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

    /// Ends it and tells why. Not to be called from inside a call of the handler's own.
    func breakOff(_ fault: BluetoothFault?) {
        guard phase != .over else { return }
        let handler = phase == .lingering ? nil : handler
        finish()
        handler?.pipeClosed(self, error: fault?.error(.conversing))
    }

    /// Everything is over; nobody is told but the owner.
    func finish() {
        guard phase != .over else { return }
        phase = .over
        handler = nil
        waiting.removeAll()
        if let timer { loop.cancel(timer) }
        timer = nil
        watch?.cancel()
        watch = nil
        socket.close()
        let finished = didFinish
        didFinish = nil
        finished?(self)
    }

    private func linger() {
        timer = nil
        guard phase == .lingering else { return }
        let isSent = waiting.isEmpty && socket.sendRoom >= fullRoom
        guard !isSent, loop.now < lingerUntil else { return finish() }
        if socket.otherEnd == nil { return finish() }
        timer = loop.schedule(at: loop.now + Self.lingerLook) { [weak self] in self?.linger() }
    }
}

// What these do stands with the protocol.
extension RFCOMMPipe: Pipe {
    var writableBytes: Int { Self.highWaterMark &- waiting.byteCount }

    var counters: PipeCounters {
        var counters = PipeCounters()
        counters.bytesReceived = bytesReceived
        counters.bytesWritten = bytesWritten
        counters.bytesWaiting = waiting.byteCount
        return counters
    }

    func start(handler: any PipeHandler) {
        loop.checkIsolated()
        precondition(self.handler == nil, "a pipe was started twice")
        guard phase == .open else { return }
        self.handler = handler
        isReading = true
        watchWhatIsWanted()
    }

    func write(_ queue: inout ByteQueue) {
        guard phase == .open else { return queue.removeAll() }
        bytesWritten &+= queue.byteCount
        if waiting.isEmpty, !send(from: &queue) { return queue.removeAll() }
        guard !queue.isEmpty else { return }
        waiting.append(contentsOf: &queue)
        if waiting.byteCount >= Self.highWaterMark { owesRoom = true }
        watchWhatIsWanted()
    }

    func pauseReading() {
        guard phase == .open, isReading else { return }
        isReading = false
        watchWhatIsWanted()
    }

    func resumeReading() {
        guard phase == .open, handler != nil, !isReading else { return }
        isReading = true
        watchWhatIsWanted()
    }

    func close(_ manner: PipeCloseManner) {
        if phase == .ending { return finish() }
        guard phase == .open else { return }
        handler = nil
        guard manner == .afterWriting else { return finish() }
        phase = .lingering
        isReading = false
        lingerUntil = loop.now + Self.lingerTime
        watchWhatIsWanted()
        linger()
    }
}
