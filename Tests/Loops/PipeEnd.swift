import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

/// Bytes whose values show their position in a stream.
enum Stream {
    /// Created once: in a debug build, creating the bytes takes longer than everything that is done with them.
    private static let all: [UInt8] = (0..<4_000_000).map {
        UInt8(truncatingIfNeeded: ($0 &* 31) &+ ($0 >> 8) &+ ($0 >> 16))
    }

    static func bytes(_ range: Range<Int>) -> [UInt8] { Array(all[range]) }
}

/// A connected pair of stream sockets: the descriptor for a pipe, and the bare other end.
struct SocketPair {
    let near: Int32
    let far: BareEnd

    init() {
        var descriptors: [Int32] = [0, 0]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let status = socketpair(AF_UNIX, kind, 0, &descriptors)
        precondition(status == 0, "no socket pair could be made: \(errno)")
        near = descriptors[0]
        far = BareEnd(descriptors[1])
    }
}

/// A socket without a pipe. Its calls block until they are done, for up to 20 s. It is closed with the last reference,
/// or before.
final class BareEnd: @unchecked Sendable {
    private(set) var descriptor: Int32

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        var timeout = timeval(tv_sec: 20, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &timeout, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    deinit { close() }

    /// Gives the descriptor to the caller, who must close it.
    func take() -> Int32 {
        defer { descriptor = -1 }
        return descriptor
    }

    func close() { if descriptor >= 0 { Glibc.close(take()) } }

    func finishWriting() { Glibc.shutdown(descriptor, Int32(SHUT_WR)) }

    /// Writes all of `bytes`, or as much as possible.
    func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Reads until there are `count` bytes or the stream ends, in pieces of at most `pieceLimit`.
    func read(_ count: Int, pieceLimit: Int = 1 << 20) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: pieceLimit)
        while bytes.count < count {
            let got = recv(descriptor, &piece, min(pieceLimit, count - bytes.count), 0)
            guard got > 0 else { break }
            bytes += piece.prefix(got)
        }
        return bytes
    }

    /// Waits for the next byte or the end; returns whether the other end has finished writing.
    var isAtEnd: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, 0) == 0
    }
}

/// Remembers which socket a descriptor refers to, to find out later whether it still does.
struct SocketIdentity {
    let descriptor: Int32
    private let number: ino_t?

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        number = Self.number(of: descriptor)
    }

    var isOpen: Bool { number != nil && Self.number(of: descriptor) == number }

    private static func number(of descriptor: Int32) -> ino_t? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status.st_ino : nil
    }
}

/// A pipe over one end of a socket pair, and what it reported.
///
/// `@unchecked Sendable`: the monitor guards what was recorded; the rest is confined to the loop.
final class PipeEnd: PipeHandler, @unchecked Sendable {
    /// An event of the pipe. Consecutive runs of bytes count as one.
    enum Word: Equatable {
        case bytes
        case writable
        case ended
        case closed(NighError?)
        case drained
        case finished
    }

    let loop: UVEventLoop
    let monitor = Monitor()
    let socket: SocketIdentity
    private var pipe: SocketPipe?
    private weak var seenPipe: SocketPipe?
    private var isInCall = false
    private var isOver = false
    private var recordedLog: [Word] = []
    private var recordedBytes: [UInt8] = []
    private var recordedBreaches: [String] = []
    /// Called on the loop when the handler receives bytes.
    private var whenBytesCome: ((SocketPipe) -> Void)?

    /// Takes over the descriptor, and starts the pipe.
    init(
        _ descriptor: Int32, lingerTime: Duration = .seconds(10), on loop: UVEventLoop,
        whenBytesCome: ((SocketPipe) -> Void)? = nil
    ) {
        self.loop = loop
        socket = SocketIdentity(descriptor)
        self.whenBytesCome = whenBytesCome
        run { [self] in
            let pipe = try! SocketPipe(
                descriptor: descriptor, scheme: "test", lingerTime: lingerTime, on: loop)
            pipe.didFinish = { [self] _ in monitor.change { recordedLog.append(.finished) } }
            self.pipe = pipe
            seenPipe = pipe
            guarding { pipe.start(handler: self) }
        }
    }

    var log: [Word] { monitor.read { recordedLog } }
    var bytes: [UInt8] { monitor.read { recordedBytes } }
    var byteCount: Int { monitor.read { recordedBytes.count } }
    /// Events that broke the contract of pipes.
    var breaches: [String] { monitor.read { recordedBreaches } }
    var isFinished: Bool { log.contains(.finished) }

    func wait(until isTrue: () -> Bool) -> Bool { monitor.wait(within: .seconds(20), until: isTrue) }

    @discardableResult
    func run<Result>(_ body: @escaping () -> Result) -> Result { loop.call(body) }

    /// Calls the pipe on the loop; no event may come before the call returns.
    @discardableResult
    func call<Result>(_ body: @escaping (SocketPipe) -> Result) -> Result {
        run { [self] in guarding { body(pipe!) } }
    }

    /// Writes `bytes` as one slice.
    func write(_ bytes: [UInt8]) { call { Self.write(bytes, to: $0) } }

    static func write(_ bytes: [UInt8], to pipe: SocketPipe) {
        var queue = ByteQueue()
        queue.append(ByteSlice(bytes))
        pipe.write(&queue)
        precondition(queue.isEmpty)
    }

    /// Closes the pipe. From here on, no event may come except that the pipe is drained and that it has finished.
    func close(_ mode: PipeCloseMode) {
        call { [self] in
            $0.close(mode)
            isOver = true
        }
    }

    func finish() {
        call { [self] in
            $0.finish()
            isOver = true
        }
    }

    /// Releases the pipe.
    func release() { run { [self] in pipe = nil } }

    var pipeIsAlive: Bool { run { [self] in seenPipe != nil } }

    private func guarding<Result>(_ body: () -> Result) -> Result {
        let before = isInCall
        isInCall = true
        defer { isInCall = before }
        return body()
    }

    private func note(_ word: Word, _ more: () -> Void = {}) {
        monitor.change {
            if isInCall { recordedBreaches.append("\(word) from inside a call") }
            if isOver, word != .drained { recordedBreaches.append("\(word) after the end") }
            if !loop.isCurrent { recordedBreaches.append("\(word) off the loop") }
            if word != .bytes || recordedLog.last != .bytes { recordedLog.append(word) }
            more()
        }
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        note(.bytes) { bytes.withUnsafeBytes { recordedBytes.append(contentsOf: $0) } }
        if let whenBytesCome, let pipe = seenPipe { whenBytesCome(pipe) }
    }

    func pipeBecameWritable(_ pipe: any Pipe) {
        note(.writable)
        if pipe.writableBytes <= 0 {
            monitor.change { recordedBreaches.append("writable without being so") }
        }
    }

    func pipeEnded(_ pipe: any Pipe) { note(.ended) }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        note(.closed(error))
        isOver = true
    }

    func pipeDrained(_ pipe: any Pipe) {
        note(.drained)
        if pipe.counters.bytesWaiting != 0 {
            monitor.change { recordedBreaches.append("drained with bytes waiting") }
        }
    }
}

/// A pipe over one end of a pair of sockets, on a loop of its own, and the bare other end.
final class PipeGround {
    let loop = UVEventLoop()
    let end: PipeEnd
    let far: BareEnd

    init(lingerTime: Duration = .seconds(10), whenBytesCome: ((SocketPipe) -> Void)? = nil) {
        let sockets = SocketPair()
        far = sockets.far
        end = PipeEnd(sockets.near, lingerTime: lingerTime, on: loop, whenBytesCome: whenBytesCome)
    }

    deinit { loop.shutdown() }

    /// Waits until the loop has handled all descriptors that had events before this call.
    func waitForEvents() {
        let other = SocketPair()
        let marker = PipeEnd(other.near, on: loop)
        other.far.write([0])
        #expect(marker.wait { marker.byteCount == 1 })
        marker.finish()
    }

    /// Expects these events and no others, once there are as many. Expects also that the contract was kept, and that
    /// the socket is closed exactly if the pipe has finished.
    func expect(_ log: PipeEnd.Word..., sourceLocation: SourceLocation = #_sourceLocation) {
        _ = end.wait { end.log.count >= log.count }
        #expect(end.log == log, sourceLocation: sourceLocation)
        #expect(end.breaches == [], sourceLocation: sourceLocation)
        #expect(end.socket.isOpen == !log.contains(.finished), sourceLocation: sourceLocation)
    }
}
