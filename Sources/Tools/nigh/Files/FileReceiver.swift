import JSONText
import NighLoop
import NighCore
import NighMemory

/// Receives files from several senders at once.
///
/// It runs on a thread of its own, where writing and hashing may block. It reads a message from the session only when
/// the one before it is written, so a slow disk slows the senders down.
actor FileReceiver {
    /// The settings of `nigh receive`.
    struct Plan: Sendable {
        enum Destination: Sendable {
            case folder(ReceivingFolder)
            /// One file, under the name that the user chose.
            case file(ReceivingFolder, SafeFileName)
            case standardOutput

            var isForOne: Bool { if case .folder = self { false } else { true } }
        }

        let destination: Destination
        let policy: AcceptPolicy
        let mostBytes: Int
        /// Whether the command ends after the first received file.
        let isOnce: Bool
        let replaces: Bool
    }

    /// What the summary reports.
    struct Outcome: Sendable {
        var received = 0
        var failed = 0
        var bytes = 0
        /// The failure that ended the command, if one did.
        var error: FileFailure?
    }

    static let ready = Results.Kind("ready", plural: "ready")
    static let start = Results.Kind("start", plural: "starts")
    static let link = Results.Kind("link", plural: "links")
    static let progress = Results.Kind("progress", plural: "progress")
    static let file = Results.Kind("file", plural: "files")
    static let failure = Results.Kind("failure", plural: "failures")

    nonisolated let thread: ThreadEventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    let plan: Plan
    let results: Results
    private let session: CommandSession
    /// Nil if the person is not asked.
    private let questions: FileQuestions?

    var incomingFiles: [PeerID: IncomingFile] = [:]
    private var incomingCount = 0
    /// The standard output with the file that is received into it, its sender and its name.
    private var output: (file: StandardOutputFile, sender: PeerID, name: String)?
    var outcome = Outcome()
    private var isOver = false
    private var waiting: CheckedContinuation<Void, Never>?

    /// The maximum number of peers that send at once.
    static let mostSenders = 8
    /// The time within which a connected peer has to offer a file.
    static let offerTimeout = Moment.Span.seconds(10)

    init(
        _ plan: Plan, over session: CommandSession, on thread: ThreadEventLoop, _ results: Results,
        asking questions: FileQuestions?
    ) {
        self.plan = plan
        self.session = session
        self.thread = thread
        self.results = results
        self.questions = questions
    }

    /// Receives until it is interrupted, or has received the one file that it waits for. Called once.
    func run() async -> Outcome {
        let receiving = Task {
            while let message = await session.session.messages.next() { receive(message) }
        }
        watch()
        await withCheckedContinuation { continuation in
            if isOver { return continuation.resume() }
            waiting = continuation
        }
        questions?.stop()
        receiving.cancel()
        return outcome
    }

    private func end() {
        guard !isOver else { return }
        isOver = true
        waiting?.resume()
        waiting = nil
    }

    // MARK: Events

    /// Passes on an event of the session. Called on its loop.
    nonisolated func enqueue(_ event: SessionEvent) {
        thread.execute { self.assumeIsolated { $0.handle(event) } }
    }

    /// Ends all transfers after Ctrl-C. Callable from any thread.
    nonisolated func interrupt() {
        thread.execute {
            self.assumeIsolated { receiver in
                for incoming in receiver.incomingFiles.values {
                    guard !incoming.machine.isNew else { continue }
                    receiver.act(incoming.machine.stop(FileStop(.cancelled, "interrupted")), incoming)
                    receiver.outcome.error = FileFailure("interrupted")
                }
                receiver.end()
            }
        }
    }

    private func handle(_ event: SessionEvent) {
        switch event {
        case .invited(let invitation): answer(invitation)
        case .listening(_, let addresses): if !addresses.isEmpty { reportReady(addresses, session.session) }
        case .stateChanged(let peer, let before, let cause):
            guard let incoming = incomingFiles[peer.id] else { return }
            switch peer.state {
            case .connected:
                incoming.peer = peer
                if before == .reconnecting {
                    reportLink("back", incoming, nil)
                } else {
                    incoming.since = thread.now
                }
            case .reconnecting: reportLink("lost", incoming, cause)
            case .disconnected:
                // Everything that the peer sent has arrived by now.
                while let message = session.session.messages.poll() { receive(message) }
                lose(peer.id, cause)
            case .available, .unavailable:
                if let left = incomingFiles.removeValue(forKey: peer.id) { withdrawQuestion(of: left) }
            case .connecting: break
            }
        case .peerChanged(let peer): trustChanged(peer)
        default: break
        }
    }

    private func answer(_ invitation: Invitation) {
        let (peer, session) = (invitation.peer, session.session)
        guard plan.policy != .paired || peer.trust == .paired else {
            return session.decline(
                invitation, reason: "files are accepted from paired devices only; run `nigh pair` first")
        }
        let most = plan.isOnce ? 1 : Self.mostSenders
        if let earlier = incomingFiles.removeValue(forKey: peer.id) { withdrawQuestion(of: earlier) }
        if incomingFiles.count >= most, peer.trust == .paired { makeRoom() }
        guard !isOver, incomingFiles.count < most else {
            return session.decline(
                invitation, reason: "busy with another file", retryAfter: .seconds(1))
        }
        incomingCount += 1
        let machine = FileReceiveMachine(mostBytes: plan.mostBytes)
        let incoming = IncomingFile(incomingCount, peer, machine, at: thread.now)
        incomingFiles[peer.id] = incoming
        session.accept(invitation)
    }

    /// Ends the transfer from a device that is not paired any more.
    private func trustChanged(_ peer: Peer) {
        guard plan.policy == .paired, peer.trust != .paired, let incoming = incomingFiles[peer.id] else {
            return
        }
        guard !incoming.machine.isNew else {
            incomingFiles[peer.id] = nil
            return session.session.disconnect(peer.id)
        }
        let stop = FileStop(.declined, "the pairing was removed")
        act(incoming.machine.stop(stop), incoming)
    }

    private func receive(_ message: Message) {
        guard let incoming = incomingFiles[message.peer] else { return }
        act(incoming.machine.receive(message.payload), incoming)
    }

    func act(_ steps: [FileReceiveMachine.Step], _ incoming: IncomingFile) {
        for step in steps {
            do throws(FileFailure) {
                try act(step, incoming)
            } catch {
                return stop(incoming, error)
            }
        }
    }

    func act(_ step: FileReceiveMachine.Step, _ incoming: IncomingFile) throws(FileFailure) {
        switch step {
        case .send(let message):
            // If this fails, the conversation ends, and an event reports that.
            try? session.session.trySend(message.bytes, to: incoming.peer.id, .reliable(message.lane))
        case .decide(let offer):
            incoming.name = SafeFileName(offer.name)
            if plan.policy == .ask { ask(incoming, offer) } else { try prepare(incoming, offer) }
        case .resume(let offset):
            try incoming.file?.resume(at: offset)
            incoming.resumedAt = offset
            incoming.meter = TransferMeter(from: offset, size: incoming.machine.offer?.size, at: thread.now)
            reportStart(incoming)
        case .store(let bytes):
            try incoming.file?.append(bytes)
            incoming.meter?.reached(incoming.machine.position, at: thread.now)
            act(incoming.machine.stored(bytes.count), incoming)
        case .check: check(incoming)
        case .keep:
            incoming.path = try incoming.file?.keep()
            act(incoming.machine.kept(), incoming)
        case .over(let ending): finish(incoming, ending)
        }
    }

    // MARK: Accepting a file

    private func ask(_ incoming: IncomingFile, _ offer: FileOffer) {
        let size = offer.size.map { ByteCount($0).description } ?? "of unknown size"
        let doubt = incoming.warning.map { "; \($0.sentence)" } ?? ""
        let question =
            "Accept \(offer.name) (\(size)) from \(incoming.peer.name) (\(incoming.peer.id.short)\(doubt))? [y/n] "
        let number = incoming.number
        questions?.ask(.init(number: number, text: question, isPaired: incoming.peer.trust == .paired)) {
            isYes in
            self.thread.execute { self.assumeIsolated { $0.answered(isYes, number) } }
        }
    }

    private func answered(_ isYes: Bool, _ number: Int) {
        guard let incoming = incomingFiles.values.first(where: { $0.number == number }),
            let offer = incoming.machine.offer
        else { return }
        guard isYes else {
            return act(
                incoming.machine.stop(FileStop(.declined, "the receiver's user declined it")), incoming)
        }
        do throws(FileFailure) {
            try prepare(incoming, offer)
        } catch {
            stop(incoming, error)
        }
    }

    private func withdrawQuestion(of incoming: IncomingFile) {
        questions?.withdraw(incoming.number)
        questions?.proceed()
    }

    /// Disconnects one sender to make room for a paired device: the last of those that are not paired and that the
    /// person has not accepted yet.
    private func makeRoom() {
        let undecided = incomingFiles.values.filter { $0.machine.isUndecided && $0.peer.trust != .paired }
        guard plan.policy == .ask, let last = undecided.max(by: { $0.number < $1.number }) else { return }
        guard !last.machine.isNew else {
            incomingFiles[last.peer.id] = nil
            return session.session.disconnect(last.peer.id)
        }
        act(last.machine.stop(FileStop(.cancelled, "a paired device took its place")), last)
    }

    private func prepare(_ incoming: IncomingFile, _ offer: FileOffer) throws(FileFailure) {
        switch plan.destination {
        case .folder(let folder):
            let name = incoming.name ?? SafeFileName(offer.name)
            try open(name, in: folder, for: incoming, offer)
        case .file(let folder, let name): try open(name, in: folder, for: incoming, offer)
        case .standardOutput:
            if let output, output.sender != incoming.peer.id || output.name != offer.name {
                throw FileFailure(
                    "the standard output is in use for another file",
                    other: "another file is being received there")
            }
            let file = output?.file ?? StandardOutputFile()
            output = (file, incoming.peer.id, offer.name)
            incoming.file = file
            accept(file, for: incoming)
        }
    }

    private func open(
        _ name: SafeFileName, in folder: ReceivingFolder, for incoming: IncomingFile, _ offer: FileOffer
    ) throws(FileFailure) {
        let file = try folder.part(
            name, size: offer.size, from: incoming.peer.id, replacing: plan.replaces)
        incoming.file = file
        Task { await readBack(file, in: folder, for: incoming, offer) }
    }

    func stop(_ incoming: IncomingFile, _ error: FileFailure) {
        incoming.error = error
        act(incoming.machine.stop(error.stop), incoming)
    }

    // MARK: The end of a transfer

    private func finish(_ incoming: IncomingFile, _ ending: FileReceiveMachine.Ending) {
        incomingFiles[incoming.peer.id] = nil
        questions?.withdraw(incoming.number)
        defer { questions?.proceed() }
        if ending != .received { incoming.discardIfUseless() }
        switch ending {
        case .received:
            outcome.received += 1
            outcome.bytes += incoming.machine.position
            reportFile(incoming)
            if plan.isOnce { end() }
            // The sender leaves once it has received `done`.
            return
        case .stopped(let stop):
            if stop.reason == .changed || stop.reason == .damaged { incoming.file?.discard() }
            reportFailure(
                incoming,
                FileFailure.stopped(
                    stop, by: incoming.peer.name.description, canResume: false))
        case .stoppedHere(let stop):
            if stop.reason == .damaged { incoming.file?.discard() }
            let error = incoming.error ?? FileFailure(stop.explanation, stop.reason)
            reportFailure(incoming, error)
            let isOurs = stop.reason == .noSpace || stop.reason == .fileTrouble
            if plan.isOnce, isOurs {
                outcome.error = error
                end()
            }
        }
        session.session.disconnect(incoming.peer.id)
    }

    /// Reports a transfer whose conversation ended before the file was complete.
    private func lose(_ peer: PeerID, _ cause: NighError?) {
        guard let incoming = incomingFiles.removeValue(forKey: peer), !incoming.machine.isNew else { return }
        questions?.withdraw(incoming.number)
        defer { questions?.proceed() }
        incoming.discardIfUseless()
        let reason = cause.map { "\($0.cause)" } ?? "the conversation ended"
        reportFailure(incoming, FileFailure("\(incoming.peer.name) is gone: \(reason)"))
    }

    // MARK: The timer

    private static let clockInterval = Moment.Span.milliseconds(200)

    private func watch() {
        thread.schedule(at: thread.now + Self.clockInterval) { [weak self] in
            self?.assumeIsolated { receiver in
                let now = receiver.thread.now
                for incoming in receiver.incomingFiles.values { _ = incoming.file?.isUntouched }
                for incoming in receiver.incomingFiles.values
                where incoming.machine.isNew && now - incoming.since > Self.offerTimeout {
                    receiver.incomingFiles[incoming.peer.id] = nil
                    receiver.session.session.disconnect(incoming.peer.id)
                }
                receiver.showProgress(at: now)
                receiver.watch()
            }
        }
    }
}
