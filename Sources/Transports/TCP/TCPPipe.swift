import CUV
import Glibc
import NighCore
import NighUV

/// A pipe over one TCP connection.
///
/// What is written goes to the socket at once as far as it takes it; the rest waits here and follows as there is room. Reading
/// is libuv's, into the loop's one buffer.
///
/// A pipe closed with `.afterWriting` sends what waits, says that it has ended, and stays until the other side has ended too,
/// for a bounded time: a socket that is closed with bytes unread tells the other side to throw away what it has not
/// read yet.
///
/// Confined to its loop; hence `@unchecked Sendable`.
final class TCPPipe: TCPSocket, @unchecked Sendable {
    private enum Phase {
        case open
        /// Closed here: what waits is sent, then the end, then the other side's end is awaited.
        case lingering
        case over
    }

    /// As much may wait before the pipe counts as backed up.
    static let highWaterMark = 512 * 1024
    /// For how long a closed pipe goes on sending and waits for the other side's end.
    static let lingerTime = Moment.Span.seconds(10)
    /// The most handed to libuv to be sent when the socket has room again: it says nothing before all of it has gone.
    private static let requestLimit = 128 * 1024
    /// libuv takes memory of its own for a request of more pieces.
    private static let requestPieces = 4
    /// How many pieces one system call sends at most.
    private static let callPieces = 64
    /// How often a broken pipe is read for what is still there.
    private static let lastReads = 64

    private let loop: UVEventLoop
    private let buffer: ReadBuffer
    private(set) var localAddress: TransportAddress?
    private(set) var remoteAddress: TransportAddress?

    /// Told once, when the pipe is over and its owner may forget it.
    var didFinish: ((TCPPipe) -> Void)?
    /// Told when it was closed, all that was written has been sent, and it stays for a while.
    var beganToLinger: ((TCPPipe) -> Void)?

    @exclusivity(unchecked) private var handler: (any PipeHandler)?
    @exclusivity(unchecked) private var phase = Phase.open
    @exclusivity(unchecked) private var waiting = ByteQueue()
    @exclusivity(unchecked) private var bytesReceived = 0
    @exclusivity(unchecked) private var bytesWritten = 0
    @exclusivity(unchecked) private var isReading = false
    @exclusivity(unchecked) private var hasEnded = false
    @exclusivity(unchecked) private var owesRoom = false
    @exclusivity(unchecked) private var requestedCount = 0
    private var writeRequest: UnsafeMutablePointer<uv_write_t>?
    private var saysEnd = false
    private var lingerTimer: LoopTimer?

    /// A pipe over a socket that is connected or will be, which is closed where that fails.
    override init(_ descriptor: Int32, on loop: UVEventLoop) throws(UVError) {
        self.loop = loop
        buffer = loop.readBuffer
        try super.init(descriptor, on: loop)
    }

    deinit { writeRequest?.deallocate() }

    /// The connection stands: small messages are not held back, and the addresses are known.
    func becomeOpen() {
        uv_tcp_nodelay(tcp, 1)
        localAddress = ownAddress?.transportAddress
        remoteAddress = otherAddress?.transportAddress
    }

    // MARK: Reading

    private func beginReading() {
        guard !isReading, !hasEnded, phase != .over else { return }
        isReading = true
        let status = uv_read_start(
            stream,
            { handle, _, buffer in
                guard let data = handle?.pointee.data else { return }
                UVHandle.with(data, as: TCPPipe.self) { pipe in
                    let room = pipe.buffer.room()
                    buffer?.pointee.base = room.baseAddress?.assumingMemoryBound(to: CChar.self)
                    buffer?.pointee.len = room.count
                }
            },
            { handle, count, _ in
                guard count != 0, let data = handle?.pointee.data else { return }
                UVHandle.with(data, as: TCPPipe.self) { $0.read(count) }
            })
        if status != 0 { failLater(UVError(code: status)) }
    }

    private func read(_ count: Int) {
        guard count > 0 else { return readEnded(UVError(code: Int32(truncatingIfNeeded: count))) }
        let bytes = buffer.take(count)
        guard phase == .open, let handler else { return }
        bytesReceived &+= count
        handler.pipe(self, received: bytes)
    }

    private func readEnded(_ error: UVError) {
        guard error.code == UV_EOF.rawValue else { return fail(error) }
        hasEnded = true
        isReading = false
        uv_read_stop(stream)
        if phase == .open { handler?.pipeEnded(self) } else { finishIfDone() }
    }

    // MARK: Writing

    /// Sends from the front of `queue` what the socket takes now. False when the pipe has broken.
    private func send(from queue: inout ByteQueue) -> Bool {
        while !queue.isEmpty {
            var offered = 0
            let sent = withUnsafeTemporaryAllocation(of: uv_buf_t.self, capacity: Self.callPieces) { pieces in
                let count = min(queue.sliceCount, Self.callPieces)
                for index in 0..<count { offered &+= Self.fill(pieces, index, with: queue.bytes(at: index)) }
                return Int(uv_try_write(stream, pieces.baseAddress, UInt32(count)))
            }
            guard sent >= 0 else {
                let error = UVError(code: Int32(sent))
                if error.code == UV_EAGAIN.rawValue { return true }
                failLater(error)
                return false
            }
            queue.drop(sent)
            if sent < offered { return true }
        }
        return true
    }

    @inline(__always)
    private static func fill(
        _ pieces: UnsafeMutableBufferPointer<uv_buf_t>, _ index: Int, with bytes: UnsafeRawBufferPointer
    ) -> Int {
        // The queue keeps them until what is sent of them has been dropped.
        let base = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
        pieces.initializeElement(
            at: index, to: uv_buf_t(base: base?.assumingMemoryBound(to: CChar.self), len: bytes.count))
        return bytes.count
    }

    /// Has libuv send the first of what waits once the socket has room.
    private func requestWrite() {
        guard requestedCount == 0, !waiting.isEmpty, phase != .over else { return }
        let request = writeRequest ?? .allocate(capacity: 1)
        writeRequest = request
        let status = withUnsafeTemporaryAllocation(of: uv_buf_t.self, capacity: Self.requestPieces) {
            pieces in
            var count = 0
            while count < min(Self.requestPieces, waiting.sliceCount), requestedCount < Self.requestLimit {
                let fitting = waiting.bytes(at: count).prefix(Self.requestLimit &- requestedCount)
                requestedCount &+= Self.fill(pieces, count, with: UnsafeRawBufferPointer(rebasing: fitting))
                count += 1
            }
            return uv_write(request, stream, pieces.baseAddress, UInt32(count)) { request, status in
                guard let data = request?.pointee.handle.pointee.data else { return }
                UVHandle.object(of: data, as: TCPPipe.self).wrote(status)
            }
        }
        guard status != 0 else { return }
        requestedCount = 0
        failLater(UVError(code: status))
    }

    private func wrote(_ status: Int32) {
        let count = requestedCount
        requestedCount = 0
        guard phase != .over else { return }
        guard status == 0 else { return failToWrite(UVError(code: status)) }
        waiting.drop(count)
        guard send(from: &waiting) else { return }
        requestWrite()
        if phase == .lingering, waiting.isEmpty { return drained() }
        guard phase == .open, owesRoom, waiting.byteCount <= Self.highWaterMark / 2 else { return }
        owesRoom = false
        handler?.pipeBecameWritable(self)
    }

    // MARK: The end

    /// All that was written has been handed to the system. Not to be called from inside a call of the handler's own.
    private func drained() {
        guard phase == .lingering, !saysEnd else { return }
        let told = handler
        handler = nil
        told?.pipeDrained(self)
        if phase == .lingering { sayEnd() }
        finishIfDone()
        if phase == .lingering { beganToLinger?(self) }
    }

    private func sayEnd() {
        saysEnd = true
        let request = UnsafeMutablePointer<uv_shutdown_t>.allocate(capacity: 1)
        let status = uv_shutdown(request, stream) { request, _ in
            guard let request else { return }
            let data = request.pointee.handle.pointee.data
            request.deallocate()
            guard let data else { return }
            UVHandle.object(of: data, as: TCPPipe.self).finishIfDone()
        }
        guard status != 0 else { return }
        request.deallocate()
        finish()
    }

    private func finishIfDone() {
        guard phase == .lingering, saysEnd, hasEnded else { return }
        finish()
    }

    /// Found out in a call of the handler's own, so it is told in a later turn.
    private func failLater(_ error: UVError) { loop.execute { self.failToWrite(error) } }

    /// What the other side had said before is still read, then the pipe is over.
    private func failToWrite(_ error: UVError) {
        readWhatIsThere()
        fail(error)
    }

    private func readWhatIsThere() {
        for _ in 0..<Self.lastReads {
            guard phase == .open, isReading, let handler else { return }
            let room = buffer.room()
            let count = recv(descriptor, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { return }
            bytesReceived &+= count
            handler.pipe(self, received: buffer.take(count))
        }
    }

    private func fail(_ error: UVError) { breakOff(error.networkCause) }

    /// Ends it and tells why. Who has closed it is told that nothing waits any more, if that is news. Not to be called from inside a
    /// call of the handler's own.
    func breakOff(_ cause: NighError.Cause) {
        guard phase != .over else { return }
        let (handler, isClosedHere) = (self.handler, phase == .lingering)
        finish()
        if isClosedHere {
            handler?.pipeDrained(self)
        } else {
            handler?.pipeClosed(
                self, error: NighError(.conversing, cause, transport: TCPTransport.schemeName))
        }
    }

    /// Everything is over; nobody is told but the owner.
    func finish() {
        guard phase != .over else { return }
        if phase == .lingering { discardUnread() }
        phase = .over
        handler = nil
        waiting.removeAll()
        if let lingerTimer { loop.cancel(lingerTimer) }
        lingerTimer = nil
        let finished = didFinish
        close()
        finished?(self)
    }

    /// A loop that ends closes what is left on it.
    override func close() {
        phase = .over
        handler = nil
        didFinish = nil
        beganToLinger = nil
        super.close()
    }

    /// A socket closed with bytes unread resets the connection, and the other side may lose the last that was sent to it.
    private func discardUnread() {
        withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 16) { space in
            for _ in 0..<Self.lastReads {
                let count = recv(descriptor, space.baseAddress, space.count, Int32(MSG_DONTWAIT))
                guard count > 0 else { return }
            }
        }
    }
}

// What these do stands with the protocol.
extension TCPPipe: Pipe {
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
        beginReading()
    }

    func write(_ queue: inout ByteQueue) {
        guard phase == .open else { return queue.removeAll() }
        bytesWritten &+= queue.byteCount
        if waiting.isEmpty, !send(from: &queue) { return queue.removeAll() }
        guard !queue.isEmpty else { return }
        waiting.append(contentsOf: &queue)
        if waiting.byteCount >= Self.highWaterMark { owesRoom = true }
        requestWrite()
    }

    func pauseReading() {
        guard phase == .open, isReading else { return }
        isReading = false
        uv_read_stop(stream)
    }

    func resumeReading() {
        guard phase == .open, handler != nil else { return }
        beginReading()
    }

    func close(_ manner: PipeCloseManner) {
        guard phase == .open else { return }
        guard manner == .afterWriting else { return finish() }
        phase = .lingering
        lingerTimer = loop.schedule(at: loop.now + Self.lingerTime) { self.breakOff(.timedOut) }
        beginReading()
        if waiting.isEmpty { loop.execute { self.drained() } }
    }
}
