import NighCore
import Synchronization

/// The calls of one session: questions of programs with their answers, and calls to actors.
///
/// A layer of its session. The questions to a peer travel in one stream that this session opens, the calls to each of
/// its actors in another, and the peer's calls in streams of the peer. So all survive a change of wire, and each call
/// is answered once, or its caller gets an error.
///
/// `@unchecked Sendable`: properties marked "loop only" are touched on the session's loop, the others with the lock
/// held.
package final class Calls: ConversationLayer, @unchecked Sendable {
    /// Answers a question. Its task is cancelled when the caller waits no longer.
    package typealias Handler = @Sendable (_ content: ByteSlice, _ peer: Peer) async -> CallOutcome

    private struct State {
        var session: SessionReference?
        var messageLimit = 0
        var handlers: [String: Handler] = [:]
        var host: (any ActorHost)?
    }

    /// The other end of calls: a peer, and the name of an actor's stream, which is empty for questions.
    private struct Address: Hashable {
        let peer: PeerID
        let actor: String
    }

    /// The calls of one peer that are worked on.
    private struct Running {
        var count = 0
        var bytes = 0

        var isAtLimit: Bool { count >= Calls.mostRunningOfPeer || bytes >= Calls.mostRunningBytes }
    }

    /// The number of calls in one stream that are worked on at once. Further ones wait, and so does the peer.
    package static let mostRunning = 256
    /// The number of calls of one peer that are worked on at once, in all of its streams.
    package static let mostRunningOfPeer = 1_024
    /// The bytes of the calls of one peer that are worked on. The last call may exceed it.
    package static let mostRunningBytes = 16 << 20
    /// The number of calls to one peer that are under way. Further ones fail.
    package static let mostUnderWay = 65_536
    /// The number of streams to the actors of one peer that stay open without calls.
    static let mostIdleStreams = 64

    private let state = Mutex(State())
    private let tokens = Atomic<UInt64>(0)

    // Loop only.
    private var outgoing: [Address: CallsToPeer] = [:]
    private var incoming: [Address: CallsFromPeer] = [:]
    /// The calls whose tasks run, of each peer, also of callers that have left.
    private var running: [PeerID: Running] = [:]
    /// The calls of the program that are not over, by the caller's tokens.
    private var underWay: [UInt64: (calls: CallsToPeer, number: UInt64)] = [:]
    private var underWayCounts: [PeerID: Int] = [:]
    /// The streams with which peers say which actors they have, until this program has a host for actors.
    private var listings: [PeerID: ByteStream] = [:]

    package init() {}

    // MARK: The layer

    /// The purposes of streams for calls and actors.
    package var purposes: [StreamPurpose] { [.calls, .actors] }

    /// Begins to carry the calls of a session.
    package func attach(to session: Session) {
        state.withLock { state in
            state.session = session.reference
            state.messageLimit = session.configuration.limits.message
        }
    }

    private var session: SessionReference? { state.withLock(\.session) }
    private var host: (any ActorHost)? { state.withLock(\.host) }

    /// Takes a stream in which a peer makes its calls, or one for its actors.
    package func receive(_ stream: ByteStream) {
        if stream.purpose == .actors, !ActorStream.carriesCalls(stream.name) {
            if let host { return host.receive(stream) }
            guard stream.name == ActorStream.listing else {
                return stream.cancel(because: "this program has no actors")
            }
            listings[stream.peer] = stream
            return
        }
        let (session, limit) = state.withLock { ($0.session, $0.messageLimit) }
        guard let session else { return }
        let address = Address(peer: stream.peer, actor: stream.purpose == .actors ? stream.name : "")
        incoming[address]?.end(NighError(.asking, .superseded))
        let calls = CallsFromPeer(stream, of: self, on: session.loop, messageLimit: limit)
        incoming[address] = calls
        calls.proceed()
    }

    func streamEnded(_ calls: CallsFromPeer, of peer: PeerID, to actor: String?) {
        let address = Address(peer: peer, actor: actor ?? "")
        if incoming[address] === calls { incoming[address] = nil }
    }

    /// Passes the event to the actors.
    package func handle(_ event: SessionEvent) {
        if case .disconnected(let peer, _) = event { listings[peer.id] = nil }
        host?.handle(event)
    }

    /// Lets the actors go.
    package func sessionDidClose() {
        state.withLock { state in
            defer { state.host = nil }
            return state.host
        }?.sessionDidClose()
    }

    /// The number of calls that are not over, to and from all peers, and of the tasks that work on calls. Loop only.
    package var counts: (outgoing: Int, incoming: Int, running: Int) {
        (
            outgoing.values.reduce(0) { $0 + $1.count }, incoming.values.reduce(0) { $0 + $1.count },
            running.values.reduce(0) { $0 + $1.count }
        )
    }

    // MARK: Answering

    /// Answers questions of this name. Fails if that is done already, or if nothing can have that name.
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

    /// Answers questions of this name no longer. Those that have begun go on.
    package func stopAnswering(_ name: String) { state.withLock { $0.handlers[name] = nil } }

    /// Passes everything that concerns actors to `host`, also the peers that are connected already. Keeps it until the
    /// session has closed. Fails if the session has a host.
    package func add(_ host: any ActorHost) throws(NighError) {
        let session = try state.withLock { state throws(NighError) in
            guard let session = state.session else { throw NighError(.configuring, .closed) }
            guard state.host == nil else {
                throw NighError(
                    .configuring, .invalid("system of actors: the session has one already"),
                    advice: "use that one for all actors of the session")
            }
            state.host = host
            return session
        }
        session.loop.execute { [self] in
            for peer in session.connectedPeers { host.handle(.connected(peer)) }
            for stream in listings.values { host.receive(stream) }
            listings = [:]
        }
    }

    func mayBegin(_ peer: PeerID) -> Bool { !(running[peer]?.isAtLimit ?? false) }

    /// Makes the task of a call, which the caller begins. Passes the outcome to `completion`, on the loop. Returns nil
    /// if nobody answers calls of that name.
    func begin(
        _ call: IncomingCalls.Call, from peer: PeerID, to actor: String?, in calls: CallsFromPeer,
        completion: @escaping (CallOutcome?) -> Void
    ) -> RunningCall? {
        let (session, handler, host) = state.withLock { ($0.session, $0.handlers[call.name], $0.host) }
        guard let session, actor != nil || handler != nil else { return nil }
        running[peer, default: Running()].count += 1
        running[peer]?.bytes += call.content.count
        let sender = session.peer(peer)
        let work = { @Sendable () async -> CallOutcome in
            guard let actor else { return await handler?(call.content, sender) ?? .unknownName }
            guard let host else { return .refused(.noActor, "the program there has no actors") }
            return await host.answer(
                ActorCall(
                    actor: actor, method: call.name, arguments: call.content, peer: sender,
                    deadline: call.deadline))
        }
        let ended = LoopBound(
            { [weak self, weak calls] outcome in
                completion(outcome)
                self?.taskEnded(of: peer, call.content.count, in: calls)
            }, on: session.loop)
        return RunningCall(work) { outcome in session.loop.execute { ended.value(outcome) } }
    }

    /// Returns an outcome that the peer can take. The program hears of an answer that is too long: the peer would end
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

    private func taskEnded(of peer: PeerID, _ bytes: Int, in calls: CallsFromPeer?) {
        guard var left = running[peer] else { return }
        let wasAtLimit = left.isAtLimit
        left.count -= 1
        left.bytes -= bytes
        running[peer] = left.count == 0 ? nil : left
        calls?.proceed()
        guard wasAtLimit else { return }
        for (address, calls) in incoming where address.peer == peer { calls.proceed() }
    }

    // MARK: Calling

    /// Asks the peer, or calls one of its actors, and waits for the outcome. Fails if there is none within `timeout`.
    /// If the task is cancelled, the call fails at once, and the peer's task for it is cancelled.
    ///
    /// - Parameters:
    ///   - name: the name of the question; of a method up to `CallRecord.longestNumberedName` bytes.
    ///   - actor: the name of the actor's stream; nil asks the peer's program.
    package nonisolated(nonsending) func call(
        _ name: String, _ content: ByteSlice, at peer: Peer, actor: String? = nil, timeout: Duration?
    ) async throws(NighError) -> CallOutcome {
        let stage: NighError.Stage = actor == nil ? .asking : .calling
        if actor == nil { try Self.check(name) }
        guard let session else { throw NighError(stage, .closed, peer: peer.label) }
        let token = tokens.wrappingAdd(1, ordering: .relaxed).newValue
        return try await session.outcome(stage, cancelledBy: { [weak self] in self?.cancel(token) }) {
            [weak self] completion in
            guard let self else { return completion(.failure(NighError(stage, .closed, peer: peer.label))) }
            do throws(NighError) {
                try begin(
                    name, content, at: peer, actor: actor, timeout: timeout, token: token,
                    completion: completion)
            } catch {
                var error = peer.named(error)
                error.stage = stage
                completion(.failure(error))
            }
        }
    }

    private func begin(
        _ name: String, _ content: ByteSlice, at peer: Peer, actor: String?, timeout: Duration?,
        token: UInt64, completion: @escaping CallsToPeer.Completion
    ) throws(NighError) {
        let calls = try calls(to: peer, actor: actor)
        guard let session else { throw NighError(.asking, .closed) }
        let limit = try session.messageLimit(for: peer.id)
        guard content.count <= limit else {
            throw NighError(
                .asking, .messageTooLarge(size: content.count, limit: limit),
                advice: "send it as a file or through a stream")
        }
        guard underWayCounts[peer.id, default: 0] < Self.mostUnderWay else {
            throw NighError(
                .asking, .limit("calls under way", Self.mostUnderWay), advice: "wait for answers before")
        }
        let deadline = timeout.map { session.loop.now + Moment.Span($0) } ?? .never
        let number = try calls.begin(name, content, until: deadline) { [weak self] result in
            self?.ended(token, at: peer.id)
            completion(result)
        }
        underWay[token] = (calls, number)
        underWayCounts[peer.id, default: 0] += 1
        calls.proceed()
    }

    private func ended(_ token: UInt64, at peer: PeerID) {
        underWay[token] = nil
        underWayCounts[peer, default: 1] -= 1
        if underWayCounts[peer] == 0 { underWayCounts[peer] = nil }
    }

    private func calls(to peer: Peer, actor: String?) throws(NighError) -> CallsToPeer {
        let address = Address(peer: peer.id, actor: actor ?? "")
        if let calls = outgoing[address] { return calls }
        let (session, limit) = state.withLock { ($0.session, $0.messageLimit) }
        guard let session else { throw NighError(.asking, .closed) }
        if actor != nil { finishIdleStream(to: peer.id) }
        let stream = try session.openStream(
            named: address.actor, to: peer.id, for: actor == nil ? .calls : .actors)
        let calls = CallsToPeer(peer, over: stream, on: session.loop, messageLimit: limit) {
            [weak self] calls in
            if self?.outgoing[address] === calls { self?.outgoing[address] = nil }
        }
        outgoing[address] = calls
        return calls
    }

    /// Ends a stream to an actor that is not called now, if there are many. It is opened again for the next call.
    private func finishIdleStream(to peer: PeerID) {
        let open = outgoing.filter { $0.key.peer == peer && !$0.key.actor.isEmpty }
        guard open.count >= Self.mostIdleStreams else { return }
        open.first { $0.value.isIdle }?.value.finish()
    }

    private func cancel(_ token: UInt64) {
        guard let (calls, number) = underWay[token] else { return }
        calls.cancel(number)
    }

    private static func check(_ name: String) throws(NighError) {
        guard !name.isEmpty, StreamControl.isName(name) else {
            throw NighError(
                .configuring, .invalid("name of a question: \"\(name)\""),
                advice: "use 1 to 255 bytes and no control characters")
        }
    }
}
