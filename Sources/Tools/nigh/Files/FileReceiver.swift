import NighCore
import NighFiles
import NighLoop
import NighMemory
import NighSystem

/// Decides about the files that peers offer, and follows their transfers. The transfers write and hash on threads of
/// their own.
///
/// This file is long because the offers and transfers are private to the actor.
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
        /// Whether the sender has to prove first that it shows the code that was typed here.
        let waitsForProof: Bool
        /// Whether the command ends when a guest leaves that has sent something.
        let endsWithGuest: Bool
        /// Whether a person sees the hash of each file.
        let showsHashes: Bool
    }

    /// The counts and failures for the summary.
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
        /// The reason why the device that shows the code was not visited.
        var failure: (any Error)?
    }

    nonisolated let thread: ThreadEventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    let plan: Plan
    let results: Results
    private let session: CommandSession
    private let offers: IncomingOffers
    /// Nil if the person is not asked.
    private let questions: FileQuestions?
    /// Nil if nothing else happens when a file has arrived.
    let hooks: ReceivedFileHooks?
    /// The standard output. One transfer at a time uses it, on its thread.
    nonisolated(unsafe) private let output = StandardOutput()

    /// The transfers of connected peers, one of each.
    var transfers: [PeerID: IncomingTransfer] = [:]
    /// The peers whose transfer has ended and that have not left, and since when. They may offer more.
    private var leaving: [PeerID: (peer: Peer, since: Moment)] = [:]
    /// The peer that has proven to show the code which the person here has typed.
    private var expected: PeerID?
    /// Offers that came before this side knew of the proof. The other side may know of it sooner.
    private var early: [PeerID: FileOffer] = [:]
    /// The guests that have sent something.
    private var guests: Set<PeerID> = []
    /// The peers that are connected.
    private var present: Set<PeerID> = []
    /// How long a guest may be away while its page is loaded again.
    private static let guestPause = Moment.Span.seconds(5)
    private var transferCount = 0
    var outcome = Outcome()
    private var isInterrupted = false
    private var isOver = false
    private var waiting: CheckedContinuation<Void, Never>?

    /// The maximum number of peers that send at once.
    static let mostSenders = 8
    /// The most connected peers: the senders, the same number that have not left yet, and one that takes the place of
    /// another.
    static let mostPeers = 2 * mostSenders + 1
    /// The time within which a connected peer has to begin to offer files, and within which it has to offer more or
    /// leave after their end.
    static let offerTimeout = Moment.Span.seconds(10)

    init(
        _ plan: Plan, _ offers: IncomingOffers, over session: CommandSession, on thread: ThreadEventLoop,
        _ results: Results, asking questions: FileQuestions?, hooks: ReceivedFileHooks?
    ) {
        self.hooks = hooks
        self.plan = plan
        self.offers = offers
        self.session = session
        self.thread = thread
        self.results = results
        self.questions = questions
    }

    /// Receives until it is interrupted, or has received the expected files. Called once.
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

    /// Passes on an offer of a peer. Callable from any thread.
    nonisolated func enqueue(_ offer: FileOffer) {
        thread.execute { self.assumeIsolated { $0.handle(offer) } }
    }

    /// Accepts the files of a peer whose code the person here has typed. Callable from any thread.
    nonisolated func expect(_ peer: Peer) {
        thread.execute {
            self.assumeIsolated { receiver in
                receiver.expected = peer.id
                receiver.transfers[peer.id] = nil
                _ = receiver.takePlace(peer)
                if let offer = receiver.early.removeValue(forKey: peer.id) { receiver.handle(offer) }
            }
        }
    }

    /// Ends the command with an error. Callable from any thread.
    nonisolated func fail(with error: any Error) {
        thread.execute {
            self.assumeIsolated { receiver in
                receiver.outcome.failure = error
                receiver.end()
            }
        }
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
        case .listening(let scheme, let addresses):
            // Nothing can be sent to the addresses at which guests come.
            guard !addresses.isEmpty, !session.session.hasGuests(over: scheme) else { return }
            reportReady(addresses, session.session)
        case .connected(let peer):
            present.insert(peer.id)
            leaving[peer.id]?.peer = peer
            transfers[peer.id]?.peer = peer
            transfers[peer.id]?.since = thread.now
        case .reconnecting(let peer, let cause):
            leaving[peer.id]?.peer = peer
            if let incoming = transfers[peer.id] { reportLink("lost", incoming, cause) }
        case .reconnected(let peer):
            leaving[peer.id]?.peer = peer
            guard let incoming = transfers[peer.id] else { return }
            incoming.peer = peer
            reportLink("back", incoming, nil)
        case .disconnected(let peer, _), .available(let peer, _), .peerLost(let peer):
            if peer.state != .available { leaving[peer.id] = nil }
            if !peer.isConnected { guestLeft(peer.id) }
            // The next conversation has a proof of its own.
            if peer.id == expected { expected = nil }
            early[peer.id] = nil
            // A transfer that has begun ends by itself, for the same reason.
            if transfers[peer.id]?.offer == nil { transfers[peer.id] = nil }
        case .peerChanged(let peer):
            leaving[peer.id]?.peer = peer
            noteTransport(of: peer)
            trustChanged(peer)
        default: break
        }
    }

    /// Ends the command some time after a guest has left that has sent something. A page that is loaded again comes
    /// back before that.
    private func guestLeft(_ guest: PeerID) {
        present.remove(guest)
        guard plan.endsWithGuest, guests.contains(guest) else { return }
        thread.schedule(at: thread.now + Self.guestPause) {
            self.assumeIsolated { receiver in
                if receiver.present.isDisjoint(with: receiver.guests) { receiver.end() }
            }
        }
    }

    private func answer(_ invitation: Invitation) {
        let peer = invitation.peer
        guard plan.policy != .paired || peer.trust == .paired || peer.trust == .guest else {
            return invitation.decline(
                because: "files are accepted from paired devices only; run `nigh pair` first")
        }
        if let earlier = transfers.removeValue(forKey: peer.id) { questions?.withdraw(earlier.number) }
        guard takePlace(peer) != nil else {
            return invitation.decline(because: "busy with another file", retryAfter: .seconds(1))
        }
        invitation.accept()
    }

    // MARK: Places

    /// Gives a peer a place, if need be that of another one. Returns nil if there is none.
    private func takePlace(_ peer: Peer) -> IncomingTransfer? {
        guard !isOver, !isInterrupted else { return nil }
        let places = SenderPlaces(
            count: plan.isOnce ? 1 : Self.mostSenders, keepsMoving: plan.isOnce || plan.policy == .ask)
        let (isPaired, now) = (peer.trust == .paired, thread.now)
        let holders = transfers.values.map { $0.holder(at: now) }
        switch places.decision(forPaired: isPaired, among: holders, at: now) {
        case .free: break
        case .busy: return nil
        case .inPlace(let other):
            removeFromPlace(
                other,
                because: isPaired
                    ? "a paired device took its place"
                    : "nothing has moved for \(SenderPlaces.idleLimit), and another device took its place")
        }
        transferCount += 1
        leaving[peer.id] = nil
        let incoming = IncomingTransfer(transferCount, peer, at: now)
        transfers[peer.id] = incoming
        return incoming
    }

    private func removeFromPlace(_ peer: PeerID, because reason: String) {
        guard let incoming = transfers[peer] else { return }
        stop(peer, FileFault(.cancelled, reason))
        transfers[peer] = nil
        if incoming.offer != nil { awaitLeaving(incoming.peer) }
        questions?.withdraw(incoming.number)
        questions?.proceed()
    }

    /// Gives a peer whose transfer has ended some time to offer more, or to leave. Of too many such peers, the one that
    /// has stayed longest is disconnected.
    private func awaitLeaving(_ peer: Peer) {
        leaving[peer.id] = (peer, thread.now)
        guard leaving.count > Self.mostSenders,
            let first = leaving.values.min(by: { $0.since < $1.since })?.peer.id
        else { return }
        leaving[first] = nil
        session.session.disconnect(first)
    }

    private func noteTransport(of peer: Peer) {
        guard let incoming = transfers[peer.id], peer.state == .connected else { return }
        let hasMoved = peer.transport != incoming.peer.transport
        incoming.peer = peer
        if hasMoved, incoming.offer != nil { reportLink("moved", incoming, nil) }
    }

    /// Ends the transfer from a device that is not paired any more.
    private func trustChanged(_ peer: Peer) {
        guard plan.policy == .paired, peer.trust != .paired, peer.trust != .guest else { return }
        stop(peer.id, FileFault(.declined, "the pairing was removed"))
    }

    /// Ends the transfer of a peer, or its conversation if it has offered nothing yet.
    private func stop(_ peer: PeerID, _ fault: FileFault) {
        guard let incoming = transfers[peer] else {
            if leaving.removeValue(forKey: peer) != nil { session.session.disconnect(peer) }
            return
        }
        if let offer = incoming.offer { return offer.transfer.stop(fault) }
        transfers[peer] = nil
        session.session.disconnect(peer)
    }

    // MARK: Offers

    private func handle(_ offer: FileOffer) {
        guard !isInterrupted else { return offer.decline(because: "the receiver was interrupted") }
        // The peer may know of the end of its transfer before this side has noted that.
        if let current = transfers[offer.peer], current.isEnding, current.next == nil {
            current.next = offer
            return
        }
        if plan.waitsForProof, offer.peer != expected {
            early[offer.peer] = offer
            return
        }
        let next = leaving[offer.peer].flatMap { takePlace($0.peer) }
        guard let incoming = next ?? transfers[offer.peer], incoming.offer == nil else {
            return offer.decline(
                because: leaving[offer.peer] == nil
                    ? "only one transfer at a time is accepted there" : "busy with another file")
        }
        incoming.offer = offer
        incoming.label = TransferText.label(offer.items, name: safeName(of: offer))
        Task { await follow(offer.transfer, incoming) }
        if let refusal = refusal(of: offer) { return offer.transfer.stop(refusal) }
        // A guest has scanned the code that the person here has shown.
        let asks = plan.policy == .ask && incoming.peer.trust != .guest
        if asks { ask(incoming, offer) } else { accept(incoming, offer) }
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
        let question = TransferText.question(offer.items, size: offer.totalSize, from: incoming.sender)
        let number = incoming.number
        questions?.ask(.init(number: number, text: question, isPaired: incoming.peer.trust == .paired)) {
            isYes in
            self.thread.execute { self.assumeIsolated { $0.answered(isYes, number) } }
        }
    }

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
        let (items, sender, replaces) = (offer.items, offer.transfer.identity, plan.replaces)
        // A stranger's file should not look like a program that may be run.
        let isTrusted = incoming.peer.trust == .paired || expected == incoming.peer.id
        switch plan.destination {
        case .folder(let folder):
            offer.accept(atMost: plan.mostBytes, onResult: onResult) {
                FolderStore(
                    folder, sender: sender, items: items, replacing: replaces, skipsCopies: true,
                    keepsModes: isTrusted)
            }
        case .file(let folder, let name):
            offer.accept(atMost: plan.mostBytes, onResult: onResult) {
                FolderStore(
                    folder, sender: sender, items: items, replacing: replaces, finalName: name,
                    keepsModes: isTrusted)
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
                awaitLeaving(incoming.peer)
            }
            if let next = incoming.next { handle(next) }
            questions?.proceed()
            endIfInterrupted()
        }
        guard let progress = incoming.progress else { return }
        if progress.isDecided {
            reportEnd(incoming)
            if progress.itemsFailed == 0 {
                outcome.hasWholeTransfer = true
                if incoming.peer.trust == .guest { guests.insert(incoming.peer.id) }
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
        if isInterrupted, !progress.isDecided { outcome.error = FileFailure("interrupted", .cancelled) }
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
        for (peer, left) in leaving where now - left.since > Self.offerTimeout {
            // The list of many files takes its time on a slow link.
            let more = offers.isOffering(peer) ? Moment.Span(IncomingOffers.listingTime) : .zero
            guard now - left.since > Self.offerTimeout + more else { continue }
            leaving[peer] = nil
            session.session.disconnect(peer)
        }
    }
}
