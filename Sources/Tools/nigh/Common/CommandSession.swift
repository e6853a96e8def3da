import Nigh
import NighCore
import NighRecord
import SessionArguments

/// The session of one command, on a loop of its own: it knows who is there, finds whom the command is about, and tells what it
/// hears where that was asked for.
///
/// The command gets its events and messages on the session's loop, as with any session, but no invitation for a purpose that it
/// does not take: those are declined here. All else may be called from any thread.
///
/// `@unchecked Sendable`: what changes is confined to the loop.
final class CommandSession: @unchecked Sendable {
    let session: Session
    let loop: UVEventLoop
    /// To be touched on the loop.
    let transports: [any Transport]
    /// The same without the faults that were put in front of them.
    private let bareTransports: [any Transport]
    /// Whether this is who the user always is, and not somebody new.
    let isOwnIdentity: Bool

    private let options: SessionOptions
    private let purposes: [Purpose]
    private let takesAnything: Bool
    let results: Results
    private let recorder: LinkRecorder?
    /// Everybody seen or connected now. Loop only.
    private(set) var peers: [PeerID: Peer] = [:]
    /// Why transports do not work now, by scheme. Loop only.
    private(set) var downs: [String: NighError] = [:]
    private var onEvent: EventHandler?
    /// Called for a peer that has the name of a known device and another key, once, before there is a conversation with it. Loop
    /// only.
    var onWarning: (PeerWarning) -> Void
    private var warned: Set<PeerID> = []
    private var searches: [PeerSearch] = []
    /// The calls that go on now. Loop only.
    var calls: [ObjectIdentifier: OngoingCall] = [:]

    /// Nothing happens before `start`. Fails for transports that cannot be made, and for an identity that cannot be read.
    ///
    /// - Parameters:
    ///   - purposes: what others may invite it for; the command gets those invitations, and answers them.
    ///   - takesAnything: the command gets every invitation, also those of other programs.
    init(
        _ options: SessionOptions, role: SessionRole, taking purposes: [Purpose] = [],
        takesAnything: Bool = false, results: Results,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws {
        self.options = options
        self.purposes = purposes
        self.takesAnything = takesAnything
        self.results = results
        onWarning = { results.remark("\($0)") }
        (bareTransports, transports) = try options.makeTransports()
        let (identity, trust, isOwn) = try Self.identity(options.identity, results)
        isOwnIdentity = isOwn
        var configuration = SessionConfiguration(
            service: options.service, name: try options.name ?? .ofThisUser(), role: role)
        configuration.security = options.security
        configuration.info = Purpose.info(taking: purposes)
        adjust(&configuration)
        recorder = try options.record?.begin()
        if let recorder {
            configuration.observer = configuration.observer.map { ObserverPair($0, recorder) } ?? recorder
        }
        loop = try UVEventLoop.make()
        session = Session(
            configuration, identity: identity, trust: trust, transports: transports, loop: loop)
    }

    private static func identity(_ choice: SessionOptions.IdentityChoice?, _ results: Results) throws -> (
        Identity, TrustStore, isOwn: Bool
    ) {
        switch choice {
        case .ephemeral: return (.ephemeral(), .ephemeral(), false)
        case .anybody: return (.ephemeral(), try .standard(), false)
        case .file(let file): return (try file.load(), try .standard(), true)
        case nil:
            let file = try IdentityFile()
            let identity = try file.load()
            guard IdentityClaim.take(file.path) else {
                results.remark("another program goes by your identity now, so here you are somebody new")
                return (.ephemeral(), try .standard(), false)
            }
            return (identity, try .standard(), true)
        }
    }

    /// Starts the session. Handlers are called on the loop.
    func start(onEvent: EventHandler? = nil, onMessage: MessageHandler? = nil) {
        self.onEvent = onEvent
        session.start(
            onEvent: { [self] in took($0) },
            onMessage: onMessage ?? { _, _ in })
    }

    /// The same, where messages are left to the session's `messages`: whoever is slow to read them slows the senders down.
    func startReading(onEvent: EventHandler? = nil) {
        self.onEvent = onEvent
        session.start(onEvent: { [self] in took($0) })
    }

    /// Says goodbye to everybody and ends; nothing is called afterwards.
    func close() async {
        await session.close()
        // What a transport says after its end, it says in the turns that follow.
        for error in await onLoop({ mine in
            mine.bareTransports.breaches.filter { !mine.downs.values.contains($0) }
        }) {
            results.remark("\(error)")
        }
        loop.shutdown()
        if let error = recorder?.finish() { results.remark("\(error)") }
    }

    // MARK: What happens

    private func took(_ event: SessionEvent) {
        warn(of: event)
        if options.isTalkative, let words = EventWords.words(for: event) { results.remark(words) }
        switch event {
        case .stateChanged(let peer, _, _):
            peers[peer.id] = peer.state == .unavailable ? nil : peer
        case .peerChanged(let peer): if peers[peer.id] != nil { peers[peer.id] = peer }
        case .transportChanged(let scheme, .down(let error)):
            downs[scheme] = error
            // Nobody is to think that it was the network.
            if case .contractBroken = error.cause, !options.isTalkative { results.remark("\(error)") }
        case .transportChanged(let scheme, .up): downs[scheme] = nil
        case .invited(let invitation):
            let purpose = Purpose(context: invitation.context)
            guard takesAnything || purpose.map(purposes.contains) == true else {
                return session.decline(invitation, words: Purpose.refusal(taking: purposes))
            }
        default: break
        }
        onEvent?(event)
        for search in searches { look(search) }
        for call in Array(calls.values) { call.look(at: peers) }
    }

    /// Warns of a peer that is about to be talked to. Once a conversation has begun, its key counts as known.
    private func warn(of event: SessionEvent) {
        let peer: Peer
        switch event {
        case .stateChanged(let other, _, _) where other.state == .connecting: peer = other
        case .invited(let invitation): peer = invitation.peer
        case .pairing(let other, _): peer = other
        default: return
        }
        guard let warning = PeerWarning(peer), warned.count < Self.mostWarned,
            warned.insert(peer.id).inserted
        else { return }
        onWarning(warning)
    }

    /// After that many warnings no more are given: strangers can have any number of keys.
    private static let mostWarned = 1_000

    /// Whether somebody named the transports, and so wants to hear when one does not work.
    var transportsWereAskedFor: Bool { options.transports != nil }

    /// Why nothing works, where nothing does. Loop only.
    var groundlessness: TransportsUnavailable? {
        let errors = transports.compactMap { downs[$0.scheme] }
        return errors.count == transports.count ? TransportsUnavailable(errors: errors) : nil
    }

    // MARK: Finding somebody

    /// For how long a transport may be down before it is believed that it stays so.
    private static let patienceWithGround = Moment.Span.seconds(1)

    /// `@unchecked Sendable`: what changes is touched on the loop alone.
    private final class PeerSearch: @unchecked Sendable {
        let choice: PeerChoice
        let purpose: Purpose?
        var whenOver: ((Result<Peer, any Error>) -> Void)?
        var result: Result<Peer, any Error>?

        init(_ choice: PeerChoice, _ purpose: Purpose?) {
            self.choice = choice
            self.purpose = purpose
        }
    }

    /// Waits until somebody is seen who is meant by `choice`, and does not say that they are there for other than `purpose`. Fails
    /// when nobody is by the deadline, when several are, or when no transport works. Cancelling the task ends it.
    func find(_ choice: PeerChoice, for purpose: Purpose? = nil, until deadline: Moment) async throws -> Peer
    {
        let search = PeerSearch(choice, purpose)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                loop.execute { [self] in
                    // It may have been cancelled before it began.
                    if let result = search.result { return continuation.resume(with: result) }
                    search.whenOver = { continuation.resume(with: $0) }
                    searches.append(search)
                    look(search)
                    loop.schedule(at: loop.now + Self.patienceWithGround) { [self] in
                        if let groundlessness { end(search, .failure(groundlessness)) }
                    }
                    guard deadline < .never else { return }
                    loop.schedule(at: deadline) { [self] in
                        end(search, .failure(groundlessness ?? notFound(choice)))
                    }
                }
            }
        } onCancel: {
            loop.execute { [self] in end(search, .failure(CancellationError())) }
        }
    }

    private func notFound(_ choice: PeerChoice) -> any Error {
        let others = peers.values.filter { !$0.routes.isEmpty }.map { "\($0.name) (\($0.id.short))" }.sorted()
        let seen = others.isEmpty ? "nobody is seen" : "seen are \(others.joined(separator: ", "))"
        return NighError(
            .browsing, .unknownPeer, peer: "\(choice)",
            advice:
                "\(seen); `nigh discover \(options.service)` shows who is there, `nigh doctor` what is wrong")
    }

    private func end(_ search: PeerSearch, _ result: Result<Peer, any Error>) {
        guard search.result == nil else { return }
        search.result = result
        searches.removeAll { $0 === search }
        search.whenOver?(result)
        search.whenOver = nil
    }

    private func look(_ search: PeerSearch) {
        let meant = peers.values.filter {
            search.choice.means($0) && !$0.routes.isEmpty && search.purpose?.isTaken(by: $0) != false
        }
        guard let first = meant.first else { return }
        guard meant.count == 1 else {
            let names = meant.map { "\($0.name) (\($0.id.short))" }.sorted().joined(separator: ", ")
            return end(
                search,
                .failure(
                    NighError(
                        .browsing, .invalid("choice \"\(search.choice)\": it means \(names)"),
                        advice: "name one by how its PeerID begins")))
        }
        end(search, .success(first))
    }

    /// Runs `body` on the loop and returns what it comes to.
    func onLoop<Value: Sendable>(_ body: @escaping @Sendable (CommandSession) -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in continuation.resume(returning: body(self)) }
        }
    }
}

/// No transport that was asked for works here.
struct TransportsUnavailable: Error, CustomStringConvertible {
    let errors: [NighError]

    var description: String {
        "no transport works here: \(errors.map(\.description).joined(separator: "; ")); `nigh doctor` tells more"
    }
}
