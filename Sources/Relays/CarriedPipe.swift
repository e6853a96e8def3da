import NighCore

/// One pipe between two other peers: takes bytes from the stream of one, and gives them to the stream of the other.
///
/// Each direction holds at most one frame of a stream, and reads the next one only when the target has taken all of it.
/// So a slow reader slows the writer at the other end. Each direction ends by itself, in the same way as at its source.
///
/// Loop only.
final class CarriedPipe {
    /// The most bytes that pass in each direction in one turn, so that others get theirs.
    private static let turnLimit = 256 << 10

    private final class Direction {
        let source: ByteStream
        let target: ByteStream
        /// Bytes from the source that the target has no room for yet.
        var held = ByteSlice([])
        var isOver = false

        init(from source: ByteStream, to target: ByteStream) {
            self.source = source
            self.target = target
        }
    }

    /// The peer that asked for the pipe.
    let asking: PeerID
    /// The peer at the other end of the pipe.
    let wanted: PeerID
    private let directions: [Direction]
    private let loop: any EventLoop
    /// Called with the number of bytes that have passed.
    private let whenCarried: (CarriedPipe, Int) -> Void
    /// Called once, when both directions are over.
    private let whenOver: (CarriedPipe) -> Void
    private var isTurnDue = false
    private var isOver = false
    private(set) var bytes = 0
    /// Whether the wanted peer has said anything.
    private(set) var isAnswered = false

    init(
        _ asking: ByteStream, _ wanted: ByteStream, on loop: any EventLoop,
        whenCarried: @escaping (CarriedPipe, Int) -> Void, whenOver: @escaping (CarriedPipe) -> Void
    ) {
        self.asking = asking.peer
        self.wanted = wanted.peer
        self.loop = loop
        self.whenCarried = whenCarried
        self.whenOver = whenOver
        directions = [Direction(from: asking, to: wanted), Direction(from: wanted, to: asking)]
    }

    /// Begins to carry.
    func start() { takeTurnSoon() }

    /// The bytes that were read on one side and not yet written on the other.
    var heldByteCount: Int { directions.reduce(0) { $0 + $1.held.count } }

    /// Ends the pipe for this reason, which both peers get.
    func end(because reason: String) {
        guard !isOver else { return }
        for direction in directions { direction.source.cancel(because: reason) }
        finish()
    }

    private func finish() {
        isOver = true
        for direction in directions {
            direction.isOver = true
            direction.held = ByteSlice([])
            // The streams retain their callbacks, and with them this pipe.
            direction.source.notify(bytes: false, room: false, on: loop) {}
        }
        whenOver(self)
    }

    private func takeTurnSoon() {
        guard !isTurnDue, !isOver else { return }
        isTurnDue = true
        loop.later { [self] in
            isTurnDue = false
            takeTurn()
        }
    }

    private func takeTurn() {
        for direction in directions where !isOver { carry(direction) }
        guard !isOver else { return }
        if directions.allSatisfy(\.isOver) { return finish() }
        let (out, back) = (directions[0], directions[1])
        watch(out.source, reading: out, writing: back)
        watch(back.source, reading: back, writing: out)
    }

    private func watch(_ stream: ByteStream, reading: Direction, writing: Direction) {
        stream.notify(
            bytes: !reading.isOver && reading.held.isEmpty, room: !writing.isOver && !writing.held.isEmpty,
            on: loop
        ) { [self] in takeTurnSoon() }
    }

    private func carry(_ direction: Direction) {
        var left = Self.turnLimit
        while !direction.isOver, !isOver {
            guard left > 0 else { return takeTurnSoon() }
            do throws(NighError) {
                // An empty write shows whether the target still reads.
                let count = try direction.target.tryWrite(direction.held)
                let isStuck = count < direction.held.count
                direction.held = direction.held[count..<direction.held.count]
                left -= count
                if count > 0 {
                    bytes += count
                    whenCarried(self, count)
                }
                if isStuck || isOver { return }
            } catch {
                direction.isOver = true
                return direction.source.cancelReading(because: Self.reason(for: error, at: direction.target))
            }
            guard take(direction) else { return }
        }
    }

    /// Takes the next bytes of a direction. Returns false if there are none now.
    private func take(_ direction: Direction) -> Bool {
        switch direction.source.poll() {
        case .bytes(let bytes):
            direction.held = bytes
            if direction === directions[1] { isAnswered = true }
            return true
        case .nothing: return false
        case .end:
            direction.isOver = true
            direction.target.finish()
        case .failed(let error):
            direction.isOver = true
            direction.target.cancelWriting(because: Self.reason(for: error, at: direction.source))
        }
        return false
    }

    /// Returns the reason to pass on: that of the peer that cancelled, or the lost connection to it.
    private static func reason(for error: NighError, at stream: ByteStream) -> String {
        if case .streamCancelled(let reason) = error.cause { return reason }
        return "the carrier is no longer connected to \(stream.peer.short)"
    }
}
