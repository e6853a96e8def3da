import NighCore

/// A pipe under test: sends pattern streams, checks what comes, and that it comes by the contract.
///
/// What it records is guarded by the monitor; sending is confined to the pipe's loop.
final class PipeProbe: PipeHandler, @unchecked Sendable {
    /// What was told, runs of bytes as one.
    enum Word: Equatable {
        case bytes
        case writable
        case ended
        case closed(NighError?)
        case drained
    }

    let pipe: any Pipe
    let station: Station

    private let monitor: Monitor
    private var recordedLog: [Word] = []
    private var recordedCount = 0
    private var recordedTag: UInt8?
    private var recordedWritable = 0
    private var recordedBytes: [UInt8] = []
    private var relay: PipeProbe?
    private var closeManner: PipeCloseManner?
    private var isClosedThere = false

    private var tag: UInt8 = 0
    private var goal = 0
    private var pieceLimit = 1
    private var minds = true
    private var random = SeededGenerator(seed: 1)
    private var sentCount = 0
    private var wasHeldUp = false

    init(_ pipe: any Pipe, station: Station) {
        self.pipe = pipe
        self.station = station
        monitor = station.bench.monitor
    }

    var log: [Word] { monitor.read { recordedLog } }
    /// How many bytes came.
    var received: Int { monitor.read { recordedCount } }
    /// The tag of the stream that comes; nil before its first byte.
    var receivedTag: UInt8? { monitor.read { recordedTag } }
    /// How often the pipe said that it can be written again.
    var writableCount: Int { monitor.read { recordedWritable } }
    /// How many bytes were given to the pipe.
    var sent: Int { monitor.read { sentCount } }
    /// Whether the pipe was found to be backed up.
    var isHeldUp: Bool { monitor.read { wasHeldUp } }
    /// What came, where the station is raw.
    var bytes: [UInt8] { monitor.read { recordedBytes } }
    /// Whether the other end has finished, one way or the other.
    var isOver: Bool { monitor.read { isClosedThere || recordedLog.contains(.ended) } }
    /// Whether the pipe said that it is drained.
    var isDrained: Bool { monitor.read { recordedLog.contains(.drained) } }
    /// Whether the other end is known to be gone altogether.
    var isClosed: Bool { monitor.read { isClosedThere } }

    /// Sends the stream `tag` up to `goal` bytes, in writes of a random size up to `pieceLimit`; `minding` stops while the
    /// pipe is backed up.
    func send(tag: UInt8, upTo goal: Int, pieceLimit: Int, minding: Bool = true) throws {
        try station.run { [self] in
            self.tag = tag
            self.goal = goal
            self.pieceLimit = pieceLimit
            minds = minding
            random = SeededGenerator(seed: UInt64(tag) &+ station.bench.rig.seed)
            pump()
        }
    }

    /// Sends all that is left of the stream in one write, and closes the pipe in the same turn if asked to.
    func sendAtOnce(tag: UInt8, upTo goal: Int, thenClose manner: PipeCloseManner? = nil) throws {
        try station.run { [self] in
            var queue = ByteQueue()
            while sentCount + queue.byteCount < goal {
                let position = sentCount + queue.byteCount
                queue.append(Pattern.slice(tag: tag, at: position, count: goal - position))
            }
            write(&queue)
            if let manner { closeHere(manner) }
        }
    }

    /// Sends these bytes, which are no pattern.
    func send(_ bytes: [UInt8]) throws {
        try station.run { [self] in
            var queue = ByteQueue()
            queue.append(ByteSlice(bytes))
            write(&queue)
        }
    }

    /// Passes on to `other`, on the same loop, what came and what will come.
    func relay(to other: PipeProbe) throws {
        try station.run { [self] in
            relay = other
            var queue = ByteQueue()
            queue.append(ByteSlice(bytes))
            if !queue.isEmpty { other.write(&queue) }
        }
    }

    func pause() throws { try call { $0.pauseReading() } }

    func resume() throws { try call { $0.resumeReading() } }

    /// False where the other end was known to be gone altogether.
    @discardableResult
    func close(_ manner: PipeCloseManner) throws -> Bool {
        try station.run { [self] in
            closeHere(manner)
            return !isClosed
        }
    }

    /// Runs `body` on the loop as a call to the pipe, in which nothing may be told.
    func call<Result: Sendable>(_ body: @escaping @Sendable (any Pipe) -> Result) throws -> Result {
        try station.run { [self] in station.guarding { body(pipe) } }
    }

    func start() { station.guarding { pipe.start(handler: self) } }

    private func closeHere(_ manner: PipeCloseManner) {
        station.guarding { pipe.close(manner) }
        monitor.change { closeManner = closeManner ?? manner }
    }

    private func pump() {
        while sentCount < goal, !monitor.read({ closeManner != nil || isClosedThere }) {
            if minds, station.guarding({ pipe.writableBytes }) <= 0 {
                return monitor.change { wasHeldUp = true }
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
        station.guarding { pipe.write(&queue) }
        if !queue.isEmpty { station.bench.violated("write left bytes in the queue") }
        monitor.change { sentCount += count }
    }

    /// False when nothing may be told; that is noted.
    private func enter(_ what: String) -> Bool {
        guard station.enter(what) else { return false }
        guard monitor.read({ closeManner == nil }) else {
            station.bench.violated("\(what) after this end's close")
            return false
        }
        guard !monitor.read({ isClosedThere }) else {
            station.bench.violated("\(what) after pipeClosed")
            return false
        }
        return true
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        guard enter("received") else { return }
        checkIdentity(pipe)
        monitor.change {
            if bytes.isEmpty { station.bench.violated("received without a byte") }
            if recordedLog.contains(.ended) { station.bench.violated("received after pipeEnded") }
            if recordedLog.last != .bytes { recordedLog.append(.bytes) }
            if recordedCount == 0 { recordedTag = bytes.withUnsafeBytes { $0.first } }
            let position = recordedCount
            recordedCount += bytes.count
            guard !station.isRaw else { return recordedBytes.append(contentsOf: bytes.bytes) }
            let wrong = bytes.withUnsafeBytes {
                Pattern.firstMismatch($0, tag: recordedTag ?? 0, at: position)
            }
            if let wrong {
                station.bench.violated("a wrong byte came near byte \(position + wrong) of a stream")
            }
        }
        guard let relay else { return }
        var queue = ByteQueue()
        queue.append(bytes)
        relay.write(&queue)
    }

    func pipeBecameWritable(_ pipe: any Pipe) {
        guard enter("pipeBecameWritable") else { return }
        checkIdentity(pipe)
        if pipe.writableBytes <= 0 { station.bench.violated("pipeBecameWritable with writableBytes <= 0") }
        monitor.change {
            recordedWritable += 1
            recordedLog.append(.writable)
        }
        pump()
    }

    func pipeEnded(_ pipe: any Pipe) {
        guard enter("pipeEnded") else { return }
        checkIdentity(pipe)
        monitor.change {
            if recordedLog.contains(.ended) { station.bench.violated("pipeEnded twice") }
            recordedLog.append(.ended)
        }
    }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        guard enter("pipeClosed") else { return }
        checkIdentity(pipe)
        if let error { station.checkError(error) }
        monitor.change {
            isClosedThere = true
            recordedLog.append(.closed(error))
        }
    }

    func pipeDrained(_ pipe: any Pipe) {
        guard station.enter("pipeDrained") else { return }
        checkIdentity(pipe)
        let waiting = pipe.counters.bytesWaiting
        if waiting != 0 { station.bench.violated("pipeDrained with \(waiting) bytes waiting") }
        monitor.change {
            if closeManner != .afterWriting {
                station.bench.violated("pipeDrained without a close(.afterWriting)")
            }
            if isClosedThere { station.bench.violated("pipeDrained after pipeClosed") }
            if recordedLog.contains(.drained) { station.bench.violated("pipeDrained twice") }
            recordedLog.append(.drained)
        }
    }

    private func checkIdentity(_ pipe: any Pipe) {
        if pipe !== self.pipe { station.bench.violated("a handler was told about another pipe than its own") }
    }
}
