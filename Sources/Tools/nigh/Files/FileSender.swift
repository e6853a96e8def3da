import NighCore
import NighFiles
import NighLoop
import NighMemory
import NighSystem

/// Sends files to one peer: offers them in a conversation, and again in another one whenever that ends too early.
actor FileSender {
    /// The peer to send to.
    enum Target: Sendable {
        case peer(PeerChoice)
        /// The device whose person types a code, or that the person here chooses.
        case offer(CodeOffer)
    }

    /// The settings of `nigh send`.
    struct Plan: Sendable {
        let target: Target
        /// How long nothing may move; nil if the user did not say.
        let giveUp: Duration?
        /// The identity to which the files were offered before; nil if this is the first time.
        let identity: PeerID?
    }

    /// The result of the transfer.
    struct Outcome: Sendable {
        /// The error that ended the transfer, if one did.
        var error: (any Error)?
        var peer: Peer?
        /// The result for each file and folder, in the last conversation.
        var results: [FileResult] = []
        /// How far the last conversation came.
        var progress: FileProgress?
        /// The number of bytes of files that were sent, in all conversations together.
        var sent = 0
        var conversations = 0
        /// How often a conversation lost its link, whether it then continued by itself or not.
        var cuts = 0
        var time = Duration.zero

        /// The number of bytes that the receiver has reported as written.
        var stored: Int { progress?.done ?? 0 }
    }

    nonisolated let thread: ThreadEventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    private let session: CommandSession
    let files: FilesToSend
    let plan: Plan
    let results: Results
    /// The lines of this transfer in the display.
    let display: SendDisplay.TransferLines
    var target: Target
    /// The record of this transfer for `nigh transfers`; nil if none is kept.
    private let record: SavedTransfer?

    var peer: Peer?
    private var transfer: FileTransfer?
    /// Ends the search for the receiver; nil while there is none.
    private var cancelSearch: (() -> Void)?
    private var isInterrupted = false
    /// For how long nothing had moved when this side gave up.
    private var stuckFor: Moment.Span?
    /// The progress of finding a link; nil while there is one.
    var linkRemark: String? = "looking for it"

    var outcome = Outcome()
    var progress: FileProgress?
    /// When the receiver accepted the files for the first time.
    private var begunAt: Moment?
    private var patience: SendPatience
    /// When the receiver last had more of the files, or was found or accepted them for the first time. A conversation
    /// that leads to nothing does not count.
    private var advancedAt: Moment
    var reportedAt: Moment
    var reportedCount = -1

    /// The interval between two looks at the clock.
    private static let clockInterval = Moment.Span.milliseconds(200)
    /// The pause before looking again for a peer whose conversation has ended.
    private static let pauseAfterConversation = Moment.Span.milliseconds(250)

    init(
        _ plan: Plan, _ files: FilesToSend, recordedIn record: SavedTransfer?, over session: CommandSession,
        on thread: ThreadEventLoop, _ results: Results, display: SendDisplay.TransferLines
    ) {
        self.plan = plan
        self.display = display
        target = plan.target
        self.files = files
        self.record = record
        self.session = session
        self.thread = thread
        self.results = results
        patience = SendPatience(plan.giveUp, canBeRepeated: files.canBeRepeated, at: thread.now)
        advancedAt = thread.now
        reportedAt = thread.now
    }

    /// Sends the files. Called once.
    func deliver() async -> Outcome {
        watch()
        do {
            try await sendUntilDone()
        } catch {
            // One that is busy named a time to ask again, and may take the files later.
            if let error = error as? NighError, case .declined = error.cause, !error.isRetryable {
                record?.remove()
            }
            outcome.error = isInterrupted ? interruption : error
        }
        outcome.time = begunAt.map { (LoopThread.now - $0).duration } ?? .zero
        return outcome
    }

    private var interruption: FileFailure {
        // The receiver keeps no bytes of a pipe.
        guard files.canBeRepeated, outcome.stored > 0 else { return FileFailure("interrupted", .cancelled) }
        return FileFailure(
            "interrupted; \(ByteCount(outcome.stored)) were stored; if you send it again, it continues where it stopped",
            .cancelled)
    }

    /// Starts conversations until all is decided, or nothing has moved for too long.
    private func sendUntilDone() async throws {
        while true {
            let peer = try await connect()
            if try await converse(with: peer) { return }
            guard thread.now - advancedAt < patience.untilAccepted else { throw stuck }
            linkRemark = "gone; looking for it"
            try await sleep(Self.pauseAfterConversation)
        }
    }

    private func connect() async throws -> Peer {
        switch target {
        case .peer(let choice): return try await connect(to: choice)
        case .offer(let offer):
            if outcome.conversations == 0 { linkRemark = nil }
            // Once a device has typed the code, only that device may come back, and only within a time limit.
            let isLimited = plan.giveUp != nil || outcome.conversations > 0
            do {
                let receiver = try await searching(
                    atMost: isLimited ? patience.untilAccepted.duration : nil
                ) { try await offer.receiver() }
                switch receiver {
                case .guest(let peer): return peer
                case .chosen(let choice):
                    target = .peer(choice)
                    return try await connect(to: choice)
                }
            } catch is CancellationError {
                guard !isInterrupted else { throw CancellationError() }
                throw outcome.conversations > 0
                    ? stuck : FileFailure("nobody has typed the code in time; --wait sets the time")
            }
        }
    }

    private func connect(to choice: PeerChoice) async throws -> Peer {
        // Waiting longer than the time for which nothing may move is of no use.
        let left = max(patience.untilAccepted.duration - (thread.now - advancedAt).duration, .seconds(1))
        let limits = CommandSession.CallLimits(
            timeLimit: left, retriesAddresses: true, identity: plan.identity)
        return try await searching { [session] in
            try await session.connect(to: choice, for: .send, limits) { error in
                self.thread.execute {
                    self.assumeIsolated { $0.linkRemark = "\(error.cause); trying again" }
                }
            }
        }
    }

    /// Returns the result of a search for the receiver. It is cancelled by a stop request, and after `limit`.
    private func searching<Found: Sendable>(
        atMost limit: Duration? = nil, _ search: @escaping @Sendable () async throws -> Found
    ) async throws -> Found {
        let task = Task(operation: search)
        let timer = limit.map { limit in
            Task {
                try await Task.sleep(for: limit)
                task.cancel()
            }
        }
        defer { timer?.cancel() }
        cancelSearch = task.cancel
        defer { cancelSearch = nil }
        if isInterrupted { task.cancel() }
        return try await task.value
    }

    private func sleep(_ span: Moment.Span) async throws {
        await withCheckedContinuation { continuation in
            thread.schedule(at: thread.now + span) { continuation.resume() }
        }
        if isInterrupted { throw CancellationError() }
    }

    /// Offers the files in one conversation. Returns true if each has a result, and false if the conversation ended
    /// before that.
    private func converse(with peer: Peer) async throws -> Bool {
        outcome.conversations += 1
        if outcome.conversations == 1 { advancedAt = thread.now }
        outcome.peer = peer
        self.peer = peer
        defer { self.peer = nil }
        linkRemark = nil
        progress = nil
        patience.begin(at: thread.now)
        stuckFor = nil
        do {
            let stream = try await peer.openFileStream()
            record?.begin(with: peer)
            nonisolated(unsafe) let tree = files.tree
            let transfer = FileTransfer.begin(tree, on: stream) { [record] in record?.forget() }
            self.transfer = transfer
            defer { self.transfer = nil }
            if isInterrupted { transfer.cancel(because: "interrupted") }
            for await progress in transfer.updates { handle(progress) }
            outcome.sent += progress?.transferred ?? 0
            outcome.results = transfer.results
            record?.noteEnd(done: outcome.stored)
            try await transfer.finish()
            record?.remove()
            return true
        } catch {
            return try isDecided(error, by: peer)
        }
    }

    /// Returns whether each file has a result although there was an error. Throws the reason for which all of them
    /// ended.
    private func isDecided(_ error: NighError, by peer: Peer) throws -> Bool {
        switch error.cause {
        case .unsupported:
            throw FileFailure(
                "\(peer.name) cannot receive files from this version of nigh; update nigh there", .version)
        case .file(let fault):
            if progress?.isDecided == true { return true }
            if stuckFor != nil { throw stuck }
            if fault.reason == .declined || fault.reason == .tooLarge { record?.remove() }
            throw FileFailure.stopped(fault, by: "\(peer.name)", canResume: files.canBeRepeated)
        default:
            if isInterrupted { throw error }
            guard files.canBeRepeated || progress?.transferred ?? 0 == 0 else {
                throw FileFailure("\(error); data from a pipe cannot be sent again")
            }
            reportLink("ended", error)
            return false
        }
    }

    private var stuck: FileFailure {
        FileFailure(
            "nothing has moved for \(stuckFor ?? patience.untilAccepted); --wait sets this time",
            .cancelled)
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
                sender.cancelSearch?()
                sender.transfer?.cancel(because: "interrupted")
            }
        }
    }

    private func handle(_ event: SessionEvent) {
        switch event {
        case .reconnecting(peer, let cause):
            outcome.cuts += 1
            patience.lostLink(at: thread.now)
            linkRemark = "the link is lost; looking for another"
            reportLink("lost", cause)
        case .reconnected(let changed) where changed == peer:
            peer = changed
            patience.foundLink()
            linkRemark = nil
            reportLink("back", nil)
        case .peerChanged(let changed) where changed.id == peer?.id && changed.state == .connected:
            let hasMoved = changed.transport != peer?.transport
            peer = changed
            if hasMoved { reportLink("moved", nil) }
        default: break
        }
    }

    private func handle(_ progress: FileProgress) {
        let before = self.progress
        self.progress = progress
        outcome.progress = progress
        patience.note(progress, at: thread.now)
        if progress.done != before?.done ?? 0 || progress.resumed != before?.resumed ?? 0
            || before?.state.pause != nil
        {
            advancedAt = thread.now
        }
        let isAnswered = progress.state != .waiting && (progress.state != .ended || progress.isBegun)
        if before?.state ?? .waiting == .waiting, isAnswered {
            if begunAt == nil { (begunAt, advancedAt) = (LoopThread.now, thread.now) }
            reportStart(progress)
        }
        if before?.state.pause != progress.state.pause { reportPause(progress) }
        showProgress()
    }

    // MARK: The timer

    private func watch() {
        thread.schedule(at: thread.now + Self.clockInterval) { [weak self] in
            self?.assumeIsolated { sender in
                sender.showProgress()
                sender.giveUpIfStuck()
                if let done = sender.progress?.done { sender.record?.note(done: done) }
                sender.watch()
            }
        }
    }

    private func giveUpIfStuck() {
        guard let transfer, let time = patience.exceeded(at: thread.now) else { return }
        stuckFor = time
        transfer.cancel(because: "nothing has moved for too long")
    }
}

extension FileSender.Target: CustomStringConvertible {
    var description: String {
        switch self {
        case .peer(let choice): "\(choice)"
        case .offer: "the other device"
        }
    }
}

/// The files of one `nigh send`.
///
/// `@unchecked Sendable`: only the transfer that was begun last uses the tree, after the one before it has ended.
final class FilesToSend: @unchecked Sendable {
    fileprivate let tree: SourceTree
    let items: [FileItem]
    /// The paths that the user named.
    let paths: [String]
    /// Files and folders that are not sent, with the reasons.
    let skipped: [SourceTree.Skipped]
    /// The name of the files for a person.
    let label: String

    /// - Parameter label: nil for the names of the files, or their number.
    init(_ tree: SourceTree, at paths: [String], label: String?) {
        self.tree = tree
        self.paths = paths
        self.label = label ?? TransferText.label(tree.items)
        items = tree.items
        skipped = tree.skipped
    }

    /// Whether all of them can be read more than once.
    var canBeRepeated: Bool { items.allSatisfy { $0.size != nil } }

    /// The number of bytes of all; nil if that is unknown.
    var size: Int? {
        items.reduce(0) { sum, item in
            guard let sum, let size = item.size else { return nil }
            return sum + size
        }
    }
}
