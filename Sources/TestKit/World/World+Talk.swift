import Glibc
import NighCore

// What users send, and how.

extension World {
    private func length() -> Int {
        switch generator.number(0...99) {
        case 0..<45: generator.number(0...64)
        case 45..<75: generator.number(65...1_500)
        case 75..<92: generator.number(1_501...20_000)
        case 92..<98: generator.number(20_001...70_000)
        default: generator.number(70_001...WorldMessage.longest)
        }
    }

    private func partner(of life: Life) -> Int? { generator.pick(life.lines.keys.sorted()) }

    /// Sends messages to one peer: `times` of them, or fewer if the session refuses one.
    func talk(_ life: Life, times: Int, to other: Int? = nil, isInHandler: Bool = false) {
        guard let other = other ?? partner(of: life) else { return }
        for _ in 0..<times {
            guard send(life, to: other, length: length(), isInHandler: isInHandler) else { return }
        }
    }

    /// Sends messages of one size until the session refuses one, or enough have been sent.
    func burst(_ life: Life) {
        guard let other = partner(of: life) else { return }
        let length = generator.chance(60) ? generator.number(0...300) : length()
        let lane: Lane = generator.chance(50) ? .main : .bulk
        let most = length > 20_000 ? 12 : 150
        for _ in 0..<generator.number(10...most) {
            guard send(life, to: other, length: length, lane: lane) else { return }
        }
    }

    /// Sends one message. Returns false if the session refuses it.
    @discardableResult
    func send(
        _ life: Life, to other: Int, length: Int, lane: Lane? = nil, isInHandler: Bool = false
    ) -> Bool {
        guard let line = life.lines[other], let session = life.session else { return false }
        var lane = lane ?? (generator.chance(70) ? .main : .bulk)
        if line.bulkIsTaken { lane = .main }
        let row: MessageLedger.Row = lane == .main ? .main : .bulk
        let bytes = ledger.nextMessage(in: line.stream, row: row, length: length)
        do throws(NighError) {
            if generator.chance(50) {
                try session.trySend(bytes, to: id(other), .reliable(lane))
            } else {
                try session.trySend(ByteSlice(bytes), to: id(other), .reliable(lane))
            }
            accepted(life, other, line.stream, row, bytes.count)
            return true
        } catch {
            refused(life, other, error, isInHandler: isInHandler)
            return false
        }
    }

    private func accepted(_ life: Life, _ other: Int, _ stream: Int, _ row: MessageLedger.Row, _ count: Int) {
        life.note(
            .sent, other, count << 2 | row.rawValue,
            "sends \(count) bytes to \(other), \(row), stream \(stream)")
        ledger.accept(stream, row: row, length: count)
    }

    private func refused(_ life: Life, _ other: Int, _ error: NighError, isInHandler: Bool) {
        switch error.cause {
        case .bufferFull: counts.refusedSends += 1
        case .left, .closed: break
        case .notConnected where isInHandler: break
        default: life.found(.calls, "\(other) was told to be connected, and a send fails: \(error)")
        }
    }

    /// Sends unreliable messages.
    func murmur(_ life: Life) {
        guard let other = partner(of: life), let line = life.lines[other], let session = life.session else {
            return
        }
        for _ in 0..<generator.number(1...10) {
            let bytes = ledger.nextMessage(
                in: line.stream, row: .unreliable, length: generator.number(16...4_000))
            do throws(NighError) {
                try session.trySend(bytes, to: id(other), .unreliable)
                ledger.accept(line.stream, row: .unreliable, length: bytes.count)
            } catch {
                return refused(life, other, error, isInHandler: false)
            }
        }
    }

    /// Starts a task that sends on the bulk lane and waits for room. Nobody else uses that lane meanwhile.
    func sendWaiting(_ life: Life) {
        guard let other = partner(of: life), life.lines[other]?.bulkIsTaken == false,
            let session = life.session,
            let stream = life.lines[other]?.stream
        else { return }
        life.lines[other]?.bulkIsTaken = true
        // No more than passes through the narrowest window before the world is checked.
        let length = length()
        let task = WaitingSender(
            world: self, life: life, other: other, stream: stream,
            count: min(generator.number(1...20), max(1, 400_000 / max(length, 1))),
            length: length)
        let call = life.call("send \(task.count) messages to \(other), waiting", within: .seconds(3_600))
        life.tasks.append(
            Task(executorPreference: loop) { [weak session] in
                await task.run(session)
                life.answered(call, "done")
                task.release()
            })
    }

    /// Sends a few messages, each from a new thread that ends before anything else happens.
    func sendFromAnotherThread(_ life: Life) {
        guard let other = partner(of: life), let line = life.lines[other], let session = life.session else {
            return
        }
        let peer = id(other)
        for _ in 0..<generator.number(1...5) {
            let bytes = ledger.nextMessage(in: line.stream, row: .main, length: length())
            let failure = OtherThread.run { () -> NighError? in
                do throws(NighError) {
                    try session.trySend(bytes, to: peer)
                    return nil
                } catch {
                    return error
                }
            }
            if let failure { return refused(life, other, failure, isInHandler: false) }
            accepted(life, other, line.stream, .main, bytes.count)
        }
    }
}

/// The messages of a task that waits for room. Confined to the world's thread, on whose loop the task runs.
private final class WaitingSender: @unchecked Sendable {
    let world: World
    let life: Life
    let other: Int
    let stream: Int
    let count: Int
    let length: Int

    init(world: World, life: Life, other: Int, stream: Int, count: Int, length: Int) {
        self.world = world
        self.life = life
        self.other = other
        self.stream = stream
        self.count = count
        self.length = length
    }

    private var peer: PeerID { world.id(other) }

    func run(_ session: Session?) async {
        for _ in 0..<count {
            guard let session, life.lines[other]?.stream == stream else { return }
            let bytes = world.ledger.nextMessage(in: stream, row: .bulk, length: length)
            // The message may arrive before this task runs again.
            world.ledger.accept(stream, row: .bulk, length: bytes.count)
            do {
                try await session.send(bytes, to: peer, on: .bulk)
            } catch {
                return world.ledger.withdraw(stream, row: .bulk)
            }
        }
    }

    func release() {
        if life.lines[other]?.stream == stream { life.lines[other]?.bulkIsTaken = false }
    }
}

/// Runs work on a new thread and waits for it. So the work is on another thread, and still happens at a definite point.
enum OtherThread {
    private final class WorkBox: @unchecked Sendable {
        // The new thread reads it. The calling thread writes it only before that thread starts and after it has ended.
        var work: () -> Void
        init(_ work: @escaping () -> Void) { self.work = work }
    }

    static func run<Result>(_ work: () -> Result) -> Result {
        var result: Result?
        withoutActuallyEscaping({ result = work() }) { work in
            let box = WorkBox(work)
            var thread = pthread_t()
            let status = pthread_create(
                &thread, nil,
                { context in
                    if let context { Unmanaged<WorkBox>.fromOpaque(context).takeUnretainedValue().work() }
                    return nil
                }, Unmanaged.passUnretained(box).toOpaque())
            precondition(status == 0, "no thread could be made: error \(status)")
            pthread_join(thread, nil)
            box.work = {}
        }
        guard let result else { preconditionFailure("the thread did nothing") }
        return result
    }
}
