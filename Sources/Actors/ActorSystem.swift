import Distributed
import Nigh
import NighCalls
import NighCore
import Synchronization

/// Distributed actors over the peers of a session: programs call actors of each other as they call their own.
///
/// Calls of one task to one actor start in the order in which they were made, and none waits for the end of another. A
/// call survives a change of wire and is made at most once. If the conversation ends first, the error says whether the
/// call may have been made. If the caller's task is cancelled, the call fails at once and its task at the peer is
/// cancelled. An actor that is slow to start calls slows its callers down.
///
/// Actors are called through the methods of a contract only: a protocol with `@Resolvable`, which both programs have,
/// or a type of actors. No type is made because a peer has named it.
///
/// The system keeps the actors that are published, and is kept by the session until that has closed.
public final class ActorSystem: DistributedActorSystem, Sendable {
    /// Values travel if they are `Codable`.
    public typealias SerializationRequirement = Codable

    struct State {
        var actors = ActorTable()
        var listings = Listings()
        var streams = IncomingStreams()
        var statistics = MethodStatistics()
        /// The methods of contracts that were looked up, by their names at the runtime or at a peer.
        var calledMethods: [String: CalledMethod] = [:]
        var foundMethods: [MethodFinding.Key: MethodFinding] = [:]
        var isClosed = false
    }

    let session: SessionReference
    let calls: Calls
    /// The PeerID of the session.
    public let peer: PeerID
    /// How long a call waits for its result; nil waits until the result comes or the conversation ends.
    public let timeout: Duration?
    let errors: ErrorAllowance
    /// The bytes of the longest message that this session takes.
    let messageLimit: Int
    let state = Guarded(State())
    private let streamNumbers = Atomic<UInt64>(0)

    /// Makes the system of a session. Make it before peers connect, or at least before they call. A session has one.
    ///
    /// - Parameters:
    ///   - session: A session that was made by its service.
    ///   - timeout: How long a call waits for its result; see also ``withTimeout(_:operation:)``.
    ///   - errors: The types of errors that actors throw to peers, and that peers may throw here. Of other errors the
    ///     caller gets a ``RemoteError``.
    public init(
        _ session: Session, timeout: Duration? = .seconds(30), errors: [any (Error & Codable).Type] = []
    ) throws(NighError) {
        guard let calls = session.layer(Calls.self) else {
            throw NighError(
                .configuring, .unsupported("a session that was made without calls"),
                advice: "make the session by its service")
        }
        self.session = session.reference
        self.calls = calls
        self.timeout = timeout
        self.errors = ErrorAllowance(errors)
        messageLimit = session.configuration.limits.message
        peer = session.id
        try calls.add(self)
    }

    /// The peer whose call the present task works on; nil outside of the calls of peers.
    public static var currentPeer: Peer? { CallScope.current?.peer }

    /// The number of entries in the tables that peers fill: the actors that they list, the streams that wait, and the
    /// methods that were called.
    package var counts: (listed: Int, streams: Int, methods: Int) {
        state.withLock { state in
            let methods = state.foundMethods.count + state.calledMethods.count + state.statistics.count
            return (state.listings.count, state.streams.count, methods)
        }
    }

    func newStreamNumber() -> UInt64 { streamNumbers.wrappingAdd(1, ordering: .relaxed).newValue }

    // MARK: Actors of this program

    /// Gives a new actor an ID that nobody can guess.
    public func assignID<Act: DistributedActor>(_ type: Act.Type) -> ActorID where Act.ID == ActorID {
        ActorID(peer: peer, localID: .number(state.withLock { $0.actors.assignNumber() }))
    }

    /// Notes that an actor can be called.
    public func actorReady<Act: DistributedActor>(_ actor: Act) where Act.ID == ActorID {
        guard case .number(let number) = actor.id.localID else { return }
        state.withLock { $0.actors.setReady(actor, number: number) }
    }

    /// Forgets an actor that is gone.
    public func resignID(_ id: ActorID) {
        guard case .number(let number) = id.localID else { return }
        state.withLock { $0.actors.resign(number) }
    }

    /// Returns the actor of this program with that ID, or nil for one of a peer. Fails if this program has none.
    public func resolve<Act: DistributedActor>(
        id: ActorID, as type: Act.Type
    ) throws -> Act? where Act.ID == ActorID {
        guard id.peer == peer else { return nil }
        let actor = state.withLock { $0.actors.actor(id.localID) }
        guard let actor else {
            throw NighError(.calling, .unsupported("the actor \(id): this program has none with that ID"))
        }
        // Another type is that of a contract, under which the actor is called as if from outside.
        return actor as? Act
    }

    // MARK: Calls

    /// Begins to encode a call.
    public func makeInvocationEncoder() -> InvocationEncoder { InvocationEncoder(ValueContext(self)) }

    /// Has the calls in `operation` fail that have no result by the end of `timeout`, which counts from now and takes
    /// the place of the system's own. Calls that the called actors make in turn get the time that is left.
    public nonisolated(nonsending) func withTimeout<Result>(
        _ timeout: Duration, operation: nonisolated(nonsending) () async throws -> Result
    ) async rethrows -> Result {
        var scope = CallScope.current ?? CallScope()
        scope.deadline = min(scope.deadline, session.loop.now + Moment.Span(timeout))
        return try await CallScope.$current.withValue(scope, operation: operation)
    }
}

/// The circumstances of the calls that a task makes or works on.
struct CallScope: Sendable {
    @TaskLocal static var current: CallScope?

    /// The peer whose call the task works on.
    var peer: Peer?
    /// When the calls of the task have to be over.
    var deadline = Moment.never
}
