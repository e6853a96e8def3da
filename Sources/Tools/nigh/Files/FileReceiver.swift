import NighCore
import NighFiles
import NighLoop
import NighMemory

/// Decides about the files that peers offer, and follows their transfers. The transfers write and hash on threads of
/// their own.
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
        /// Whether the command ends after the first transfer.
        let isOnce: Bool
        let replaces: Bool
    }

    /// What the summary reports.
    struct Outcome: Sendable {
        /// Files, without folders.
        var received = 0
        /// Files and folders that did not arrive, and offers that nothing came of.
        var failed = 0
        var bytes = 0
        /// Whether a transfer has come in which everything arrived.
        var hasWholeTransfer = false
        /// The failure that ended the command, if one did.
        var error: FileFailure?
    }

    nonisolated let thread: ThreadEventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    let plan: Plan
    let results: Results
    private let session: CommandSession
    private let offers: IncomingOffers
    /// Nil if the person is not asked.
    private let questions: FileQuestions?
    /// The standard output. One transfer at a time uses it, on its thread.
    nonisolated(unsafe) private let output = StandardOutput()

    /// The transfers of connected peers, one of each.
    var transfers: [PeerID: IncomingTransfer] = [:]
    /// When the transfers of peers ended that have not left yet.
    private var leaving: [PeerID: Moment] = [:]
    private var transferCount = 0
    var outcome = Outcome()
    private var isInterrupted = false
    private var isOver = false
    private var waiting: CheckedContinuation<Void, Never>?

    /// The maximum number of peers that send at once.
    static let mostSenders = 8
    /// The time within which a connected peer has to begin to offer files, and within which it has to leave after their
    /// end.
    static let offerTimeout = Moment.Span.seconds(10)

    init(
        _ plan: Plan, _ offers: IncomingOffers, over session: CommandSession, on thread: ThreadEventLoop,
        _ results: Results, asking questions: FileQuestions?
    ) {
        self.plan = plan
        self.offers = offers
        self.session = session
        self.thread = thread
        self.results = results
        self.questions = questions
    }

    /// Receives until it is interrupted, or has received what it waits for. Called once.
    func run() async -> Outcome {
        watch()
        await withCheckedContinuation { continuation in
            if isOver { return continuation.resume() }
            waiting = continuation
        }
        questions?.stop()
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

    /// Passes on what a peer offers. Callable from any thread.
    nonisolated func enqueue(_ offer: FileOffer) {
        thread.execute { self.assumeIsolated { $0.handle(offer) } }
    }

    /// Tells a sender of version 0.1, which sends files as messages, that it has to be updated, and leaves it. Called
    /// on the session's loop.
    nonisolated func refuseMessages(of peer: PeerID) {
        let words = Array("it expects files from nigh 0.2 and later; update nigh".utf8)
        // The message with which that version stops: its kind, the reason "version", and the words.
        _ = try? session.session.trySend([8, 8, 0, UInt8(words.count)] + words, to: peer, .reliable(.main))
        session.session.disconnect(peer)
    }

    /// Ends all transfers after Ctrl-C, and then the command. Callable from any thread.
    nonisolated func interrupt() {
        thread.execute {
            self.assumeIsolated { receiver in
                receiver.isInterrupted = true
                for incoming in receiver.transfers.values {
                    incoming.offer?.transfer.cancel(because: "interrupted")
                }
                receiver.endIfInterrupted()
            }
        }
    }

    private func endIfInterrupted() {
        if isInterrupted, transfers.values.allSatisfy({ $0.offer == nil }) { end() }
    }

    private func handle(_ event: SessionEvent) {
        switch event {
        case .invited(let invitation): answer(invitation)
        case .listening(_, let addresses): if !addresses.isEmpty { reportReady(addresses, session.session) }
        case .stateChanged(let peer, let before, let cause):
            if peer.state == .disconnected || peer.state == .unavailable { leaving[peer.id] = nil }
            guard let incoming = transfers[peer.id] else { return }
            switch peer.state {
            case .connected:
                incoming.peer = peer
                if before == .reconnecting {
                    reportLink("back", incoming, nil)
                } else {
                    incoming.since = thread.now
                }
            case .reconnecting: reportLink("lost", incoming, cause)
            case .disconnected, .available, .unavailable:
                // A transfer that has begun ends by itself, for the same reason.
                if incoming.offer == nil { transfers[peer.id] = nil }
            case .connecting: break
            }
        case .peerChanged(let peer):
            noteTransport(of: peer)
            trustChanged(peer)
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
        if let earlier = transfers.removeValue(forKey: peer.id) { questions?.withdraw(earlier.number) }
        if transfers.count >= most, peer.trust == .paired { makeRoom() }
        guard !isOver, !isInterrupted, transfers.count < most else {
            return session.decline(
                invitation, reason: "busy with another file", retryAfter: .seconds(1))
        }
        transferCount += 1
        leaving[peer.id] = nil
        transfers[peer.id] = IncomingTransfer(transferCount, peer, at: thread.now)
        session.accept(invitation)
    }

    private func noteTransport(of peer: Peer) {
        guard let incoming = transfers[peer.id], peer.state == .connected else { return }
        let hasMoved = peer.transport != incoming.peer.transport
        incoming.peer = peer
        if hasMoved, incoming.offer != nil { reportLink("moved", incoming, nil) }
    }

    /// Ends the transfer from a device that is not paired any more.
    private func trustChanged(_ peer: Peer) {
        guard plan.policy == .paired, peer.trust != .paired else { return }
        stop(peer.id, FileFault(.declined, "the pairing was removed"))
    }

    /// Ends the transfer of a peer, or its conversation if it has offered nothing yet.
    private func stop(_ peer: PeerID, _ fault: FileFault) {
        guard let incoming = transfers[peer] else { return }
        if let offer = incoming.offer { return offer.transfer.stop(fault) }
        transfers[peer] = nil
        session.session.disconnect(peer)
    }

    /// Ends one transfer to make room for a paired device: the last of those that are not from paired devices and that
    /// the person has not accepted yet.
    private func makeRoom() {
        let undecided = transfers.values.filter { !$0.isAccepted && $0.peer.trust != .paired }
        guard plan.policy == .ask, let last = undecided.max(by: { $0.number < $1.number }) else { return }
        stop(last.peer.id, FileFault(.cancelled, "a paired device took its place"))
        transfers[last.peer.id] = nil
        leaving[last.peer.id] = thread.now
        questions?.withdraw(last.number)
        questions?.proceed()
    }

    // MARK: Offers

    private func handle(_ offer: FileOffer) {
        guard let incoming = transfers[offer.peer], incoming.offer == nil, !isInterrupted else {
            return offer.decline(because: "only one transfer at a time is accepted there")
        }
        incoming.offer = offer
        incoming.label = TransferText.label(offer.items, name: safeName(of: offer))
        Task { await follow(offer.transfer, incoming) }
        if let refusal = refusal(of: offer) { return offer.transfer.stop(refusal) }
        if plan.policy == .ask { ask(incoming, offer) } else { accept(incoming, offer) }
    }

    private func safeName(of offer: FileOffer) -> String {
        if case .file(_, let name) = plan.destination { return name.text }
        return SafeFileName(offer.items.first?.path ?? "").text
    }

    private func refusal(of offer: FileOffer) -> FileFault? {
        if plan.destination.isForOne, offer.items.count != 1 || offer.items.first?.kind == .folder {
            return FileFault(.declined, "only a single file is accepted there")
        }
        guard offer.items.contains(where: { $0.size ?? 0 > plan.mostBytes }) else { return nil }
        return FileFault(.tooLarge, "files of more than \(plan.mostBytes) bytes are not accepted")
    }

    private func ask(_ incoming: IncomingTransfer, _ offer: FileOffer) {
        let question = "Accept \(description(of: offer)) from \(incoming.sender)? [y/n] "
        let number = incoming.number
        questions?.ask(.init(number: number, text: question, isPaired: incoming.peer.trust == .paired)) {
            isYes in
            self.thread.execute { self.assumeIsolated { $0.answered(isYes, number) } }
        }
    }

    /// What is offered, for a person who decides.
    private func description(of offer: FileOffer) -> String {
        let size = offer.totalSize.map { ByteCount($0).description } ?? "of unknown size"
        guard offer.items.count > 1 else { return "\(TransferText.label(offer.items)) (\(size))" }
        let names = TransferText.names(offer.items)
        let shown = names.prefix(Self.mostNames) + (names.count > Self.mostNames ? ["…"] : [])
        return "\(TransferText.count(offer.items)) (\(size) in all): \(shown.joined(separator: ", "))"
    }

    /// The most names in a question.
    private static let mostNames = 3

    private func answered(_ isYes: Bool, _ number: Int) {
        guard let incoming = transfers.values.first(where: { $0.number == number }),
            let offer = incoming.offer
        else { return }
        if isYes {
            accept(incoming, offer)
        } else {
            offer.decline(because: "the receiver's user declined it")
        }
    }

    private func accept(_ incoming: IncomingTransfer, _ offer: FileOffer) {
        incoming.isAccepted = true
        let onResult: FileTransfer.ResultHandler = { result in
            self.thread.execute { self.assumeIsolated { $0.reportItem(result, incoming) } }
        }
        let (items, sender, replaces) = (offer.items, offer.peer, plan.replaces)
        switch plan.destination {
        case .folder(let folder):
            offer.accept(atMost: plan.mostBytes, onResult: onResult) {
                FolderStore(folder, sender: sender, items: items, replacing: replaces)
            }
        case .file(let folder, let name):
            offer.accept(atMost: plan.mostBytes, onResult: onResult) {
                FolderStore(folder, sender: sender, items: items, replacing: replaces, finalName: name)
            }
        case .standardOutput:
            nonisolated(unsafe) let output = output
            offer.accept(atMost: plan.mostBytes, onResult: onResult) {
                StandardOutputStore(output, items: items)
            }
        }
    }

    // MARK: A transfer

    private func follow(_ transfer: FileTransfer, _ incoming: IncomingTransfer) async {
        for await progress in transfer.updates {
            let before = incoming.progress
            incoming.progress = progress
            if before?.state ?? .waiting == .waiting, progress.state != .waiting,
                progress.state != .ended || progress.isBegun
            {
                incoming.startedAt = LoopThread.now
                reportStart(incoming)
            }
            if before?.state.pause != progress.state.pause { reportPause(incoming) }
        }
        do throws(NighError) {
            try await transfer.finish()
            finished(incoming, nil)
        } catch {
            finished(incoming, error)
        }
    }

    private func finished(_ incoming: IncomingTransfer, _ error: NighError?) {
        questions?.withdraw(incoming.number)
        defer {
            if transfers[incoming.peer.id] === incoming {
                transfers[incoming.peer.id] = nil
                leaving[incoming.peer.id] = thread.now
            }
            questions?.proceed()
            endIfInterrupted()
        }
        guard let progress = incoming.progress else { return }
        let isDecided = progress.itemsDone + progress.itemsFailed == progress.itemCount
        if isDecided, progress.itemCount > 0 {
            reportEnd(incoming)
            if progress.itemsFailed == 0 {
                outcome.hasWholeTransfer = true
                if plan.isOnce { end() }
            }
        } else if let error {
            reportFailure(incoming, error)
        }
        if case .standardOutput = plan.destination, output.isBegun, !outcome.hasWholeTransfer, !isInterrupted
        {
            results.remark(
                "what was written to the standard output cannot be taken back, so no other file can follow")
            end()
        }
        guard let error else { return }
        if isInterrupted, !isDecided { outcome.error = FileFailure("interrupted", .cancelled) }
        guard plan.isOnce, case .file(let fault) = error.cause,
            fault.reason == .noSpace || fault.reason == .inaccessible
        else { return }
        outcome.error = FileFailure(fault.explanation, fault.reason)
        end()
    }

    // MARK: The timer

    private static let clockInterval = Moment.Span.milliseconds(200)

    private func watch() {
        thread.schedule(at: thread.now + Self.clockInterval) { [weak self] in
            self?.assumeIsolated { receiver in
                receiver.disconnectIdlePeers(at: receiver.thread.now)
                receiver.showProgress(at: receiver.thread.now)
                receiver.watch()
            }
        }
    }

    private func disconnectIdlePeers(at now: Moment) {
        for incoming in transfers.values where incoming.offer == nil {
            // The list of many files takes its time on a slow link.
            let more = offers.isOffering(incoming.peer.id) ? Moment.Span(IncomingOffers.listingTime) : .zero
            guard now - incoming.since > Self.offerTimeout + more else { continue }
            transfers[incoming.peer.id] = nil
            session.session.disconnect(incoming.peer.id)
        }
        for (peer, ended) in leaving where now - ended > Self.offerTimeout {
            leaving[peer] = nil
            session.session.disconnect(peer)
        }
    }
}
