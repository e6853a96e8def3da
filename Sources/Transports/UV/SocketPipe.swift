import Glibc
import NighCore

/// A pipe over a connected stream socket of any kind: what a transport needs that gets descriptors from somewhere.
///
/// It is the socket's owner from `init` on. What is written goes to the socket at once as far as that takes it; the rest waits
/// here and follows as there is room. The other end may finish writing and read on (`pipeEnded`); where it has closed, that is
/// told as `pipeClosed`: without an error where nothing got lost.
///
/// A pipe closed with `.afterWriting` sends what waits, tells `pipeDrained`, says that it has ended, and stays until the other side has
/// ended too, for a bounded time; what comes meanwhile is dropped. For a socket that is closed with bytes unread resets the other side,
/// which may then not read the last that was sent to it.
///
/// A pipe lives until it is over, whoever holds it. Its transport holds it as well, so as to `finish()` it on `shutdown`, and lets go
/// of it when `didFinish` tells.
///
/// To be used on its loop only; hence `@unchecked Sendable`.
public final class SocketPipe: @unchecked Sendable {
    private enum Phase {
        case open
        /// It has broken, which the handler is told in a later turn.
        case failing
        /// Closed here: what waits is sent, then the end, then the other side's end is awaited.
        case lingering
        case over
    }

    /// As much may wait before the pipe counts as backed up.
    public static let highWaterMark = 512 * 1024
    /// For how long a closed pipe goes on sending and waits for the other side's end, unless it was made with another time.
    public static let lingerTime = Duration.seconds(10)

    private static let measures = SocketStream.Measures(
        highWaterMark: highWaterMark, pieceSize: 2 * 1024 * 1024, share: 2)
    /// How often one wake reads before others have their turn.
    private static let share = 8
    /// How often a broken pipe is read for what is still there.
    private static let lastReads = 64

    private let loop: UVEventLoop
    private let descriptor: Int32
    private let scheme: String
    private let lingerTime: Moment.Span
    /// This end, as its maker named it.
    public let localAddress: TransportAddress?
    /// The other end, as its maker named it.
    public let remoteAddress: TransportAddress?

    /// Told once, when the pipe is over and its owner may forget it: also from inside a call that ends it. Not told where the loop ends
    /// first.
    public var didFinish: ((SocketPipe) -> Void)?
    /// Told when it was closed, all that was written has been sent, and it stays for a while to wait for the other side's end. Who takes
    /// in connections from strangers bounds how many may do so, with `finish()`: nothing of them is lost.
    public var beganToLinger: ((SocketPipe) -> Void)?

    @exclusivity(unchecked) private var stream: SocketStream
    @exclusivity(unchecked) private var handler: (any PipeHandler)?
    @exclusivity(unchecked) private var phase = Phase.open
    private var hasEnded = false
    private var saysEnd = false
    private var lingerTimer: LoopTimer?

    /// Takes over a stream socket that is connected. To be called on the loop. The descriptor becomes non-blocking, is closed at exec,
    /// and does not linger in the kernel.
    ///
    /// Fails, with a cause of the system's, for what is no stream socket and for what the loop cannot wait for, such as a descriptor
    /// that is watched already. It is still the caller's then, to close.
    ///
    /// - Parameters:
    ///   - scheme: the transport's, for errors.
    ///   - lingerTime: for how long a closed pipe goes on sending and waits for the other side's end.
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
        stream = SocketStream(descriptor, Self.measures, on: loop)
        do throws(NighError) {
            // It keeps this pipe until the pipe is over, or the loop.
            try stream.begin(on: loop) { self.happened($0) }
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
        // Closing it would wait for the other side, and hold up the loop.
        var none = linger(l_onoff: 0, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &none, socklen_t(MemoryLayout<linger>.size))
        guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { return SocketFault(errno) }
        return nil
    }

    // MARK: What the socket tells

    private func happened(_ events: DescriptorEvents) {
        // An error comes as no event, or as all that were asked for: reading and writing tell which it is.
        let isOdd = events.isEmpty || events.contains(.hungUp)
        var bytesCame = false
        if events.isEmpty || events.contains(.readable) { bytesCame = read() }
        if events.isEmpty || events.contains(.writable) { writeOn() }
        guard isOdd, phase == .open || phase == .lingering else { return }
        // The error stands behind what came.
        if bytesCame { stream.resume() } else { lookForEnd() }
    }

    private func lookForEnd() {
        if let fault = SocketFault.taken(from: descriptor) { return breakDown(fault) }
        if hasEnded, isHungUp { return otherEndClosed() }
        // It was something else, and would be told for ever.
        stream.watchesHangUp = false
        stream.resume()
    }

    /// Whether both directions are over.
    private var isHungUp: Bool {
        var state = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&state, 1, 0) > 0 && Int32(state.revents) & POLLHUP != 0
    }

    // MARK: Reading

    /// Reads what is there, within a fair share; says whether anything was.
    private func read() -> Bool {
        var bytesCame = false
        for _ in 0..<Self.share {
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
                // Whatever comes after that is told again.
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
        default: breakDown(SocketFault(number))
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

    private func writeOn() {
        guard phase == .open || phase == .lingering, !stream.waiting.isEmpty else { return }
        let number = stream.writeOn()
        guard number == 0 else {
            return phase == .lingering ? breakDown(SocketFault(number)) : failLater(number)
        }
        if phase == .lingering, stream.waiting.isEmpty { return drained() }
        if phase == .open, stream.takeRelief() { handler?.pipeBecameWritable(self) }
    }

    // MARK: The end

    /// The other end has closed altogether: in good order, unless it left something unread.
    private func otherEndClosed() {
        if stream.waiting.isEmpty { tellClosed(nil) } else { breakDown(SocketFault(EPIPE)) }
    }

    private func breakDown(_ fault: SocketFault) {
        tellClosed(fault.error(.conversing, transport: scheme))
    }

    /// Found out in a call of the handler's own, so it is told in a later turn: after what the other side had said before.
    private func failLater(_ number: Int32) {
        phase = .failing
        loop.execute { [self] in
            for _ in 0..<Self.lastReads {
                guard phase == .failing, stream.isReading, let handler else { break }
                guard case .bytes(let bytes, _) = stream.receive() else { break }
                handler.pipe(self, received: bytes)
            }
            breakDown(SocketFault(number))
        }
    }

    /// Who has closed it hears, unless it has already, that nothing waits any more.
    private func tellClosed(_ error: NighError?) {
        guard phase != .over else { return }
        let (handler, isClosedHere) = (self.handler, phase == .lingering)
        finish()
        if isClosedHere { handler?.pipeDrained(self) } else { handler?.pipeClosed(self, error: error) }
    }

    /// Breaks the pipe off for a reason of its transport's own, such as an adapter that was unplugged: the handler is told `error` in a
    /// later turn, and nothing else any more. A pipe that was closed is over in that turn. To be called on the loop, at any time.
    public func breakOff(_ error: NighError) {
        loop.checkIsolated()
        switch phase {
        case .open, .lingering:
            if phase == .open { phase = .failing }
            loop.execute { self.tellClosed(error) }
        case .failing, .over: break
        }
    }

    /// Everything is over at once, and what waits is dropped; nobody is told but the owner, by `didFinish`. To be called on the loop, at
    /// any time, any number of times.
    public func finish() {
        loop.checkIsolated()
        guard phase != .over else { return }
        if phase == .lingering { discardUnread() }
        phase = .over
        handler = nil
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

    /// All that was written has been handed to the system. Not to be called from inside a call of the handler's own.
    private func drained() {
        guard phase == .lingering else { return }
        saysEnd = true
        Glibc.shutdown(descriptor, Int32(SHUT_WR))
        let told = handler
        handler = nil
        told?.pipeDrained(self)
        finishIfDone()
        if phase == .lingering { beganToLinger?(self) }
    }

    private func finishIfDone() { if phase == .lingering, saysEnd, hasEnded { finish() } }
}

// What these do stands with the protocol.
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

    public func pauseReading() {
        guard phase == .open || phase == .failing else { return }
        stream.isReading = false
    }

    public func resumeReading() {
        guard phase == .open, handler != nil, !hasEnded else { return }
        stream.isReading = true
    }

    public func close(_ manner: PipeCloseManner) {
        guard phase == .open || phase == .failing else { return }
        guard manner == .afterWriting else { return finish() }
        let isBroken = phase == .failing
        phase = .lingering
        // One that has broken is over in the turn in which that would have been told.
        guard !isBroken else { return }
        lingerTimer = loop.schedule(at: loop.now + lingerTime) { self.tellClosed(nil) }
        stream.watchesHangUp = false
        stream.isReading = !hasEnded
        if stream.waiting.isEmpty { loop.execute { self.drained() } }
    }
}
