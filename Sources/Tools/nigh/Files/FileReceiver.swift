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

    var receptions: [PeerID: Reception] = [:]
    private var receptionCount = 0
    /// The standard output with the file that is received into it, its sender and its name.
    private var output: (file: StandardOutputFile, sender: PeerID, name: String)?
    var outcome = Outcome()
    private var isOver = false
    private var waiting: CheckedContinuation<Void, Never>?

    /// The maximum number of peers that send at once.
    static let mostSenders = 8
    /// The time within which a connected peer has to offer a file.
    static let offerPatience = Moment.Span.seconds(10)

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
    func work() async -> Outcome {
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
    nonisolated func took(_ event: SessionEvent) {
        thread.execute { self.assumeIsolated { $0.handle(event) } }
    }

    /// Ends all transfers after Ctrl-C. Callable from any thread.
    nonisolated func interrupt() {
        thread.execute {
            self.assumeIsolated { mine in
                for reception in mine.receptions.values {
                    guard !reception.talk.isNew else { continue }
                    mine.act(reception.talk.stop(FileStop(.cancelled, "interrupted")), reception)
                    mine.outcome.error = FileFailure("interrupted")
                }
                mine.end()
            }
        }
    }

    private func handle(_ event: SessionEvent) {
        switch event {
        case .invited(let invitation): answer(invitation)
        case .listening(_, let addresses): if !addresses.isEmpty { tellReady(addresses, session.session) }
        case .stateChanged(let peer, let before, let cause):
            guard let reception = receptions[peer.id] else { return }
            switch peer.state {
            case .connected:
                reception.peer = peer
                if before == .reconnecting {
                    note("back", reception, nil)
                } else {
                    reception.since = thread.now
                }
            case .reconnecting: note("lost", reception, cause)
            case .disconnected:
                // Everything that the peer sent has arrived by now.
                while let message = session.session.messages.poll() { receive(message) }
                lose(peer.id, cause)
            case .available, .unavailable:
                if let left = receptions.removeValue(forKey: peer.id) { withdrawQuestion(of: left) }
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
                invitation, words: "files are taken from paired devices only; `nigh pair` pairs them")
        }
        let most = plan.isOnce ? 1 : Self.mostSenders
        if let earlier = receptions.removeValue(forKey: peer.id) { withdrawQuestion(of: earlier) }
        if receptions.count >= most, peer.trust == .paired { makeRoom() }
        guard !isOver, receptions.count < most else {
            return session.decline(
                invitation, words: "busy with another file", retryAfter: .seconds(1))
        }
        receptionCount += 1
        let talk = FileReceiving(mostBytes: plan.mostBytes)
        let reception = Reception(receptionCount, peer, talk, at: thread.now)
        receptions[peer.id] = reception
        session.accept(invitation)
    }

    /// Ends the transfer from a device that is not paired any more.
    private func trustChanged(_ peer: Peer) {
        guard plan.policy == .paired, peer.trust != .paired, let reception = receptions[peer.id] else {
            return
        }
        guard !reception.talk.isNew else {
            receptions[peer.id] = nil
            return session.session.disconnect(peer.id)
        }
        let stop = FileStop(.declined, "the pairing was taken back")
        act(reception.talk.stop(stop), reception)
    }

    private func receive(_ message: Message) {
        guard let reception = receptions[message.peer] else { return }
        act(reception.talk.heard(message.payload), reception)
    }

    func act(_ steps: [FileReceiving.Step], _ reception: Reception) {
        for step in steps {
            do throws(FileFailure) {
                try act(step, reception)
            } catch {
                return stop(reception, error)
            }
        }
    }

    func act(_ step: FileReceiving.Step, _ reception: Reception) throws(FileFailure) {
        switch step {
        case .say(let message):
            // If this fails, the conversation ends, and an event reports that.
            try? session.session.trySend(message.bytes, to: reception.peer.id, .reliable(message.lane))
        case .decide(let offer):
            reception.name = SafeFileName(offer.name)
            if plan.policy == .ask { ask(reception, offer) } else { try prepare(reception, offer) }
        case .resume(let offset):
            try reception.file?.resume(at: offset)
            reception.resumedAt = offset
            reception.meter = TransferMeter(from: offset, size: reception.talk.offer?.size, at: thread.now)
            tellStart(reception)
        case .store(let bytes):
            try reception.file?.append(bytes)
            reception.meter?.reached(reception.talk.position, at: thread.now)
            act(reception.talk.stored(bytes.count), reception)
        case .check: check(reception)
        case .keep:
            reception.path = try reception.file?.keep()
            act(reception.talk.kept(), reception)
        case .over(let ending): finish(reception, ending)
        }
    }

    // MARK: Accepting a file

    private func ask(_ reception: Reception, _ offer: FileOffer) {
        let size = offer.size.map { ByteCount($0).description } ?? "of unknown size"
        let doubt = reception.warning.map { "; \($0.sentence)" } ?? ""
        let question =
            "Take \(offer.name) (\(size)) from \(reception.peer.name) (\(reception.peer.id.short)\(doubt))? [y/n] "
        let number = reception.number
        questions?.ask(.init(number: number, words: question, isPaired: reception.peer.trust == .paired)) {
            isYes in
            self.thread.execute { self.assumeIsolated { $0.answered(isYes, number) } }
        }
    }

    private func answered(_ isYes: Bool, _ number: Int) {
        guard let reception = receptions.values.first(where: { $0.number == number }),
            let offer = reception.talk.offer
        else { return }
        guard isYes else {
            return act(reception.talk.stop(FileStop(.declined, "the person there said no")), reception)
        }
        do throws(FileFailure) {
            try prepare(reception, offer)
        } catch {
            stop(reception, error)
        }
    }

    private func withdrawQuestion(of reception: Reception) {
        questions?.withdraw(reception.number)
        questions?.proceed()
    }

    /// Disconnects one sender to make room for a paired device: the last of those that are not paired and that the
    /// person has not accepted yet.
    private func makeRoom() {
        let undecided = receptions.values.filter { $0.talk.isUndecided && $0.peer.trust != .paired }
        guard plan.policy == .ask, let last = undecided.max(by: { $0.number < $1.number }) else { return }
        guard !last.talk.isNew else {
            receptions[last.peer.id] = nil
            return session.session.disconnect(last.peer.id)
        }
        act(last.talk.stop(FileStop(.cancelled, "a paired device has come, and there was no room")), last)
    }

    private func prepare(_ reception: Reception, _ offer: FileOffer) throws(FileFailure) {
        switch plan.destination {
        case .folder(let folder):
            let name = reception.name ?? SafeFileName(offer.name)
            try open(name, in: folder, for: reception, offer)
        case .file(let folder, let name): try open(name, in: folder, for: reception, offer)
        case .standardOutput:
            if let output, output.sender != reception.peer.id || output.name != offer.name {
                throw FileFailure(
                    "the standard output is another file's already",
                    other: "another file is received there already")
            }
            let file = output?.file ?? StandardOutputFile()
            output = (file, reception.peer.id, offer.name)
            reception.file = file
            take(file, for: reception)
        }
    }

    private func open(
        _ name: SafeFileName, in folder: ReceivingFolder, for reception: Reception, _ offer: FileOffer
    ) throws(FileFailure) {
        let file = try folder.part(
            name, size: offer.size, from: reception.peer.id, replacing: plan.replaces)
        reception.file = file
        Task { await readBack(file, in: folder, for: reception, offer) }
    }

    func stop(_ reception: Reception, _ error: FileFailure) {
        reception.error = error
        act(reception.talk.stop(error.stop), reception)
    }

    // MARK: The end of a transfer

    private func finish(_ reception: Reception, _ ending: FileReceiving.Ending) {
        receptions[reception.peer.id] = nil
        questions?.withdraw(reception.number)
        defer { questions?.proceed() }
        if ending != .received { reception.discardIfUseless() }
        switch ending {
        case .received:
            outcome.received += 1
            outcome.bytes += reception.talk.position
            tellFile(reception)
            if plan.isOnce { end() }
            // The sender leaves once it has received `done`.
            return
        case .stopped(let stop):
            if stop.reason == .changed || stop.reason == .damaged { reception.file?.discard() }
            tellFailure(
                reception,
                FileFailure.stopped(
                    stop, by: reception.peer.name.description, goesOn: false))
        case .refused(let stop):
            if stop.reason == .damaged { reception.file?.discard() }
            let error = reception.error ?? FileFailure(stop.words, stop.reason)
            tellFailure(reception, error)
            let isOurs = stop.reason == .noSpace || stop.reason == .fileTrouble
            if plan.isOnce, isOurs {
                outcome.error = error
                end()
            }
        }
        session.session.disconnect(reception.peer.id)
    }

    /// Reports a transfer whose conversation ended before the file was complete.
    private func lose(_ peer: PeerID, _ cause: NighError?) {
        guard let reception = receptions.removeValue(forKey: peer), !reception.talk.isNew else { return }
        questions?.withdraw(reception.number)
        defer { questions?.proceed() }
        reception.discardIfUseless()
        let words = cause.map { "\($0.cause)" } ?? "the conversation ended"
        tellFailure(reception, FileFailure("\(reception.peer.name) is gone: \(words)"))
    }

    // MARK: The timer

    private static let clockInterval = Moment.Span.milliseconds(200)

    private func watch() {
        thread.schedule(at: thread.now + Self.clockInterval) { [weak self] in
            self?.assumeIsolated { mine in
                let now = mine.thread.now
                for reception in mine.receptions.values { _ = reception.file?.isUntouched }
                for reception in mine.receptions.values
                where reception.talk.isNew && now - reception.since > Self.offerPatience {
                    mine.receptions[reception.peer.id] = nil
                    mine.session.session.disconnect(reception.peer.id)
                }
                mine.showProgress(at: now)
                mine.watch()
            }
        }
    }
}
