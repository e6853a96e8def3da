import Glibc
import NighCore

/// A pipe over a connected stream socket of any kind, for transports that get their descriptors from elsewhere.
///
/// The pipe owns the socket from `init` on. Written bytes go to the socket at once, as far as the socket takes it. The
/// rest waits here and follows when there is room. The other end may finish writing and go on reading (`pipeEnded`). If
/// it has closed, that is reported as `pipeClosed`, without an error if nothing was lost.
///
/// A pipe closed with `.afterWriting` sends the waiting bytes, ends its own direction, calls `pipeDrained`, and stays
/// until the other side has ended too, for a bounded time. Bytes that arrive meanwhile are dropped. It stays because
/// closing a socket with unread bytes resets the other side, which may then not read the last bytes that were sent to
/// it.
///
/// A pipe lives until it is over, whether or not anybody holds it. Its transport holds it as well, to `finish()` it on
/// `shutdown`, and releases it when `didFinish` is called.
///
/// Used on its loop only.
public final class SocketPipe {
    private enum Phase {
        case open
        /// The pipe has broken. The handler is notified in a later turn.
        case failing
        /// Closed on this side. The pipe sends the waiting bytes, then ends its direction, then waits for the other
        /// side's end.
        case lingering
        case over
    }

    /// How many bytes may wait before the pipe counts as backed up.
    public static let highWaterMark = 512 * 1024
    /// How long a closed pipe goes on sending and waits for the other side's end, unless it was made with another time.
    public static let lingerTime = Duration.seconds(10)

    private static let sizes = SocketStream.Sizes(
        highWaterMark: highWaterMark, pieceSize: 2 * 1024 * 1024, piecesPerWakeUp: 2)
    /// How many times one wake-up reads before others have their turn.
    private static let readsPerWakeUp = 8
    /// How many times a broken pipe is read for bytes that are still there.
    private static let lastReads = 64

    private let loop: UVEventLoop
    private let descriptor: Int32
    private let scheme: String
    private let lingerTime: Moment.Span
    /// The address of this end, as passed to `init`.
    public let localAddress: TransportAddress?
    /// The address of the other end, as passed to `init`.
    public let remoteAddress: TransportAddress?

    /// Called once, when the pipe is over and its owner may release it. This may be inside a call that ends the pipe.
    /// Not called if the loop ends first.
    public var didFinish: ((SocketPipe) -> Void)?
    /// Called when the pipe was closed, has sent all that was written, and stays for a while to wait for the other
    /// side's end. A transport that accepts connections from strangers limits how many pipes may wait like this, and
    /// calls `finish()` on the rest; these lose nothing.
    public var beganToLinger: ((SocketPipe) -> Void)?

    /// Opens the datagram port of the pipe, if its transport has datagrams. Set before the pipe is reported.
    public var makeDatagramPort: (() -> (any DatagramPort)?)?
    private var datagramPort: (any DatagramPort)?

    // Used for each message, on the loop only, and no access lasts across a call to other code. So there is no run-time
    // check for exclusive access.
    @exclusivity(unchecked) private var stream: SocketStream
    @exclusivity(unchecked) private var handler: (any PipeHandler)?
    @exclusivity(unchecked) private var phase = Phase.open
    private var hasEnded = false
    private var saysEnd = false
    private var lingerTimer: LoopTimer?

    /// Takes over a connected stream socket. Call it on the loop. The descriptor becomes non-blocking, is closed at
    /// exec, and does not linger in the kernel.
    ///
    /// Fails, with an error of the system as the cause, if the descriptor is not a stream socket, or if the loop cannot
    /// wait for it, for example because it is already watched. Then the caller still owns it and has to close it.
    ///
    /// - Parameters:
    ///   - scheme: the transport's scheme, for errors.
    ///   - lingerTime: how long a closed pipe goes on sending and waits for the other side's end.
    public init(
        descriptor: Int32, scheme: String, localAddress: TransportAddress? = nil,
        remoteAddress: TransportAddress? = nil, lingerTime: Duration = SocketPipe.lingerTime,
        on loop: UVEventLoop
    ) throws(NighError) {
        loop.checkIsolated()
        if let fault = Self.faultOfPreparing(descriptor) {
            throw fault.error(.connecting, transport: scheme)
        }
        self.loop = loop
        self.descriptor = descriptor
        self.scheme = scheme
        self.localAddress = localAddress
        self.remoteAddress = remoteAddress
        self.lingerTime = Moment.Span(lingerTime)
        stream = SocketStream(descriptor, Self.sizes, on: loop)
        do throws(NighError) {
            // The closure keeps this pipe alive until the pipe or the loop is over.
            try stream.begin(on: loop) { self.handle($0) }
        } catch {
            phase = .over
            throw NighError(.connecting, error.cause, transport: scheme, advice: error.advice)
        }
    }

    deinit { if phase != .over { Glibc.close(descriptor) } }

    private static func faultOfPreparing(_ descriptor: Int32) -> SocketFault? {
        var kind: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 else {
            return SocketFault(errno)
        }
        guard kind == Int32(SOCK_STREAM.rawValue) else { return SocketFault(EPROTOTYPE) }
        // Otherwise closing the socket would wait for the other side and block the loop.
        var none = linger(l_onoff: 0, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &none, socklen_t(MemoryLayout<linger>.size))
        guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { return SocketFault(errno) }
        return nil
    }

    // MARK: Socket events

    private func handle(_ events: DescriptorEvents) {
        // An error comes as no event, or as all the events that were asked for. Reading and writing find out which it
        // is.
        let mayBeError = events.isEmpty || events.contains(.hungUp)
        var bytesCame = false
        if events.isEmpty || events.contains(.readable) { bytesCame = read() }
        if events.isEmpty || events.contains(.writable) { writeWaiting() }
        guard mayBeError, phase == .open || phase == .lingering else { return }
        // The error is behind the bytes that came.
        if bytesCame { stream.resume() } else { checkForEnd() }
    }

    private func checkForEnd() {
        if let fault = SocketFault.taken(from: descriptor) { return fail(fault) }
        if hasEnded, isHungUp { return otherEndClosed() }
        // It was something else, and would be reported forever.
        stream.watchesHangUp = false
        stream.resume()
    }

    /// Whether both directions are over.
    private var isHungUp: Bool {
        var state = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&state, 1, 0) > 0 && Int32(state.revents) & POLLHUP != 0
    }

    // MARK: Reading

    /// Reads the bytes that have arrived, up to a fair share. Returns whether there were any bytes.
    private func read() -> Bool {
        var bytesCame = false
        for _ in 0..<Self.readsPerWakeUp {
            guard stream.isReading else { return bytesCame }
            guard phase == .open, let handler else {
                guard phase == .lingering else { return bytesCame }
                if let number = stream.discard() { return readEnded(number, after: bytesCame) }
                bytesCame = true
                continue
            }
            switch stream.receive() {
            case .bytes(let bytes, let isAll):
                handler.pipe(self, received: bytes)
                // If more comes after that, it is reported again.
                if isAll { return true }
                bytesCame = true
            case .end: return readEnded(0, after: bytesCame)
            case .failed(let number): return readEnded(number, after: bytesCame)
            }
        }
        return bytesCame
    }

    private func readEnded(_ number: Int32, after bytesCame: Bool) -> Bool {
        switch number {
        case EAGAIN, EINTR: break
        case 0: end()
        default: fail(SocketFault(number))
        }
        return bytesCame
    }

    private func end() {
        hasEnded = true
        stream.isReading = false
        if phase == .lingering { return finishIfDone() }
        if isHungUp { return otherEndClosed() }
        stream.watchesHangUp = true
        handler?.pipeEnded(self)
    }

    // MARK: Writing

    private func writeWaiting() {
        guard phase == .open || phase == .lingering, !stream.waiting.isEmpty else { return }
        let number = stream.writeWaiting()
        guard number == 0 else {
            return phase == .lingering ? fail(SocketFault(number)) : failLater(number)
        }
        if phase == .lingering, stream.waiting.isEmpty { return drained() }
        if phase == .open, stream.takeWritableNotice() { handler?.pipeBecameWritable(self) }
    }

    // MARK: The end

    /// Handles that the other end has closed both directions: in good order, unless bytes for it still wait here.
    private func otherEndClosed() {
        if stream.waiting.isEmpty { reportClosed(nil) } else { fail(SocketFault(EPIPE)) }
    }

    private func fail(_ fault: SocketFault) {
        reportClosed(fault.error(.conversing, transport: scheme))
    }

    /// Ends the pipe in a later turn, since the failure may have been found inside a call of the handler. Bytes that
    /// the other side sent before are delivered first.
    private func failLater(_ number: Int32) {
        phase = .failing
        loop.later { [self] in
            for _ in 0..<Self.lastReads {
                guard phase == .failing, stream.isReading, let handler else { break }
                guard case .bytes(let bytes, _) = stream.receive() else { break }
                handler.pipe(self, received: bytes)
            }
            fail(SocketFault(number))
        }
    }

    /// Ends the pipe and calls `pipeClosed`. If this side has closed the pipe, calls `pipeDrained` instead, unless it
    /// was called before.
    private func reportClosed(_ error: NighError?) {
        guard phase != .over else { return }
        let (handler, isClosedHere) = (self.handler, phase == .lingering)
        finish()
        if isClosedHere { handler?.pipeDrained(self) } else { handler?.pipeClosed(self, error: error) }
    }

    /// Breaks the pipe for a reason of its transport's own, such as an unplugged adapter. The handler gets `error` in a
    /// later turn, and no more calls. A pipe that is already closed on this side is over in that turn. Call it on the
    /// loop, at any time.
    public func fail(with error: NighError) {
        loop.checkIsolated()
        switch phase {
        case .open, .lingering:
            if phase == .open { phase = .failing }
            loop.later { self.reportClosed(error) }
        case .failing, .over: break
        }
    }

    /// Ends everything at once and drops waiting bytes. Only the owner is notified, by `didFinish`. Call it on the
    /// loop, at any time; more than one call does no harm.
    public func finish() {
        loop.checkIsolated()
        guard phase != .over else { return }
        if phase == .lingering { discardUnread() }
        phase = .over
        handler = nil
        datagramPort?.close()
        datagramPort = nil
        makeDatagramPort = nil
        if let lingerTimer { loop.cancel(lingerTimer) }
        lingerTimer = nil
        stream.end()
        Glibc.close(descriptor)
        let finished = didFinish
        didFinish = nil
        beganToLinger = nil
        finished?(self)
    }

    private func discardUnread() {
        for _ in 0..<Self.lastReads where stream.discard() != nil { return }
    }

    /// Continues after all that was written has been handed to the system. Not to be called from inside a call of the
    /// handler.
    private func drained() {
        guard phase == .lingering else { return }
        saysEnd = true
        Glibc.shutdown(descriptor, Int32(SHUT_WR))
        let receiver = handler
        handler = nil
        receiver?.pipeDrained(self)
        finishIfDone()
        if phase == .lingering { beganToLinger?(self) }
    }

    private func finishIfDone() { if phase == .lingering, saysEnd, hasEnded { finish() } }
}

// The protocol documents these members.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension SocketPipe: Pipe {
    public var writableBytes: Int { stream.writableBytes }

    public var counters: PipeCounters { stream.counters }

    public func start(handler: any PipeHandler) {
        loop.checkIsolated()
        precondition(self.handler == nil, "a pipe was started twice")
        guard phase == .open || phase == .failing else { return }
        self.handler = handler
        stream.isReading = true
    }

    public func write(_ queue: inout ByteQueue) {
        guard phase == .open else { return queue.removeAll() }
        let number = stream.write(&queue)
        if number != 0 { failLater(number) }
    }

    public func openDatagrams() -> (any DatagramPort)? {
        guard phase == .open, datagramPort == nil else { return nil }
        datagramPort = makeDatagramPort?()
        return datagramPort
    }

    public func pauseReading() {
        guard phase == .open || phase == .failing else { return }
        stream.isReading = false
    }

    public func resumeReading() {
        guard phase == .open, handler != nil, !hasEnded else { return }
        stream.isReading = true
    }

    public func close(_ mode: PipeCloseMode) {
        guard phase == .open || phase == .failing else { return }
        guard mode == .afterWriting else { return finish() }
        let isBroken = phase == .failing
        phase = .lingering
        // A broken pipe is over in the turn in which its failure would have been reported.
        guard !isBroken else { return }
        lingerTimer = loop.schedule(at: loop.now + lingerTime) { self.reportClosed(nil) }
        stream.watchesHangUp = false
        stream.isReading = !hasEnded
        if stream.waiting.isEmpty { loop.later { self.drained() } }
    }
}
