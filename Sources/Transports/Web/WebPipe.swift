import NighCore
import NighUV

/// The pipe of a guest: the bytes in the binary messages of its WebSocket.
///
/// Written bytes leave in messages of at most 64 KiB, by reference. Received bytes are unmasked in place. A guest
/// that sends faster than it may is read more slowly.
///
/// Used on its loop only.
final class WebPipe: GuestPipe {
    let guest: PeerID
    private let socket: SocketPipe
    private let loop: any EventLoop
    private var allowance: Allowance
    private let byteLimit: Int
    /// Counts bytes of the guest. Returns false if it has used up its limit.
    private let count: (Int) -> Bool

    private var handler: (any PipeHandler)?
    private var isPausedByReader = true
    private var resumeTimer: LoopTimer?
    /// Whether neither side has closed the pipe, and it has not failed.
    private(set) var isOpen = true
    /// Whether the pipe has failed, and the handler is not told yet.
    private var isFailing = false
    /// Whether the handler has closed the pipe meanwhile, and still waits until its bytes are written.
    private var awaitsDrain = false
    private var received = 0
    private var written = 0

    init(
        of guest: PeerID, over socket: SocketPipe, on loop: any EventLoop, rate: Int,
        byteLimit: Int, count: @escaping (Int) -> Bool
    ) {
        self.guest = guest
        self.socket = socket
        self.loop = loop
        self.byteLimit = byteLimit
        self.count = count
        allowance = Allowance(rate: rate, at: loop.now)
    }

    // MARK: Reports of the connection

    /// Slows the guest down if it sends more bytes of any kind than it may.
    func noteArrival(of count: Int) {
        let wait = allowance.take(count, at: loop.now)
        if wait > .zero, isOpen { pause(for: wait) }
    }

    /// Reads nothing for a moment, so that others have their turn.
    func rest() { if isOpen { pause(for: .milliseconds(5)) } }

    /// Delivers bytes of a message.
    func receive(_ bytes: ByteSlice) {
        guard isOpen, let handler, !bytes.isEmpty else { return }
        received += bytes.count
        handler.pipe(self, received: bytes)
        guard isOpen else { return }
        if !count(bytes.count) { fail(with: limitError) }
    }

    func becameWritable() { if isOpen { handler?.pipeBecameWritable(self) } }

    /// Reports that the WebSocket is over: in good order, or because of `error`. A pipe that fails says so itself.
    func closed(_ error: NighError?) {
        guard isOpen else { return }
        let last = handler
        end()
        last?.pipeClosed(self, error: error)
    }

    /// Reports that all that was written has left.
    func drained() {
        let last = handler
        end()
        last?.pipeDrained(self)
    }

    /// Ends the pipe for a reason of this side, and tells the handler in a later turn.
    func fail(with error: NighError) {
        guard isOpen else { return }
        isOpen = false
        isFailing = true
        socket.pauseReading()
        loop.later { [self] in
            let (last, awaitsDrain) = (handler, awaitsDrain)
            end()
            if awaitsDrain { last?.pipeDrained(self) } else { last?.pipeClosed(self, error: error) }
            sendClose(.policyViolation)
            socket.close(.afterWriting)
        }
    }

    /// Releases everything, and calls nobody.
    func end() {
        isOpen = false
        isFailing = false
        handler = nil
        if let resumeTimer { loop.cancel(resumeTimer) }
        resumeTimer = nil
    }

    // MARK: The rate

    private var limitError: NighError {
        NighError(
            .conversing, .limit("bytes of a guest", byteLimit), transport: WebTransport.schemeName,
            advice: "raise bytes= of the transport")
    }

    private func pause(for wait: Moment.Span) {
        socket.pauseReading()
        guard resumeTimer == nil else { return }
        resumeTimer = loop.schedule(at: loop.now + wait) { [self] in
            resumeTimer = nil
            readIfWanted()
        }
    }

    private func readIfWanted() {
        guard isOpen, handler != nil, !isPausedByReader, resumeTimer == nil else { return }
        socket.resumeReading()
    }

    private func sendClose(_ code: WebSocketCode) {
        var last = ByteQueue()
        last.append(ByteSlice(WebSocketFrame.close(code)))
        socket.write(&last)
    }
}

extension WebPipe: Pipe {
    var localAddress: TransportAddress? { socket.localAddress }
    var remoteAddress: TransportAddress? { socket.remoteAddress }
    var writableBytes: Int { socket.writableBytes }

    var counters: PipeCounters {
        var counters = PipeCounters()
        counters.bytesReceived = received
        counters.bytesWritten = written
        counters.bytesWaiting = min(socket.counters.bytesWaiting, written)
        return counters
    }

    func start(handler: any PipeHandler) {
        self.handler = handler
        isPausedByReader = false
    }

    func write(_ queue: inout ByteQueue) {
        guard isOpen else { return queue.removeAll() }
        let all = queue.byteCount
        var frames = ByteQueue()
        while !queue.isEmpty {
            var left = min(queue.byteCount, WebSocketReader.longestMessage)
            frames.append(ByteSlice(WebSocketFrame.header(of: left)))
            while left > 0, let slice = queue.popFirst(atMost: left) {
                left -= slice.count
                frames.append(slice)
            }
        }
        written += all
        socket.write(&frames)
        if !count(all) { fail(with: limitError) }
    }

    func pauseReading() {
        isPausedByReader = true
        socket.pauseReading()
    }

    func resumeReading() {
        isPausedByReader = false
        readIfWanted()
    }

    func close(_ mode: PipeCloseMode) {
        if isFailing, !awaitsDrain {
            // The written bytes are dropped.
            if mode == .now { handler = nil } else { awaitsDrain = true }
            return
        }
        guard isOpen else { return }
        isOpen = false
        if mode == .now {
            end()
            return socket.close(.now)
        }
        sendClose(.normal)
        socket.close(.afterWriting)
    }
}

/// The number of bytes that may come now, for this limit per second.
struct Allowance {
    private let rate: Int
    private var left: Int
    private var last: Moment

    /// A second's worth may come at once.
    init(rate: Int, at now: Moment) {
        self.rate = rate
        left = rate
        last = now
    }

    /// Takes bytes that have come. Returns how long to wait before more are read.
    mutating func take(_ count: Int, at now: Moment) -> Moment.Span {
        let passed = min((now - last).nanoseconds, 1_000_000_000)
        last = now
        let gained = Int(Double(rate) * Double(passed) / 1e9)
        left = min(rate, left + gained) - count
        guard left < 0 else { return .zero }
        let seconds = Double(-left) / Double(rate)
        return .milliseconds(Int64(seconds * 1_000) + 1)
    }
}
