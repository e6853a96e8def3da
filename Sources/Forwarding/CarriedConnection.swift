import NighCore

/// One forwarded connection: carries the bytes between the stream of a conversation and the program's connection on
/// this device.
///
/// In each direction it holds at most the bytes of one read, and reads again only after it has passed on all of them.
/// So a slow reader slows down the writer at the other end. The end of one direction is passed on, and the other
/// direction goes on. A reset ends both.
///
/// Loop only.
final class CarriedConnection {
    /// The most bytes that pass to the program in one turn of the loop, so that other connections get their turn.
    private static let turnLimit = 256 << 10

    let stream: ByteStream
    let port: UInt16
    private let local: any LocalConnection
    private let loop: any EventLoop
    /// Called once, when both directions are over. The error is the reason if they did not end in good order.
    private let whenOver: (CarriedConnection, NighError?) -> Void
    /// Bytes of the program for which the stream has no room yet.
    private var held = ByteSlice([])
    /// The bytes of the connection that came together with the answer.
    private var early: ByteSlice
    private var hasProgramEnded = false
    private var isOutOver = false
    private var isInOver = false
    private var isLocalClosed = false
    private var isTurnDue = false
    private var isOver = false
    /// The number of bytes sent to the peer.
    private(set) var sent = 0
    /// The number of bytes received from the peer.
    private(set) var received = 0

    init(
        _ stream: ByteStream, _ local: any LocalConnection, port: UInt16, early: ByteSlice = ByteSlice([]),
        on loop: any EventLoop, whenOver: @escaping (CarriedConnection, NighError?) -> Void
    ) {
        self.stream = stream
        self.local = local
        self.port = port
        self.early = early
        self.loop = loop
        self.whenOver = whenOver
    }

    /// Starts carrying bytes. Call it in the turn of the loop in which the local connection was opened.
    func start() {
        local.start(handler: self)
        takeTurnSoon()
    }

    /// The number of bytes that were taken from one side and not given to the other yet.
    var heldByteCount: Int { held.count + early.count }

    /// Ends the connection on both sides for this reason.
    func end(because reason: String) { reset(NighError(.conversing, .streamCancelled(reason)), reason) }

    // MARK: Turns

    private func takeTurnSoon() {
        guard !isTurnDue, !isOver else { return }
        isTurnDue = true
        loop.later { [self] in
            isTurnDue = false
            guard !isOver else { return }
            sendHeld()
            deliver()
            watch()
        }
    }

    private func watch() {
        if isLocalClosed, isOutOver, isInOver { finish(nil) }
        guard !isOver else { return }
        stream.notify(
            bytes: !isInOver && local.writableBytes > 0, room: !isOutOver && !held.isEmpty, on: loop
        ) { [self] in takeTurnSoon() }
    }

    // MARK: From the program to the peer

    /// Sends the held bytes. Reads from the program again once none are left.
    private func sendHeld() {
        guard !isOutOver, !isOver else { return }
        do throws(NighError) {
            // Also if nothing is held: an empty write fails if the peer no longer reads.
            let count = try stream.tryWrite(held)
            sent += count
            held = held[count..<held.count]
        } catch {
            return fail(error)
        }
        guard held.isEmpty else { return }
        held = ByteSlice([])
        if hasProgramEnded {
            isOutOver = true
            stream.finish()
        } else {
            local.resumeReading()
        }
    }

    // MARK: From the peer to the program

    private func deliver() {
        guard !isInOver, !isOver else { return }
        // Everything that has arrived goes to the program in one system call.
        var queue = ByteQueue()
        let room = min(local.writableBytes, Self.turnLimit)
        var reading = ByteStream.Reading.nothing
        if room > 0, !early.isEmpty {
            queue.append(early)
            early = ByteSlice([])
        }
        while queue.byteCount < room {
            reading = stream.poll()
            guard case .bytes(let bytes) = reading else { break }
            queue.append(bytes)
        }
        received += queue.byteCount
        if !queue.isEmpty { local.write(&queue) }
        switch reading {
        case .bytes: takeTurnSoon()
        case .nothing: break
        case .end:
            isInOver = true
            local.finishWriting()
        case .failed(let error): fail(error)
        }
    }

    // MARK: The end

    private func fail(_ error: NighError) { reset(error, "the connection at the other end was reset") }

    private func reset(_ error: NighError, _ reason: String) {
        guard !isOver else { return }
        local.reset()
        stream.cancel(because: reason)
        finish(error)
    }

    private func finish(_ error: NighError?) {
        isOver = true
        held = ByteSlice([])
        early = ByteSlice([])
        // The stream keeps the last closure, and the closure keeps this connection: replace it.
        stream.notify(bytes: false, room: false, on: loop) {}
        whenOver(self, error)
    }
}

extension CarriedConnection: LocalConnectionHandler {
    func received(_ bytes: ByteSlice) {
        guard !isOver, !isOutOver else { return }
        do throws(NighError) {
            let count = held.isEmpty ? try stream.tryWrite(bytes) : 0
            sent += count
            guard count < bytes.count else { return }
            // A copy, because a slice would keep the loop's whole read buffer in memory.
            let rest = bytes[count..<bytes.count].copy()
            held = held.isEmpty ? rest : ByteSlice(held.bytes, then: rest)
            local.pauseReading()
            watch()
        } catch {
            fail(error)
        }
    }

    func becameWritable() { takeTurnSoon() }

    func ended() {
        hasProgramEnded = true
        takeTurnSoon()
    }

    func closed(_ error: NighError?) {
        guard !isOver else { return }
        if let error {
            stream.cancel(because: "the program's connection was reset")
            return finish(error)
        }
        // Its last bytes may still wait for room in the stream.
        isLocalClosed = true
        takeTurnSoon()
    }
}
