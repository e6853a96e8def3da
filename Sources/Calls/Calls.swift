import NighCore
import Synchronization

/// The calls of one session: what programs ask each other, and the answers.
///
/// A layer of its session. The calls to a peer travel in one stream that this session opens, and the peer's calls in
/// another one. So both survive a change of wire, and each call is answered once, or its caller gets an error.
///
/// `@unchecked Sendable`: what is marked "loop only" is touched on the session's loop, the rest with the lock held.
package final class Calls: ConversationLayer, @unchecked Sendable {
    /// Answers a call. Its task is cancelled when the caller waits no longer.
    package typealias Handler = @Sendable (_ content: ByteSlice, _ peer: Peer) async -> CallOutcome

    private struct State {
        var session: SessionReference?
        var messageLimit = 0
        var handlers: [String: Handler] = [:]
    }

    /// The number of calls of one peer that are worked on at once. Further ones wait, and so does the peer.
    package static let mostRunning = 256

    private let state = Mutex(State())
    private let tokens = Atomic<UInt64>(0)

    // Loop only.
    private var outgoing: [PeerID: CallsToPeer] = [:]
    private var incoming: [PeerID: CallsFromPeer] = [:]
    /// The number of tasks that work on calls of each peer, also for callers that have left.
    private var running: [PeerID: Int] = [:]
    /// Where the caller's calls went that are not over, by their tokens.
    private var destinations: [UInt64: CallsToPeer] = [:]

    package init() {}

    // MARK: The layer

    /// That of calls.
    package var purposes: [StreamPurpose] { [.calls] }

    /// Begins to carry the calls of a session.
    package func attach(to session: Session) {
        state.withLock { state in
            state.session = session.reference
            state.messageLimit = session.configuration.limits.message
        }
    }

    private var session: SessionReference? { state.withLock(\.session) }

    /// Takes the stream in which a peer makes its calls.
    package func receive(_ stream: ByteStream) {
        let (session, limit) = state.withLock { ($0.session, $0.messageLimit) }
        guard let session else { return }
        incoming[stream.peer]?.end(NighError(.asking, .superseded))
        let calls = CallsFromPeer(stream.peer, over: stream, of: self, on: session.loop, messageLimit: limit)
        incoming[stream.peer] = calls
        calls.proceed()
    }

    func streamEnded(_ calls: CallsFromPeer, of peer: PeerID) {
        if incoming[peer] === calls { incoming[peer] = nil }
    }

    /// The number of calls that are not over, to and from all peers. Loop only.
    package var counts: (outgoing: Int, incoming: Int, running: Int) {
        (
            outgoing.values.reduce(0) { $0 + $1.count }, incoming.values.reduce(0) { $0 + $1.count },
            running.values.reduce(0, +)
        )
    }

    // MARK: Answering

    /// Answers calls of this name. Fails if that is done already, or if nothing can have that name.
    package func answer(_ name: String, _ handler: @escaping Handler) throws(NighError) {
        try Self.check(name)
        let isNew = state.withLock { state in
            if state.handlers[name] != nil { return false }
            state.handlers[name] = handler
            return true
        }
        if !isNew {
            throw NighError(
                .configuring, .invalid("name of a question: \"\(name)\" is answered already"),
                advice: "use another name")
        }
    }

    /// Answers calls of this name no longer. Those that have begun go on.
    package func stopAnswering(_ name: String) { state.withLock { $0.handlers[name] = nil } }

    func handler(of name: String) -> Handler? { state.withLock { $0.handlers[name] } }

    func mayBegin(_ peer: PeerID) -> Bool { running[peer, default: 0] < Self.mostRunning }

    /// Runs a handler in a task of its own. Passes the outcome to `completion`, on the loop.
    func run(
        _ handler: @escaping Handler, _ content: ByteSlice, for peer: PeerID,
        completion: @escaping @Sendable (CallOutcome) -> Void
    ) -> Task<Void, Never>? {
        guard let session else { return nil }
        running[peer, default: 0] += 1
        let sender = session.peer(peer)
        let hasEnded: @Sendable (CallOutcome) -> Void = { [weak self] outcome in
            completion(outcome)
            self?.taskEnded(of: peer)
        }
        return Task(executorPreference: session.loop.programExecutor) {
            let outcome = await handler(content, sender)
            session.loop.execute { hasEnded(outcome) }
        }
    }

    /// Returns what the peer takes of an outcome. The program hears of an answer that is too long: the peer would end
    /// the stream because of it, and all its calls.
    func outcome(_ outcome: CallOutcome, for peer: PeerID) -> CallOutcome {
        guard let session, let limit = try? session.messageLimit(for: peer), outcome.contentCount > limit
        else {
            return outcome
        }
        session.report(
            .problem(
                NighError(
                    .sending, .messageTooLarge(size: outcome.contentCount, limit: limit),
                    peer: session.peer(peer).label,
                    advice: "answer with less, and send the rest as a file or through a stream")))
        return .error(ByteSlice([]))
    }

    private func taskEnded(of peer: PeerID) {
        running[peer, default: 1] -= 1
        if running[peer] == 0 { running[peer] = nil }
        incoming[peer]?.proceed()
    }

    // MARK: Asking

    /// Calls the peer, and waits for the outcome. Fails if there is none within `timeout`. If the task is cancelled,
    /// the call fails at once, and the peer's task for it is cancelled.
    package nonisolated(nonsending) func call(
        _ name: String, _ content: ByteSlice, at peer: Peer, timeout: Duration?
    ) async throws(NighError) -> CallOutcome {
        try Self.check(name)
        guard let session else { throw NighError(.asking, .closed, peer: peer.label) }
        let token = tokens.wrappingAdd(1, ordering: .relaxed).newValue
        return try await session.outcome(.asking, cancelledBy: { [weak self] in self?.cancel(token) }) {
            [weak self] completion in
            self?.begin(name, content, at: peer, timeout: timeout, token: token, completion: completion)
        }
    }

    private func begin(
        _ name: String, _ content: ByteSlice, at peer: Peer, timeout: Duration?, token: UInt64,
        completion: @escaping CallsToPeer.Completion
    ) {
        do throws(NighError) {
            let calls = try calls(to: peer)
            guard let session else { return }
            let limit = try session.messageLimit(for: peer.id)
            guard content.count <= limit else {
                throw NighError(
                    .asking, .messageTooLarge(size: content.count, limit: limit),
                    advice: "send it as a file or through a stream")
            }
            destinations[token] = calls
            let deadline = timeout.map { session.loop.now + Moment.Span($0) } ?? .never
            calls.begin(name, content, until: deadline, token: token) { [weak self] result in
                self?.destinations[token] = nil
                completion(result)
            }
        } catch {
            var error = peer.named(error)
            error.stage = .asking
            completion(.failure(error))
        }
    }

    private func calls(to peer: Peer) throws(NighError) -> CallsToPeer {
        if let calls = outgoing[peer.id] { return calls }
        let (session, limit) = state.withLock { ($0.session, $0.messageLimit) }
        guard let session else { throw NighError(.asking, .closed) }
        let stream = try session.openStream(named: "", to: peer.id, for: .calls)
        let calls = CallsToPeer(peer, over: stream, on: session.loop, messageLimit: limit) {
            [weak self] calls in
            if self?.outgoing[peer.id] === calls { self?.outgoing[peer.id] = nil }
        }
        outgoing[peer.id] = calls
        return calls
    }

    private func cancel(_ token: UInt64) { destinations[token]?.cancel(token: token) }

    private static func check(_ name: String) throws(NighError) {
        guard !name.isEmpty, StreamControl.isName(name) else {
            throw NighError(
                .configuring, .invalid("name of a question: \"\(name)\""),
                advice: "use 1 to 255 bytes and no control characters")
        }
    }
}
