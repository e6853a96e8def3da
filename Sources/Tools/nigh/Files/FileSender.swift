import NighLoop
import NighCore
import NighMemory

/// Sends one file to one peer, in as many conversations as that takes.
///
/// It runs on a thread of its own, where reading and hashing may block. A pipe is read on another thread, because its
/// data may never come. The session's loop only passes events to it. It is never ahead of the receiver by more than the
/// session's buffers.
actor FileSender {
    /// The settings of `nigh send`.
    struct Plan: Sendable {
        let choice: PeerChoice
        let giveUp: Duration
    }

    /// The result of the transfer.
    struct Outcome: Sendable {
        /// The error that ended the transfer, if one did.
        var error: (any Error)?
        var peer: Peer?
        var hash: [UInt8]?
        /// The number of bytes that the receiver has reported as written.
        var stored = 0
        /// The number of bytes that the receiver had when the first conversation began.
        var resumedAt = 0
        /// The number of bytes that were given to the session, in all conversations together.
        var sent = 0
        /// The number of conversations.
        var conversations = 0
        /// How often a conversation lost its link, whether it then continued by itself or not.
        var cuts = 0
        var time = Duration.zero
    }

    private enum Ending {
        case over(FileSendMachine.Ending)
        /// The conversation ended before the file was complete.
        case lost(NighError?)
    }

    static let start = Results.Kind("start", plural: "starts")
    static let link = Results.Kind("link", plural: "links")
    static let progress = Results.Kind("progress", plural: "progress")

    nonisolated let thread: ThreadEventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    private let session: CommandSession
    let file: SentFile
    let plan: Plan
    let results: Results
    private let pipes = ThreadEventLoop()

    private var transfer: FileSendMachine
    var peer: Peer?
    /// The number of the current conversation. Work that began in an earlier one stops when it sees a new number.
    private var conversation = 0
    private var ending: Ending?
    private var waiting: CheckedContinuation<Ending, Never>?
    private var connecting: Task<Peer, any Error>?
    private var isInterrupted = false
    var remark: String? = "looking for it"

    var outcome = Outcome()
    /// When the first byte could be sent.
    private var begunAt: Moment?
    private var advancedAt: Moment
    var meter: TransferMeter
    var reportedAt: Moment
    var reportedCount = -1

    /// The interval between two looks at the clock.
    private static let clockInterval = Moment.Span.milliseconds(200)
    /// The pause before looking again for a peer whose conversation has ended.
    private static let pauseAfterConversation = Moment.Span.milliseconds(250)

    init(
        _ plan: Plan, _ file: SentFile, over session: CommandSession, on thread: ThreadEventLoop,
        _ results: Results
    ) {
        self.plan = plan
        self.file = file
        self.session = session
        self.thread = thread
        self.results = results
        transfer = FileSendMachine(FileOffer(name: file.name, size: file.size))
        advancedAt = thread.now
        reportedAt = advancedAt
        meter = TransferMeter(from: 0, size: file.size, at: advancedAt)
    }

    /// Sends the file. Called once.
    func deliver() async -> Outcome {
        let receiving = Task { await receiveMessages() }
        watch()
        do {
            try await sendUntilDone()
        } catch {
            outcome.error = isInterrupted ? interruption : error
        }
        receiving.cancel()
        outcome.time = begunAt.map { (LoopThread.now - $0).duration } ?? .zero
        return outcome
    }

    private var interruption: FileFailure {
        // The receiver keeps nothing of what comes from a pipe.
        guard file.isSeekable, outcome.stored > 0 else { return FileFailure("interrupted", .cancelled) }
        return FileFailure(
            "interrupted; \(ByteCount(outcome.stored)) were stored; if you send it again, it continues where it stopped",
            .cancelled)
    }

    /// Starts conversations until the file is complete, or nothing has moved for too long.
    private func sendUntilDone() async throws {
        while true {
            let peer = try await connect()
            switch await converse(with: peer) {
            case .over(.delivered): return
            case .over(.stopped(let stop)):
                throw FileFailure.stopped(stop, by: peer.name.description, canResume: file.isSeekable)
            case .over(.stoppedHere(let stop)):
                throw outcome.error ?? FileFailure(stop.explanation, stop.reason)
            case .lost(let error):
                guard file.restart() else {
                    throw FileFailure(
                        "\(error.map(\.description) ?? "the conversation ended"); "
                            + "data from a pipe cannot be sent again")
                }
                reportLink("ended", error)
                remark = "gone; looking for it"
            }
            try await sleep(Self.pauseAfterConversation)
        }
    }

    private var isTooLate: Bool { thread.now - advancedAt >= Moment.Span(plan.giveUp) }

    private func connect() async throws -> Peer {
        // Waiting longer than the time for which nothing may move is of no use.
        let left = max(Moment.Span(plan.giveUp).duration - (thread.now - advancedAt).duration, .seconds(1))
        let connecting = Task { [session, choice = plan.choice] in
            try await session.connect(to: choice, for: .send, .init(timeLimit: left, retriesAddresses: true))
            {
                error in
                self.thread.execute {
                    self.assumeIsolated { $0.remark = "\(error.cause); trying again" }
                }
            }
        }
        self.connecting = connecting
        defer { self.connecting = nil }
        if isInterrupted { connecting.cancel() }
        return try await connecting.value
    }

    private func sleep(_ span: Moment.Span) async throws {
        await withCheckedContinuation { continuation in
            thread.schedule(at: thread.now + span) { continuation.resume() }
        }
        if isInterrupted { throw CancellationError() }
    }

    private func converse(with peer: Peer) async -> Ending {
        conversation += 1
        outcome.conversations += 1
        outcome.peer = peer
        self.peer = peer
        ending = nil
        remark = "waiting for its answer"
        advancedAt = thread.now
        transfer = FileSendMachine(FileOffer(name: file.name, size: file.size))
        act(transfer.begin())
        if isInterrupted { act(transfer.stop(FileStop(.cancelled, "interrupted"))) }
        let ended = await withCheckedContinuation { (continuation: CheckedContinuation<Ending, Never>) in
            if let ending { return continuation.resume(returning: ending) }
            waiting = continuation
        }
        self.peer = nil
        return ended
    }

    private func end(_ ending: Ending) {
        guard self.ending == nil else { return }
        self.ending = ending
        waiting?.resume(returning: ending)
        waiting = nil
    }

    // MARK: Events

    /// Passes on an event of the session. Called on its loop.
    nonisolated func enqueue(_ event: SessionEvent) {
        thread.execute { self.assumeIsolated { $0.handle(event) } }
    }

    /// Ends the transfer after Ctrl-C. Callable from any thread.
    nonisolated func interrupt() {
        thread.execute {
            self.assumeIsolated { sender in
                sender.isInterrupted = true
                sender.connecting?.cancel()
                sender.act(sender.transfer.stop(FileStop(.cancelled, "interrupted")))
            }
        }
    }

    private func handle(_ event: SessionEvent) {
        guard case .stateChanged(let changed, let before, let cause) = event, changed.id == peer?.id else {
            return
        }
        switch changed.state {
        case .reconnecting:
            outcome.cuts += 1
            remark = "the link is lost; looking for another"
            reportLink("lost", cause)
        case .connected where before == .reconnecting:
            peer = changed
            remark = nil
            reportLink("back", nil)
        case .disconnected:
            // Everything that the peer sent has arrived by now.
            while let message = session.session.messages.poll() { receive(message) }
            end(.lost(cause))
        default: break
        }
    }

    private func receiveMessages() async {
        while let message = await session.session.messages.next() { receive(message) }
    }

    private func receive(_ message: Message) {
        guard message.peer == peer?.id else { return }
        act(transfer.receive(message.payload))
        advancedAt = thread.now
    }

    private func act(_ steps: [FileSendMachine.Step]) {
        for step in steps {
            switch step {
            case .send(let message): send(message)
            case .compare(let offset, let hash):
                remark = "comparing what is there"
                Task { await compare(offset, hash, in: conversation) }
            case .stream(let offset): beginStreaming(at: offset)
            case .stored(let count):
                outcome.stored = count
                meter.reached(count, at: thread.now)
            case .over(let ending): end(.over(ending))
            }
        }
    }

    private func send(_ message: FileMessage) {
        guard let peer else { return }
        // If this fails, the conversation ends, and an event reports that.
        try? session.session.trySend(message.bytes, to: peer.id, .reliable(message.lane))
    }

    // MARK: The file

    private func compare(_ offset: Int, _ hash: [UInt8], in number: Int) async {
        guard file.isSeekable, file.restart() else { return act(transfer.compared(isSame: false)) }
        do throws(FileFailure) {
            while try file.skip(towards: offset) {
                advancedAt = thread.now
                await Task.yield()
                guard number == conversation, ending == nil else { return }
            }
        } catch {
            return fail(error)
        }
        act(transfer.compared(isSame: file.position == offset && file.hash == hash))
    }

    private func beginStreaming(at offset: Int) {
        guard file.position == offset || offset == 0 && file.restart() else {
            return fail(
                FileFailure("\(file.label) cannot be read again from its beginning", .fileTrouble))
        }
        remark = nil
        outcome.stored = offset
        if outcome.conversations == 1 { outcome.resumedAt = offset }
        begunAt = begunAt ?? LoopThread.now
        meter = TransferMeter(from: offset, size: file.size, at: thread.now)
        reportStart(at: offset)
        Task { await stream(in: conversation) }
    }

    private func stream(in number: Int) async {
        guard let id = peer?.id else { return }
        do {
            while let piece = try await nextPiece() {
                guard transfer.isStreaming, number == conversation else { return }
                transfer.sent(piece.count - 1)
                outcome.sent += piece.count - 1
                try await session.session.send(piece, to: id, on: .bulk)
            }
            guard transfer.isStreaming, number == conversation else { return }
            if let change = file.change() { throw change }
            let hash = file.hash
            outcome.hash = hash
            for case .send(let message) in transfer.reachedEnd(hash: hash) {
                try await session.session.send(message.bytes, to: id, on: message.lane)
            }
        } catch let failure as FileFailure {
            fail(failure)
        } catch {
            // The conversation has ended, and an event reports that.
        }
    }

    /// Returns the next bytes of the file. Reads a file on this thread, and a pipe on another one, because that may
    /// take long.
    private func nextPiece() async throws -> ByteSlice? {
        let timeout = plan.giveUp
        guard !file.isSeekable else { return try file.next(within: timeout) }
        return try await withCheckedThrowingContinuation { continuation in
            pipes.execute { [file] in
                continuation.resume(with: Result { try file.next(within: timeout) })
            }
        }
    }

    private func fail(_ failure: FileFailure) {
        outcome.error = failure
        act(transfer.stop(failure.stop))
    }

    // MARK: The timer

    private func watch() {
        thread.schedule(at: thread.now + Self.clockInterval) { [weak self] in
            self?.assumeIsolated { sender in
                sender.showProgress()
                sender.giveUpIfStuck()
                sender.watch()
            }
        }
    }

    private func giveUpIfStuck() {
        // A program that writes into a pipe may take any time.
        guard isTooLate, peer != nil, ending == nil, file.isSeekable else { return }
        fail(
            FileFailure(
                "nothing has moved for \(Moment.Span(plan.giveUp)); --give-up sets this time",
                .cancelled, other: "nothing has moved for too long"))
    }
}
