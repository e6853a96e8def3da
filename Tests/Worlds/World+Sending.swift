import NighCore
import NighTestKit
import NighMemory

// Messages that users send.

extension World {
    private func length() -> Int {
        switch generator.number(0...99) {
        case 0..<45: generator.number(0...64)
        case 45..<75: generator.number(65...1_500)
        case 75..<92: generator.number(1_501...20_000)
        case 92..<98: generator.number(20_001...70_000)
        default: generator.number(70_001...NumberedMessage.longest)
        }
    }

    private func partner(of run: SessionRun) -> Int? { generator.pick(run.streams.keys.sorted()) }

    /// Sends messages to one peer: `times` of them, or fewer if the session refuses one.
    func sendMessages(_ run: SessionRun, times: Int, to other: Int? = nil, isInHandler: Bool = false) {
        guard let other = other ?? partner(of: run) else { return }
        for _ in 0..<times {
            guard send(run, to: other, length: length(), isInHandler: isInHandler) else { return }
        }
    }

    /// Sends messages of one size until the session refuses one, or enough have been sent.
    func sendBurst(_ run: SessionRun) {
        guard let other = partner(of: run) else { return }
        let length = generator.chance(60) ? generator.number(0...300) : length()
        let lane: Lane = generator.chance(50) ? .main : .bulk
        let most = length > 20_000 ? 12 : 150
        for _ in 0..<generator.number(10...most) {
            guard send(run, to: other, length: length, lane: lane) else { return }
        }
    }

    /// Sends one message. Returns false if the session refuses it.
    @discardableResult
    func send(
        _ run: SessionRun, to other: Int, length: Int, lane: Lane? = nil, isInHandler: Bool = false
    ) -> Bool {
        guard let stream = run.streams[other], let session = run.session else { return false }
        var lane = lane ?? (generator.chance(70) ? .main : .bulk)
        if stream.bulkIsInUse { lane = .main }
        let row: MessageLedger.Row = lane == .main ? .main : .bulk
        let bytes = ledger.nextMessage(in: stream.number, row: row, length: length)
        do throws(NighError) {
            if generator.chance(50) {
                try session.trySend(bytes, to: id(other), .reliable(lane))
            } else {
                try session.trySend(ByteSlice(bytes), to: id(other), .reliable(lane))
            }
            accepted(run, other, stream.number, row, bytes.count)
            return true
        } catch {
            refused(run, other, error, isInHandler: isInHandler)
            return false
        }
    }

    private func accepted(
        _ run: SessionRun, _ other: Int, _ stream: Int, _ row: MessageLedger.Row, _ count: Int
    ) {
        run.note(
            .sent, other, count << 2 | row.rawValue,
            "sends \(count) bytes to \(other), \(row), stream \(stream)")
        ledger.accept(stream, row: row, length: count)
    }

    private func refused(_ run: SessionRun, _ other: Int, _ error: NighError, isInHandler: Bool) {
        switch error.cause {
        case .bufferFull: counts.refusedSends += 1
        case .left, .closed: break
        case .notConnected where isInHandler: break
        default: run.report(.calls, "\(other) was reported as connected, and a send fails: \(error)")
        }
    }

    /// Sends unreliable messages: a few at once, and then perhaps more for a while, as a game sends positions.
    func sendUnreliable(_ run: SessionRun) {
        sendUnreliable(run, again: generator.chance(50) ? generator.number(10...80) : 0)
    }

    private func sendUnreliable(_ run: SessionRun, again count: Int) {
        guard let other = partner(of: run), let stream = run.streams[other], let session = run.session else {
            return
        }
        for _ in 0..<generator.number(1...10) {
            let bytes = ledger.nextMessage(
                in: stream.number, row: .unreliable, length: generator.number(16...4_000))
            do throws(NighError) {
                try session.trySend(bytes, to: id(other), .unreliable)
                ledger.accept(stream.number, row: .unreliable, length: bytes.count)
            } catch {
                return refused(run, other, error, isInHandler: false)
            }
        }
        guard count > 0 else { return }
        schedule(after: generator.milliseconds(10...40)) { [self] in
            if !run.isClosing { sendUnreliable(run, again: count - 1) }
        }
    }

    /// Whether a user's session takes messages of kinds.
    func acceptsKinds(_ index: Int) -> Bool { (seed &+ UInt64(index)) % 7 != 0 }

    /// Whether a user's session may send unreliable messages beside its links.
    func hasDatagrams(_ index: Int) -> Bool { (seed &+ UInt64(index)) % 3 != 0 }

    /// Adds what happens to packets beside a link to what happens to its bytes.
    func addPacketFaults(to plan: inout FaultPlan) {
        guard !isQuiet, seed % 4 == 1 else { return }
        plan.loss = .init(1, outOf: 10)
        plan.duplicate = .init(1, outOf: 10)
        plan.reorder = .init(1, outOf: 10)
        plan.packetLimit = 1_300
        if seed % 8 == 5 { plan.rebind = .seconds(3) }
    }

    /// Returns the kind that a message of `length` bytes has: any but that of groups.
    static func kind(of length: Int) -> MessageKind? { MessageKind(rawValue: UInt8(2 + length % 254)) }

    /// Sends messages of kinds, as layers above a session do.
    func sendKinds(_ run: SessionRun) {
        guard let other = partner(of: run), let stream = run.streams[other], let session = run.session else {
            return
        }
        let peer = id(other)
        for _ in 0..<generator.number(1...6) {
            let payload = ByteSlice(ledger.nextMessage(in: stream.number, row: .kinds, length: length()))
            let kind = Self.kind(of: payload.count)
            let send = { Result { () throws(NighError) in try session.trySend(payload, of: kind, to: peer) } }
            do throws(NighError) {
                try (generator.chance(30) ? OtherThread.run(send) : send()).get()
                accepted(run, other, stream.number, .kinds, payload.count)
            } catch {
                if case .unsupported = error.cause, !acceptsKinds(other) { return }
                return refused(run, other, error, isInHandler: false)
            }
        }
    }

    /// Starts a task that sends on the bulk lane and waits for room. Nobody else uses that lane meanwhile.
    func sendWaiting(_ run: SessionRun) {
        guard let other = partner(of: run), run.streams[other]?.bulkIsInUse == false,
            let session = run.session,
            let stream = run.streams[other]?.number
        else { return }
        run.streams[other]?.bulkIsInUse = true
        // No more than passes through the narrowest window before the world is checked.
        let length = length()
        let task = WaitingSender(
            world: self, run: run, other: other, stream: stream,
            count: min(generator.number(1...20), max(1, 400_000 / max(length, 1))),
            length: length)
        let call = run.call("send \(task.count) messages to \(other), waiting", within: .seconds(3_600))
        run.tasks.append(
            Task(executorPreference: loop) { [weak session] in
                await task.sendAll(on: session)
                run.recordAnswer(to: call, "done")
                task.release()
            })
    }

    /// Sends a few messages, each from a new thread that ends before anything else happens.
    func sendFromAnotherThread(_ run: SessionRun) {
        guard let other = partner(of: run), let stream = run.streams[other], let session = run.session else {
            return
        }
        let peer = id(other)
        for _ in 0..<generator.number(1...5) {
            let bytes = ledger.nextMessage(in: stream.number, row: .main, length: length())
            do throws(NighError) {
                try OtherThread.run {
                    Result { () throws(NighError) in try session.trySend(bytes, to: peer) }
                }.get()
                accepted(run, other, stream.number, .main, bytes.count)
            } catch {
                return refused(run, other, error, isInHandler: false)
            }
        }
    }
}

/// The messages of a task that waits for room. Confined to the world's thread, on whose loop the task runs.
private final class WaitingSender: @unchecked Sendable {
    let world: World
    let run: SessionRun
    let other: Int
    let stream: Int
    let count: Int
    let length: Int

    init(world: World, run: SessionRun, other: Int, stream: Int, count: Int, length: Int) {
        self.world = world
        self.run = run
        self.other = other
        self.stream = stream
        self.count = count
        self.length = length
    }

    private var peer: PeerID { world.id(other) }

    func sendAll(on session: Session?) async {
        for _ in 0..<count {
            guard let session, run.streams[other]?.number == stream else { return }
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
        if run.streams[other]?.number == stream { run.streams[other]?.bulkIsInUse = false }
    }
}
