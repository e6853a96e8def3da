import Guests
import NighLoop
import NighCore
import NighIntroductions
import NighRecord
import NighRelays
import NighSystem
import SessionArguments
import Synchronization

/// The session of one command, on a loop of its own: it keeps track of the peers, finds the peer that the command is
/// about, and reports events if the user asked for that.
///
/// The command gets its events and messages on the session's loop, as with any session. Invitations for a purpose that
/// the command does not take are declined here and do not reach it. Everything else may be called from any thread.
///
/// `@unchecked Sendable`: all mutable state is confined to the loop.
final class CommandSession: @unchecked Sendable {
    let session: Session
    let loop: UVEventLoop
    /// Loop only.
    let transports: [any Transport]
    /// The transports without the faults that `--inject` puts in front of them.
    private let bareTransports: [any Transport]
    /// The layer that learns of other peers, and that relays connections. Loop only.
    private let introductions: Introductions
    let options: SessionOptions
    private let purposes: [InvitationPurpose]
    private let acceptsAllInvitations: Bool
    let results: Results
    private let recorder: LinkRecorder?
    /// Calls the peer that `--through` names.
    private let throughCalls = Mutex<Task<Void, Never>?>(nil)
    /// The peer that `--through` names, once it was reached. Loop only.
    var throughPeer: PeerID?
    /// Called when the conversation with that peer ends. Loop only.
    var whenThroughEnds: (() -> Void)?
    /// Why the last call to that peer has failed. Loop only.
    var lastThroughError: NighError?
    /// Whether the session is being closed, so that nothing is waited for any more. Loop only.
    private(set) var isClosing = false
    /// All peers that are seen or connected now. Loop only.
    private(set) var peers: [PeerID: Peer] = [:]
    /// The errors of the transports that do not work now, by scheme. Loop only.
    private(set) var transportErrors: [String: NighError] = [:]
    /// Whether a transport has listened, or a peer has been connected. Then a transport that is down has worked, and
    /// may work again. Loop only.
    private var hasWorked = false
    private var onEvent: EventHandler?
    /// Shows something to a person that does not end the command. Loop only.
    var onRemark: (String) -> Void
    /// Shows an invitation for a guest. Loop only.
    var onGuestInvitation: (GuestInvitation, _ isRenewed: Bool) -> Void
    private var warned: Set<PeerID> = []
    /// The searches in progress. Loop only.
    var searches: [PeerSearch] = []
    /// The calls in progress. Loop only.
    var calls: [ObjectIdentifier: OngoingCall] = [:]

    /// Creates the session; nothing happens before `start`. Throws for transports that cannot be made, and for an
    /// identity that cannot be read.
    ///
    /// - Parameters:
    ///   - purposes: the purposes for which others may invite the session; the command gets those invitations and
    ///     answers them.
    ///   - acceptsAllInvitations: the command gets every invitation, including those of other programs.
    ///   - isMesh: the session also connects to everybody that one of its peers is connected to.
    ///   - asksForPaths: the session asks its peers for the paths of their conversations.
    init(
        _ options: SessionOptions, role: SessionRole, accepting purposes: [InvitationPurpose] = [],
        acceptsAllInvitations: Bool = false, isMesh: Bool = false, asksForPaths: Bool = false,
        results: Results,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws {
        self.options = options
        self.purposes = purposes
        self.acceptsAllInvitations = acceptsAllInvitations
        self.results = results
        onRemark = { results.remark($0) }
        let takesGuests = !Set(purposes).isDisjoint(with: [.send, .fetch, .chat])
        onGuestInvitation = { invitation, isRenewed in
            guard takesGuests else { return results.remark("a guest may open \(invitation.url)") }
            GuestCode.report(invitation, isRenewed: isRenewed, results)
        }
        (bareTransports, transports) = try options.makeTransports()
        let (identity, trust) = try Self.identity(options.identity, for: options.service)
        var configuration = SessionConfiguration(
            service: options.service, name: try options.name ?? .ofThisUser(), role: role)
        configuration.security = options.security
        configuration.info = InvitationPurpose.info(accepting: purposes)
        adjust(&configuration)
        introductions = Introductions(
            identity.identity, of: configuration, isMesh: isMesh, relaying: options.relays,
            wantsPaths: asksForPaths)
        recorder = try options.record?.begin()
        configuration.layers += [identity, introductions] + (recorder.map { [$0] } ?? [])
        let relay = GuestInvitationRelay()
        configuration.admitGuests(
            over: bareTransports, with: GuestReception { relay.session?.onGuestInvitation($0, $1) })
        loop = try UVEventLoop.make()
        do {
            session = try Session(
                checking: configuration, identity: identity.identity, trust: trust, transports: transports,
                loop: loop)
        } catch {
            loop.shutdown()
            throw error
        }
        relay.session = self
        introductions.report(
            to: Introductions.Observer(
                failed: { [weak self] id, error in
                    guard options.isVerbose, let self else { return }
                    onRemark("\(label(of: id)): \(error)")
                }, violated: { [weak self] in self?.onRemark("\($0)") },
                presented: { [weak self] in self?.presented($0) },
                answered: { [weak self] in self?.note(.invited($0)) }))
    }

    private static func identity(
        _ choice: SessionOptions.IdentityChoice?, for service: ServiceName
    ) throws -> (IdentityUse, TrustStore) {
        switch choice {
        case .ephemeral: return (.alone(.ephemeral()), .ephemeral())
        case .delegate:
            let own = try? IdentityFile().load(createIfMissing: false)
            return (.alone(own?.makeDelegate() ?? .ephemeral()), try .standard())
        case .file(let file): return (try .begin(file, for: service), try .standard())
        case nil: return (try .begin(IdentityFile(), for: service), try .standard())
        }
    }

    /// Starts the session. The handlers are called on the loop.
    func start(onEvent: EventHandler? = nil, onMessage: MessageHandler? = nil) {
        self.onEvent = onEvent
        session.start(
            onEvent: { [self] in handle($0) },
            onMessage: onMessage ?? { _, _ in })
        keepConnected()
    }

    /// Starts the session and leaves messages to the session's `messages`: a reader that is slow slows the senders
    /// down.
    func startReading(onEvent: EventHandler? = nil) {
        self.onEvent = onEvent
        session.start(onEvent: { [self] in handle($0) })
        keepConnected()
    }

    /// Says goodbye to all peers and ends the session. No handler is called afterwards.
    func close() async {
        throughCalls.withLock { $0?.cancel() }
        loop.execute { [self] in
            isClosing = true
            endThrough()
        }
        await session.close()
        // A transport may report more in the turns after its end.
        for error in await onLoop({ commandSession in
            commandSession.bareTransports.breaches.filter {
                !commandSession.transportErrors.values.contains($0)
            }
        }) {
            results.remark("\(error)")
        }
        loop.shutdown()
        if let error = recorder?.finish() { results.remark("\(error)") }
    }

    // MARK: Events

    /// Tells the person of an event.
    private func note(_ event: SessionEvent) {
        warn(of: event)
        if options.isVerbose { remark(event) }
    }

    private func handle(_ event: SessionEvent) {
        note(event)
        if let peer = event.stateChange?.peer {
            results.note(peer)
            peers[peer.id] = peer.state == .unavailable ? nil : peer
            if peer.state == .connected { hasWorked = true }
            if peer.id == throughPeer, !peer.isConnected { endThrough() }
        }
        switch event {
        case .listening(_, let addresses): if !addresses.isEmpty { hasWorked = true }
        case .peerChanged(let peer):
            results.note(peer)
            if peers[peer.id] != nil { peers[peer.id] = peer }
        case .transportDown(let scheme, let error):
            transportErrors[scheme] = error
            // So that nobody takes this for a network fault.
            if case .contractBroken = error.cause, !options.isVerbose { onRemark("\(error)") }
        case .transportUp(let scheme): transportErrors[scheme] = nil
        case .problem(let error):
            // Others would wait for a session that nobody can reach.
            if error.stage == .advertising, !options.isVerbose { remark(error) }
        case .invited(let invitation):
            let purpose = InvitationPurpose(context: invitation.context)
            guard acceptsAllInvitations || purpose.map(purposes.contains) == true else {
                return invitation.decline(
                    because: InvitationPurpose.refusal(of: purpose, accepting: purposes))
            }
        default: break
        }
        onEvent?(event)
        checkSearches()
        for call in Array(calls.values) { call.routesChanged(in: peers) }
    }

    /// Reports a peer as changed when it has presented itself to this session.
    private func presented(_ id: PeerID) {
        if let peer = peers[id] { onEvent?(.peerChanged(peer)) }
    }

    private func remark(_ event: SessionEvent) {
        // The end of the command says enough about the end of its session.
        if case .closed = event { return }
        onRemark("\(event)")
    }

    /// Keeps a conversation with the peer that `--through` names, if it names one.
    private func keepConnected() {
        guard let choice = options.through else { return }
        remarkIfNotConnected(through: choice)
        let task = Task { [weak self] in
            var lastRemark: String?
            while !Task.isCancelled, let self {
                let remark = await connectOnce(through: choice)
                if let remark, remark != lastRemark, !Task.isCancelled {
                    _ = await onLoop { $0.onRemark(remark) }
                }
                lastRemark = remark
            }
        }
        throughCalls.withLock { $0 = task }
    }

    /// The peers that a peer says it has a conversation with. Loop only.
    func peers(reportedBy peer: PeerID) -> [ReportedPeer] { introductions.peers(reportedBy: peer) }

    /// Whether both this session and a connected peer are in the mesh. Loop only.
    func isInMesh(with peer: PeerID) -> Bool { introductions.isInMesh(with: peer) }

    /// The peers that could introduce this session to another one. Loop only.
    func introducers(to peer: PeerID) -> [PeerID] { introductions.introducers(to: peer) }

    /// Whether `--through` names a peer.
    var hasThrough: Bool { options.through != nil }

    /// The path of the conversation with a peer, for a person: a transport, or the peer that passes everything on. Loop
    /// only.
    func path(to peer: Peer) -> String {
        guard peer.transport == RelayAddress.scheme, let carrier = carrier(of: peer) else {
            return peer.transport.map { "over \($0)" } ?? ""
        }
        return "through \(label(of: carrier))"
    }

    /// The path as `path(to:)` returns it, but "directly over" a transport if no peer is in between. Loop only.
    func wholePath(to peer: Peer) -> String {
        guard let transport = peer.transport else { return "without a link now" }
        return transport == RelayAddress.scheme ? path(to: peer) : "directly over \(transport)"
    }

    /// The addresses at which a peer can be reached, and the peers that can carry a connection to it, for a person.
    /// Loop only.
    func routes(to peer: Peer) -> Line {
        PeerReport.routes(to: peer) { label(of: $0) }
    }

    /// Name and short PeerID of a peer, or the latter alone if nothing else is known. Loop only.
    func label(of id: PeerID) -> String { peers[id].map { "\($0.name) (\($0.identity.short))" } ?? id.short }

    /// The peer that carries the conversation with another one; nil if none does. Loop only.
    func carrier(of peer: Peer) -> PeerID? {
        peer.transport == RelayAddress.scheme ? introductions.relays.transport.carrier(of: peer.id) : nil
    }

    /// Warns of a peer before a conversation with it begins. After that, its key counts as known.
    private func warn(of event: SessionEvent) {
        let peer: Peer
        switch event {
        case .connecting(let other): peer = other
        case .invited(let invitation): peer = invitation.peer
        case .pairingCode(let other, _): peer = other
        default: return
        }
        guard let warning = PeerWarning(peer) else { return }
        // A warning may be repeated, and none is left out: strangers can use any number of keys.
        if warned.count == Self.maximumWarned { warned.removeAll() }
        if warned.insert(peer.id).inserted { onRemark("\(warning)") }
    }

    /// The maximum number of peers that the command remembers to have warned of.
    private static let maximumWarned = 1_000

    /// Whether the user named the transports, and so wants to know when one does not work.
    var transportsWereNamed: Bool { options.transports != nil }

    /// The errors of all transports, if none of them works. Loop only.
    var transportsUnavailable: TransportsUnavailable? {
        let errors = transports.compactMap { transportErrors[$0.scheme] }
        guard errors.count == transports.count else { return nil }
        return TransportsUnavailable(errors: errors, checkCodes: errors.compactMap { checkCode(of: $0) })
    }

    /// The code of the check of `nigh doctor` that explains an error; nil if none does. Loop only.
    func checkCode(of error: NighError) -> String? {
        CheckCode.code(of: error)
            ?? transports.first { $0.scheme == error.transport }.flatMap {
                CheckCode.code(of: error, saidBy: $0)
            }
    }

    /// Writes an error that does not end the command, with the code of the check that explains it. Loop only.
    func remark(_ error: NighError) {
        onRemark(CheckCode.text(of: results.named(error), checkCode(of: error).map { [$0] } ?? []))
    }

    /// The errors of all transports, if none of them works or has worked. Loop only.
    var transportsUnusable: TransportsUnavailable? { hasWorked ? nil : transportsUnavailable }

    /// Returns the errors of all transports once it turns out that none of them works; nil if that is not so within 30
    /// s, or if the task is cancelled.
    func unusableTransports() async -> TransportsUnavailable? {
        // A transport may take a moment to report that it does not work, and longer on a busy machine.
        for _ in 0..<30 {
            do { try await Task.sleep(for: .seconds(1)) } catch { return nil }
            if let unusable = await onLoop({ $0.transportsUnusable }) { return unusable }
        }
        return nil
    }

    /// Requests the end of the command once it turns out that no transport works. The task returns the errors then, and
    /// nil otherwise. A stop request ends the task.
    func stopIfUnusable(_ stopRequest: StopRequest) -> Task<TransportsUnavailable?, Never> {
        let task = Task {
            let unusable = await unusableTransports()
            if unusable != nil { stopRequest.request() }
            return unusable
        }
        stopRequest.onRequest { task.cancel() }
        return task
    }

    /// Waits until the command is interrupted, or it turns out that no transport works. Returns the errors then.
    func waitForEnd(_ stopRequest: StopRequest) async -> TransportsUnavailable? {
        let unusable = stopIfUnusable(stopRequest)
        await withCheckedContinuation { continuation in stopRequest.onRequest { continuation.resume() } }
        return await unusable.value
    }

    /// Runs `body` on the loop and returns its result.
    func onLoop<Value: Sendable>(_ body: @escaping @Sendable (CommandSession) -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in continuation.resume(returning: body(self)) }
        }
    }
}

/// Leads from the layer that invites guests to the session that is made with it.
///
/// `@unchecked Sendable`: set before the session starts, then read on its loop.
private final class GuestInvitationRelay: @unchecked Sendable {
    weak var session: CommandSession?
}

/// The error that none of the requested transports works here.
struct TransportsUnavailable: ExplainedError, CustomStringConvertible {
    let errors: [NighError]
    var checkCodes: [String] = []

    var description: String {
        "no transport works here: \(errors.map(\.description).joined(separator: "; ")); run `nigh doctor` for details"
    }
}
