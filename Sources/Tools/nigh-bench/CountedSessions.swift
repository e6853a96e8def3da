import NighCore
import NighTCP
import NighUV

/// One session that calls and others that it has called, over TCP on loopback, on a loop for each of the two sides.
///
/// Each side has a thread of its own, so that its cost can be counted apart.
struct CountedSessions: Sendable {
    let caller: Session
    let answerers: [Session]
    /// The places at which the answerers listen.
    let addresses: [TransportAddress]
    private let loops: [UVEventLoop]

    /// How the sessions take messages.
    struct Handlers: Sendable {
        var atCaller: MessageHandler
        /// Gets the session that the message has come to.
        var atAnswerers: @Sendable (Session, RawSpan, MessageOrigin) -> Void
    }

    /// Starts the sessions, and waits until the answerers listen.
    static func start(
        answerers count: Int = 1, security: SessionSecurity, datagrams: Bool = false, handlers: Handlers
    ) async throws -> CountedSessions {
        let loops = [UVEventLoop(), UVEventLoop()]
        let caller = session("caller", .client, security, datagrams, on: loops[0])
        caller.start(onEvent: { _ in }, onMessage: handlers.atCaller)
        var answerers: [Session] = []
        var addresses: [TransportAddress] = []
        for number in 0..<count {
            let answerer = session("answerer-\(number)", .server, security, datagrams, on: loops[1])
            let (ports, port) = AsyncStream.makeStream(of: TransportAddress.self)
            answerer.start(
                onEvent: { event in
                    switch event {
                    case .listening(_, let addresses): if let first = addresses.first { port.yield(first) }
                    case .invited(let invitation): invitation.accept()
                    default: break
                    }
                },
                onMessage: { [unowned answerer] in handlers.atAnswerers(answerer, $0, $1) })
            guard let address = await ports.first(where: { _ in true }) else {
                throw NighError(.starting, .closed)
            }
            answerers.append(answerer)
            let parts = address.value.split(separator: ":")
            addresses.append(
                TransportAddress(scheme: address.scheme, value: "127.0.0.1:\(parts.last ?? "")"))
        }
        return CountedSessions(caller: caller, answerers: answerers, addresses: addresses, loops: loops)
    }

    private static func session(
        _ name: String, _ role: SessionRole, _ security: SessionSecurity, _ datagrams: Bool,
        on loop: UVEventLoop
    ) -> Session {
        var configuration = SessionConfiguration(
            service: "bench", name: DisplayName(fitting: name), role: role)
        configuration.security = security
        configuration.datagrams = datagrams
        configuration.seed = 1
        configuration.timings = .counted
        var options = TCPOptions()
        options.discovery = .off
        return Session(
            configuration, identity: .ephemeral(), transports: [TCPTransport(options)], loop: loop)
    }

    /// Connects the caller with all answerers.
    func connect() async throws {
        for address in addresses { _ = try await caller.invite(at: address) }
    }

    /// Waits until packets pass between the caller and the first answerer. They are tried once there is something to
    /// send by them.
    func waitForPackets() async throws {
        while caller.peers.first?.hasDatagrams != true {
            try caller.trySend([UInt8](), to: answerers[0].id, .unordered)
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Waits for the count, and closes the sessions and the loops.
    func close(after counter: OperationCounter) async throws -> UInt64 {
        let allocations = try await counter.allocations
        await caller.close()
        for answerer in answerers { await answerer.close() }
        for loop in loops { loop.shutdown() }
        return allocations
    }
}

extension SessionTimings {
    /// Timings with which nothing is sent because time has passed. Under callgrind a session does less in a second, and
    /// on a busy machine less still.
    static var counted: SessionTimings {
        var timings = SessionTimings()
        timings.acknowledge = .seconds(3_600)
        timings.pingAfter = .seconds(3_600)
        timings.loseAfter = .seconds(7_200)
        timings.handshake = .seconds(3_600)
        timings.dial = .seconds(3_600)
        timings.nextRoute = .seconds(3_600)
        return timings
    }
}

/// The peers that the caller sends to.
///
/// `@unchecked Sendable`: set on the caller's loop before anything is sent, and unchanged since.
final class CountedTarget: @unchecked Sendable {
    @exclusivity(unchecked) private var session: Session?
    @exclusivity(unchecked) private var peers: [PeerID] = []
    private var onLeaving: @Sendable () -> Void = {}

    func set(_ session: Session, _ peers: [PeerID], onLeaving: @escaping @Sendable () -> Void = {}) {
        self.session = session
        self.peers = peers
        self.onLeaving = onLeaving
    }

    /// Sends a message to all peers. Caller's loop only.
    func send(_ payload: ByteSlice, _ reliability: Reliability) {
        guard let session else { return }
        if peers.count == 1 {
            Bursts.demand { try session.trySend(payload, to: peers[0], reliability) }
        } else {
            Bursts.demand { try session.trySend(payload, to: peers, reliability) }
        }
    }

    /// Runs work on the caller's loop.
    func execute(_ work: @escaping @Sendable () -> Void) { session?.loop.execute(work) }

    /// Leaves a peer, and reports it once that is done.
    func leave(_ peer: PeerID) {
        session?.disconnect(peer) { [onLeaving] _ in onLeaving() }
    }
}

/// Counts messages that arrive, and says when a burst is complete.
///
/// `@unchecked Sendable`: confined to the answerers' loop.
final class BurstArrivals: @unchecked Sendable {
    private let burst: Int
    private var arrived = 0

    init(of burst: Int) { self.burst = burst }

    @inline(__always)
    func areComplete() -> Bool {
        arrived &+= 1
        guard arrived == burst else { return false }
        arrived = 0
        return true
    }
}
