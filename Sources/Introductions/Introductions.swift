import NighCore
import NighRelays

/// Introduces the peers of one session to each other, connects the sessions of a mesh, and has peers carry pipes: keeps
/// an `IntroductionTable` in step with the session, and carries out its instructions.
///
/// A layer of its session, which has the session's relays in it. Everything happens on the session's loop.
package final class Introductions: ConversationLayer {
    /// Callbacks about introductions.
    package struct Observer: Sendable {
        /// A peer that was introduced could not be connected.
        package var failed: @Sendable (PeerID, NighError) -> Void
        /// A conversation was ended because the peer broke the protocol.
        package var violated: @Sendable (NighError) -> Void
        /// A peer has sent its presence, for the first time or again.
        package var presented: @Sendable (PeerID) -> Void
        /// An invitation is about to be answered without the program.
        package var answered: @Sendable (Invitation) -> Void

        package init(
            failed: @escaping @Sendable (PeerID, NighError) -> Void = { _, _ in },
            violated: @escaping @Sendable (NighError) -> Void = { _ in },
            presented: @escaping @Sendable (PeerID) -> Void = { _ in },
            answered: @escaping @Sendable (Invitation) -> Void = { _ in }
        ) {
            self.failed = failed
            self.violated = violated
            self.presented = presented
            self.answered = answered
        }
    }

    /// The mutable state.
    private final class LoopState {
        weak var session: Session?
        var table: IntroductionTable
        var generator: SeededGenerator
        var advertisement: Advertisement
        var addresses: [String: [TransportAddress]] = [:]
        var observer = Observer()
        /// The peers that have broken the protocol in this conversation, which ends.
        var violators: Set<PeerID> = []
        var timer: LoopTimer?
        var timerFiresAt = Moment.never
        var isClosed = false

        init(_ table: IntroductionTable, _ advertisement: Advertisement, seed: UInt64) {
            self.table = table
            self.advertisement = advertisement
            generator = SeededGenerator(seed: seed)
        }
    }

    /// Used on the session's loop only; hence `nonisolated(unsafe)`.
    private nonisolated(unsafe) let onLoop: LoopState
    /// The pipes that are carried for others and by others.
    package let relays: Relays
    /// The time that an introduced peer has to answer.
    private static let invitationTime = Duration.seconds(20)

    /// Creates the introductions of a session that is to be made with these settings.
    ///
    /// - Parameters:
    ///   - isMesh: whether the session is one of a mesh.
    ///   - policy: the peers that the session carries pipes for, and that may carry pipes to it.
    ///   - refuse: returns the reason not to connect to an introduced peer; nil if it may be connected. The
    ///     advertisement comes from other peers and is not proven. Called on the loop.
    ///   - wantsPaths: whether peers are asked for the paths of their conversations.
    ///   - seed: the seed of random decisions; nil derives it from that of the session, if it has one.
    package init(
        _ identity: Identity, of configuration: SessionConfiguration, isMesh: Bool,
        relaying policy: RelayPolicy = .nobody, limits: RelayLimits = RelayLimits(),
        refusing refuse: @escaping (PeerID, Advertisement?) -> String? = { _, _ in nil },
        wantsPaths: Bool = false,
        seed: UInt64? = nil
    ) {
        let advertisement = Advertisement(
            service: configuration.service, peer: identity.peerID, name: configuration.name,
            info: configuration.info,
            identity: identity.isDelegate && configuration.security != .none ? identity.principal : nil)
        let relays = Relays(carryingFor: policy, limits: limits)
        self.relays = relays
        let carrier = relays.carrier
        let rules = IntroductionTable.Policy(
            isMesh: isMesh, acceptsRelays: { carrier.allows($0) }, carries: { carrier.carries($0, $1) },
            refuses: refuse, wantsPaths: wantsPaths)
        // Not the session's own seed, from which the session draws other numbers.
        let derived = configuration.seed.map { ~$0 }
        var seeds = SeededGenerator(seed: seed ?? derived ?? .random(in: .min ... .max))
        onLoop = LoopState(
            IntroductionTable(identity, advertisement, rules, seed: seeds.next()), advertisement,
            seed: seeds.next())
    }

    private var hasRelays: Bool { relays.carrier.policy != .nobody }

    /// Reports to this observer. Call it on the loop, or before the session has started.
    package func report(to observer: Observer) { onLoop.observer = observer }

    // MARK: The layer

    /// The transport of the relays, if there are any.
    package var transports: [any Transport] { hasRelays ? relays.transports : [] }

    /// The kind of messages about introductions.
    package var kinds: [MessageKind] { [IntroductionRecord.kind] }

    /// The purpose of the relays' streams, if there are any.
    package var purposes: [StreamPurpose] { hasRelays ? relays.purposes : [] }

    /// Takes a stream for a relay.
    package func receive(_ stream: ByteStream) { relays.receive(stream) }

    /// Takes a message of the kind of introductions.
    package func receive(
        _ bytes: RawSpan, of kind: MessageKind, from origin: MessageOrigin
    ) -> KindMessagePlace? {
        bytes.withUnsafeBytes { receive($0, from: origin.peer) }
        return nil
    }

    /// Begins to follow a session.
    package func attach(to session: Session) {
        onLoop.session = session
        relays.attach(to: session)
    }

    /// Ends the pipes that are carried for others, so that their ends hear of it at once.
    package func sessionWillClose() { relays.sessionWillClose() }

    /// Takes an event of the session. Loop only.
    package func handle(_ event: SessionEvent) {
        // Guests are neither introduced nor reported.
        guard let session = onLoop.session, !onLoop.isClosed, event.changedPeer?.trust != .guest else {
            return
        }
        relays.handle(event)
        let now = session.loop.now
        switch event {
        case .connected(let peer):
            onLoop.violators.remove(peer.id)
            onLoop.table.connected(peer.id, nonce: onLoop.generator.next(), now: now)
            flush(peer.id, session)
            notePath(of: peer, now)
        case .reconnecting(let peer, _):
            onLoop.table.noteLink(of: peer.id, isThere: false, now: now)
            notePath(of: peer, now)
        case .reconnected(let peer):
            onLoop.table.noteLink(of: peer.id, isThere: true, now: now)
            // While there was no link, nothing was carried to or from the peer.
            onLoop.table.reconsider(peer.id, now: now)
            notePath(of: peer, now)
        case .disconnected(let peer, let cause):
            onLoop.violators.remove(peer.id)
            onLoop.table.disconnected(peer.id, by: cause.cause.departure, now: now)
            notePath(of: peer, now)
        case .peerChanged(let peer):
            onLoop.table.reconsider(peer.id, now: now)
            notePath(of: peer, now)
        case .listening(let scheme, let addresses):
            guard !session.hasGuests(over: scheme) else { return }
            onLoop.addresses[scheme] = addresses
            setOwn(now)
        default: return
        }
        proceed(session)
    }

    /// Takes the discovery info of the session from now on. Loop only.
    package func infoChanged(_ info: DiscoveryInfo) {
        guard let session = onLoop.session, !onLoop.isClosed else { return }
        onLoop.advertisement.info = info
        setOwn(session.loop.now)
        proceed(session)
    }

    private func notePath(of peer: Peer, _ now: Moment) {
        let path = peer.transport.map { scheme in
            ConversationPath.over(
                scheme: scheme,
                carrier: scheme == RelayAddress.scheme ? relays.transport.carrier(of: peer.id) : nil)
        }
        onLoop.table.notePath(of: peer.id, path ?? .interrupted, now: now)
    }

    private func setOwn(_ now: Moment) {
        let addresses = onLoop.addresses.sorted { $0.key < $1.key }.flatMap(\.value)
        onLoop.table.setOwn(onLoop.advertisement, at: addresses, now: now)
    }

    /// Stops everything.
    package func sessionDidClose() {
        onLoop.isClosed = true
        onLoop.observer = Observer()
        if let timer = onLoop.timer { onLoop.session?.loop.cancel(timer) }
        onLoop.timer = nil
    }

    private func receive(_ bytes: UnsafeRawBufferPointer, from peer: PeerID) {
        // Records of a peer that has broken the protocol are ignored.
        guard let session = onLoop.session, !onLoop.isClosed, !onLoop.violators.contains(peer) else { return }
        // Records of guests are ignored, too.
        guard onLoop.table.isConnected(to: peer) else { return }
        do throws(WireError) {
            for record in try IntroductionRecord.records(in: bytes) {
                try onLoop.table.receive(
                    withReachableAddresses(record, from: peer, session), from: peer, now: session.loop.now)
                if case .here = record { onLoop.observer.presented(peer) }
            }
        } catch {
            onLoop.violators.insert(peer)
            onLoop.observer.violated(
                NighError(.conversing, .protocolViolation(error.message), peer: session.label(of: peer)))
            session.disconnect(peer)
        }
        proceed(session)
    }

    /// Leaves out the addresses that this session must not dial. A member could otherwise make it connect to programs
    /// that listen on this machine only.
    private func withReachableAddresses(
        _ record: IntroductionRecord, from peer: PeerID, _ session: Session
    ) -> IntroductionRecord {
        guard case .introduction(let other, let addresses, let token) = record else { return record }
        let reachable = addresses.filter { session.mayDial($0, introducedBy: peer) }
        return .introduction(other, addresses: reachable, token: token)
    }

    /// Answers an invitation whose sender was introduced. Returns false if the program has to answer it. Loop only.
    package func answers(_ invitation: Invitation) -> Bool {
        guard !onLoop.isClosed else { return false }
        let verdict = onLoop.table.verdict(on: invitation.peer.id, introduction: invitation.introduction)
        if case .program = verdict { return false }
        onLoop.observer.answered(invitation)
        if case .decline(let reason) = verdict {
            invitation.decline(because: reason)
        } else {
            invitation.accept()
        }
        return true
    }

    /// Whether both this session and a connected peer are in the mesh. Loop only.
    package func isInMesh(with peer: PeerID) -> Bool { onLoop.table.isInMesh(with: peer) }

    /// The peers that a peer reports to be connected to, by PeerID. Loop only.
    package func peers(reportedBy peer: PeerID) -> [ReportedPeer] { onLoop.table.peers(reportedBy: peer) }

    /// The peers that could introduce this session to this one, by PeerID. Loop only.
    package func introducers(to peer: PeerID) -> [PeerID] { onLoop.table.introducers(to: peer) }

    // MARK: Actions

    /// Carries out due actions, flushes due records, and sets the timer.
    private func proceed(_ session: Session) {
        let now = session.loop.now
        onLoop.table.timeArrived(now: now)
        for action in onLoop.table.takeActions() { carryOut(action, session) }
        for peer in onLoop.table.peersToFlush(now: now) { flush(peer, session) }
        armTimer(session)
    }

    private func carryOut(_ action: IntroductionTable.Action, _ session: Session) {
        switch action {
        case .introduce(let peer): session.introduce(peer)
        case .invite(let peer, let introduction):
            session.invite(peer, introduction: introduction, timeout: Self.invitationTime) {
                [weak self] result in
                self?.invitationEnded(peer, result)
            }
        case .forget(let peer): session.forgetIntroduction(of: peer)
        }
    }

    private func invitationEnded(_ peer: PeerID, _ result: Result<PeerID, NighError>) {
        guard let session = onLoop.session, !onLoop.isClosed else { return }
        var hasFailed = false
        if case .failure(let error) = result {
            hasFailed = true
            onLoop.observer.failed(peer, error)
        }
        onLoop.table.invitationEnded(peer, hasFailed: hasFailed, now: session.loop.now)
        proceed(session)
    }

    private func flush(_ peer: PeerID, _ session: Session) {
        onLoop.table.flush(peer, now: session.loop.now) {
            session.sendIfPossible(ByteSlice($0), of: IntroductionRecord.kind, to: peer)
        }
    }

    private func armTimer(_ session: Session) {
        let deadline = onLoop.table.deadline
        guard deadline != onLoop.timerFiresAt else { return }
        if let timer = onLoop.timer { session.loop.cancel(timer) }
        onLoop.timer = nil
        onLoop.timerFiresAt = deadline
        guard deadline != .never else { return }
        onLoop.timer = session.loop.schedule(at: deadline) { [weak self] in self?.timerFired() }
    }

    private func timerFired() {
        onLoop.timer = nil
        onLoop.timerFiresAt = .never
        guard let session = onLoop.session, !onLoop.isClosed else { return }
        proceed(session)
    }
}

extension NighError.Cause {
    /// The side that ended the conversation.
    fileprivate var departure: IntroductionTable.Departure {
        switch self {
        case .left, .notPaired: .thisSide
        case .peerLeft: .otherSide
        default: .nobody
        }
    }
}
