import JSONText
import NighCodes
import NighCore
import NighFiles
import NighLoop
import ProgramSupport

/// The offer of a `nigh send` that names no peer: it shows a one-time code, and lets in the device whose person types
/// it. A person at this terminal may also choose a receiver nearby instead.
actor CodeOffer {
    /// The device to send to.
    enum Receiver: Sendable {
        /// A connected device that has proven to know the code.
        case guest(Peer)
        /// A device that the person here has chosen.
        case chosen(PeerChoice)
    }

    nonisolated let session: CommandSession
    nonisolated var unownedExecutor: UnownedSerialExecutor { session.loop.asUnownedSerialExecutor() }

    private let results: Results
    /// Nil without a terminal, or if the files come from it.
    private let input: TypedLines?
    private var number: Int?
    /// Where this session listens.
    private var addresses: [String: [TransportAddress]] = [:]
    private var key: CodeKey?
    /// The device that has proven to know the code. Nobody else is let in from then on.
    private var guest: PeerID?
    /// The devices that may be about to prove it.
    private var visitors: Set<PeerID> = []
    private var wrongGuesses = 0
    /// The receivers that the list shows, in its order.
    private var listed: [Peer] = []
    private var arrived: Receiver?
    private var failure: (any Error)?
    private var waiting: CheckedContinuation<Receiver, any Error>?

    static let code = Results.Kind("code", plural: "codes")
    static let guess = Results.Kind("wrong_guess", plural: "wrong_guesses")

    /// The time of the search for other sessions with a code, so that no two have the same number.
    private static let searchTime = Duration.milliseconds(400)
    /// The maximum number of devices that may be about to prove that they know the code.
    private static let mostVisitors = 4
    /// The time limit for a device to prove that it knows the code, once it was let in.
    private static let proofTime = Moment.Span.seconds(15)
    /// The number of wrong guesses after which the command ends: nobody mistypes so often.
    static let mostWrongGuesses = 10
    /// The maximum number of receivers in the list.
    private static let mostListed = 9

    /// The purposes for which others may come.
    static func purposes(guests: Bool) -> [InvitationPurpose] { guests ? [.code, .fetch] : [.code] }

    private var purposes: [InvitationPurpose] { Self.purposes(guests: session.options.admitsGuests) }

    /// - Parameter mayChoose: whether a person can choose a receiver at this terminal.
    init(_ session: CommandSession, _ results: Results, mayChoose: Bool) throws {
        self.session = session
        self.results = results
        input = mayChoose ? try TypedLines() : nil
    }

    /// Shows the first code.
    func begin() async throws {
        try? await Task.sleep(for: Self.searchTime)
        let taken = Set(session.peers.values.compactMap(InvitationPurpose.codeNumber))
        let short = (1...99).filter { !taken.contains($0) }
        number =
            (short.isEmpty ? OneTimeCode.numbers.filter { !taken.contains($0) } : short).randomElement() ?? 1
        await showNewCode()
        session.session.update(info: InvitationPurpose.info(accepting: purposes, codeNumber: number))
        try input?.start { line in self.session.loop.execute { self.assumeIsolated { $0.typed(line) } } }
        showReceivers()
    }

    /// Stops reading the keyboard.
    nonisolated func end() { input?.stop() }

    private func showNewCode() async {
        guard let number else { return }
        let code = OneTimeCode.random(number: number)
        key = nil
        // Derived on a thread of its own, because it takes a while.
        key = await Task.detached { CodeKey(code) }.value
        results.report(
            Self.code,
            [
                .init("code", .text("\(code)")),
                .init(
                    "addresses",
                    .list(addresses.sorted { $0.key < $1.key }.flatMap(\.value).map { .text("\($0)") })),
            ],
            lines: [
                "On the other device, run:", "", Line("    ") + Line("nigh receive \(code)", .strong), "",
            ])
    }

    /// Waits for the device to send to. Throws if the task is cancelled, or if there were too many wrong guesses.
    nonisolated func receiver() async throws -> Receiver {
        try await withTaskCancellationHandler {
            try await nextReceiver()
        } onCancel: {
            session.loop.execute { self.assumeIsolated { $0.fail(with: CancellationError()) } }
        }
    }

    private func nextReceiver() async throws -> Receiver {
        try await withCheckedThrowingContinuation { continuation in
            // Looked at only here: the loop may do something else before this is called.
            if let failure { return continuation.resume(throwing: failure) }
            guard let receiver = arrived.take() else {
                waiting = continuation
                return
            }
            continuation.resume(returning: receiver)
        }
    }

    private func arrive(_ receiver: Receiver) {
        if let waiting {
            self.waiting = nil
            waiting.resume(returning: receiver)
        } else {
            arrived = receiver
        }
    }

    private func fail(with error: any Error) {
        failure = error
        waiting?.resume(throwing: error)
        waiting = nil
    }

    // MARK: Visitors

    /// Handles an event of the session. Called on its loop.
    nonisolated func handle(_ event: SessionEvent) { assumeIsolated { $0.handled(event) } }

    private func handled(_ event: SessionEvent) {
        switch event {
        case .invited(let invitation): answer(invitation)
        case .connected(let peer): if peer.trust == .guest, peer.id == guest { arrive(.guest(peer)) }
        case .streamOpened(let stream): opened(stream)
        case .listening(let scheme, let addresses): self.addresses[scheme] = addresses
        case .disconnected(let peer, _), .available(let peer, _), .peerLost(let peer):
            visitors.remove(peer.id)
        default: break
        }
        showReceivers()
    }

    private func answer(_ invitation: Invitation) {
        let peer = invitation.peer.id
        if let guest, guest != peer {
            return invitation.decline(because: "the code has been used; each code is for one transfer")
        }
        if invitation.peer.trust == .guest {
            guard InvitationPurpose(context: invitation.context) == .fetch else {
                return invitation.decline(because: "files are offered here")
            }
            // It has scanned the code that the person here has shown, which is proof enough.
            guest = peer
            endChoice()
            return invitation.accept()
        }
        guard key != nil, InvitationPurpose(context: invitation.context) == .code,
            visitors.count < Self.mostVisitors || visitors.contains(peer)
        else {
            return invitation.decline(because: "busy with another device", retryAfter: .seconds(1))
        }
        visitors.insert(peer)
        invitation.accept()
        session.loop.schedule(at: session.loop.now + Self.proofTime) {
            self.assumeIsolated { $0.dismiss(peer) }
        }
    }

    /// Leaves a device that has not proven to know the code in time.
    private func dismiss(_ peer: PeerID) {
        guard visitors.remove(peer) != nil, peer != guest else { return }
        session.session.disconnect(peer)
    }

    private func opened(_ stream: ByteStream) {
        guard stream.name == CodeProof.streamName, visitors.contains(stream.peer), let key,
            guest == nil || guest == stream.peer, let peer = session.peers[stream.peer]
        else { return stream.cancel(because: "not expected") }
        Task {
            let outcome = await CodeProof.check(key, on: stream, of: peer, as: session.session.id)
            await finished(outcome, peer, with: key)
        }
    }

    private func finished(_ outcome: CodeProof.Outcome, _ peer: Peer, with key: CodeKey) async {
        visitors.remove(peer.id)
        switch outcome {
        // The key of a code that somebody else has guessed wrongly meanwhile proves nothing any more.
        case .proven where key.isSame(as: self.key) && (guest == nil || guest == peer.id):
            guest = peer.id
            endChoice()
            arrive(.guest(peer))
        case .proven: session.session.disconnect(peer.id)
        case .wrong:
            session.session.disconnect(peer.id)
            if key.isSame(as: self.key), guest == nil { await guessedWrongly(peer) }
        case .incomplete:
            // Nobody has made a guess.
            session.session.disconnect(peer.id)
        }
    }

    private func guessedWrongly(_ peer: Peer) async {
        wrongGuesses += 1
        key = nil
        results.report(
            Self.guess,
            [
                .init("peer_id", .text("\(peer.id)")), .init("peer_name", .text("\(peer.name)")),
                .init("transport", JSON(peer.transport)),
            ], lines: [])
        guard wrongGuesses < Self.mostWrongGuesses else {
            return fail(
                with: FileFailure(
                    "\(wrongGuesses) wrong codes were typed, the last on \(peer.name) (\(peer.identity.short)); "
                        + "somebody may be guessing"))
        }
        if results.isText {
            results.remark(
                "\(peer.name) (\(peer.identity.short)) has typed a wrong code, so that code is not valid any more; "
                    + "here is a new one")
        }
        await showNewCode()
    }

    // MARK: Choosing a receiver

    /// Shows the receivers nearby, if they have changed.
    private func showReceivers() {
        guard input != nil, number != nil, guest == nil, arrived == nil else { return }
        let receivers = session.peers.values.filter {
            !$0.routes.isEmpty && InvitationPurpose.send.isAccepted(by: $0) == true
        }
        .sorted { ("\($0.name)", $0.id) < ("\($1.name)", $1.id) }.prefix(Self.mostListed)
        guard receivers.map(\.id) != listed.map(\.id) else { return }
        listed = Array(receivers)
        guard !listed.isEmpty else { return results.live.endQuestion(isAnswered: false) }
        let list = listed.enumerated().map { index, peer in
            "\(index + 1) \(peer.name)\(peer.trust == .paired ? " (paired)" : "")"
        }
        results.live.showQuestion(
            "or type the number of a receiver nearby: \(list.joined(separator: ", "))  > ")
    }

    private func typed(_ line: String?) {
        guard let line, guest == nil, !listed.isEmpty else { return }
        results.live.endQuestion(isAnswered: true)
        guard let place = Int(line.trimming { $0 == " " }), listed.indices.contains(place - 1) else {
            listed = []
            return showReceivers()
        }
        let peer = listed[place - 1]
        number = nil
        key = nil
        session.session.update(info: InvitationPurpose.info(accepting: []))
        arrive(.chosen(.named("\(peer.id)")))
    }

    private func endChoice() {
        results.live.endQuestion(isAnswered: false)
        listed = []
    }
}
