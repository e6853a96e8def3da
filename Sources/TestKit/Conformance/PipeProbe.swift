import NighCore

/// The handler of a pipe under test: sends pattern streams, and checks the received ones.
///
/// The monitor guards what it records; sending is confined to the pipe's loop.
final class PipeProbe: PipeHandler, @unchecked Sendable {
    /// An event of the pipe. Consecutive events with bytes are recorded as one.
    enum Event: Equatable {
        case bytes
        case writable
        case ended
        case closed(NighError?)
        case drained
    }

    let pipe: any Pipe
    let owner: TransportProbe

    private let monitor: Monitor
    private var recordedLog: [Event] = []
    private var recordedCount = 0
    private var recordedTag: UInt8?
    private var recordedWritable = 0
    private var recordedBytes: [UInt8] = []
    private var relay: PipeProbe?
    private var isClosedHere = false
    private var isClosedThere = false

    private var tag: UInt8 = 0
    private var goal = 0
    private var pieceLimit = 1
    private var random = SeededGenerator(seed: 1)
    private var sentCount = 0
    private var wasBackedUp = false

    init(_ pipe: any Pipe, owner: TransportProbe) {
        self.pipe = pipe
        self.owner = owner
        monitor = owner.testbed.monitor
    }

    var log: [Event] { monitor.read { recordedLog } }
    /// The number of bytes received.
    var received: Int { monitor.read { recordedCount } }
    /// The tag of the received stream; nil before its first byte.
    var receivedTag: UInt8? { monitor.read { recordedTag } }
    /// The number of `pipeBecameWritable` events.
    var writableCount: Int { monitor.read { recordedWritable } }
    /// The number of bytes written to the pipe.
    var sent: Int { monitor.read { sentCount } }
    /// Whether the probe has found the pipe backed up.
    var isBackedUp: Bool { monitor.read { wasBackedUp } }
    /// The received bytes, if its transport probe is raw.
    var bytes: [UInt8] { monitor.read { recordedBytes } }
    /// Whether the other end has finished writing or is gone.
    var isOver: Bool { monitor.read { isClosedThere || recordedLog.contains(.ended) } }
    /// Whether the pipe has reported that it is drained.
    var isDrained: Bool { monitor.read { recordedLog.contains(.drained) } }
    /// Whether the pipe has reported `pipeClosed`.
    var isClosed: Bool { monitor.read { isClosedThere } }

    /// Sends the stream `tag` up to `goal` bytes, in writes of a random size up to `pieceLimit`. Stops while
    /// the pipe is backed up.
    func send(tag: UInt8, upTo goal: Int, pieceLimit: Int) throws {
        try owner.run { [self] in
            self.tag = tag
            self.goal = goal
            self.pieceLimit = pieceLimit
            random = SeededGenerator(seed: UInt64(tag) &+ owner.testbed.rig.seed)
            pump()
        }
    }

    /// Sends the rest of the stream in one write and, if `mode` is given, closes the pipe in the same turn.
    func sendAtOnce(tag: UInt8, upTo goal: Int, thenClose mode: PipeCloseMode? = nil) throws {
        try owner.run { [self] in
            var queue = ByteQueue()
            while sentCount + queue.byteCount < goal {
                let position = sentCount + queue.byteCount
                queue.append(Pattern.slice(tag: tag, at: position, count: goal - position))
            }
            write(&queue)
            if let mode { closeHere(mode) }
        }
    }

    /// Sends these bytes, which are not a pattern.
    func send(_ bytes: [UInt8]) throws {
        try owner.run { [self] in
            var queue = ByteQueue()
            queue.append(ByteSlice(bytes))
            write(&queue)
        }
    }

    /// Forwards everything received, so far and later, to `other`, which is on the same loop.
    func relay(to other: PipeProbe) throws {
        try owner.run { [self] in
            relay = other
            var queue = ByteQueue()
            queue.append(ByteSlice(bytes))
            if !queue.isEmpty { other.write(&queue) }
        }
    }

    func pause() throws { try call { $0.pauseReading() } }

    func resume() throws { try call { $0.resumeReading() } }

    /// Closes the pipe. Returns false if the pipe had already reported `pipeClosed`.
    @discardableResult
    func close(_ mode: PipeCloseMode) throws -> Bool {
        try owner.run { [self] in
            closeHere(mode)
            return !isClosed
        }
    }

    /// Runs `body` with the pipe on the loop, and returns its result.
    func call<Result: Sendable>(_ body: @escaping @Sendable (any Pipe) -> Result) throws -> Result {
        try owner.run { [self] in body(pipe) }
    }

    func start() { pipe.start(handler: self) }

    private func closeHere(_ mode: PipeCloseMode) {
        pipe.close(mode)
        monitor.change { isClosedHere = true }
    }

    private func pump() {
        while sentCount < goal, !monitor.read({ isClosedHere || isClosedThere }) {
            if pipe.writableBytes <= 0 {
                return monitor.change { wasBackedUp = true }
            }
            var queue = ByteQueue()
            let size = min(goal - sentCount, Int.random(in: 1...pieceLimit, using: &random))
            while queue.byteCount < size {
                let position = sentCount + queue.byteCount
                queue.append(Pattern.slice(tag: tag, at: position, count: size - queue.byteCount))
            }
            write(&queue)
        }
    }

    private func write(_ queue: inout ByteQueue) {
        let count = queue.byteCount
        pipe.write(&queue)
        monitor.change { sentCount += count }
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        monitor.change {
            if recordedLog.last != .bytes { recordedLog.append(.bytes) }
            if recordedCount == 0 { recordedTag = bytes.withUnsafeBytes { $0.first } }
            let position = recordedCount
            recordedCount += bytes.count
            guard !owner.isRaw else { return recordedBytes.append(contentsOf: bytes.bytes) }
            let wrong = bytes.withUnsafeBytes {
                Pattern.firstMismatch($0, tag: recordedTag ?? 0, at: position)
            }
            if let wrong {
                owner.testbed.recordViolation(
                    "a wrong byte arrived near byte \(position + wrong) of a stream")
            }
        }
        guard let relay else { return }
        var queue = ByteQueue()
        queue.append(bytes)
        relay.write(&queue)
    }

    func pipeBecameWritable(_ pipe: any Pipe) {
        monitor.change {
            recordedWritable += 1
            recordedLog.append(.writable)
        }
        pump()
    }

    func pipeEnded(_ pipe: any Pipe) { monitor.change { recordedLog.append(.ended) } }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        if let error { owner.note(error) }
        monitor.change {
            isClosedThere = true
            recordedLog.append(.closed(error))
        }
    }

    func pipeDrained(_ pipe: any Pipe) { monitor.change { recordedLog.append(.drained) } }
}
