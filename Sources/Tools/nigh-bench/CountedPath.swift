import Nigh
import NighCore

/// A path through Nigh whose instructions and allocations are counted, for the table in `Benchmarks/counts`.
struct CountedPath: Sendable {
    /// Which threads the two sides run on.
    enum Sides: String, Sendable, CaseIterable {
        /// Each side on a thread of its own. Each of the two is counted.
        case apart
        /// Both on threads of the global pool and of loops that `Nigh` makes. All threads are counted together.
        case together
    }

    let name: String
    let sides: Sides
    /// The operations that come first and are not counted, and those that are.
    let warmUp: Int
    let operations: Int
    /// Into how many parts the cost of an operation is divided: the messages of a burst, the mebibytes of a file.
    var parts = 1
    /// Does all operations. Returns the blocks that they have taken from the heap.
    let run: @Sendable (OperationCounter) async throws -> UInt64

    static let all: [CountedPath] =
        [64, 1 << 10, 16 << 10, 64 << 10].flatMap { size in
            [
                roundTrip("round-trip-\(size)", size: size, security: .none),
                roundTrip("tls-round-trip-\(size)", size: size, security: .encrypted),
            ]
        } + [
            stream(size: 64, burst: 512), stream(size: 1 << 10, burst: 32),
            connect(),
            broadcast(size: 1 << 10, peers: 8, burst: 32), datagram(size: 64),
            CountedPath(name: "tls-connect", sides: .together, warmUp: 5, operations: 10) { counter in
                try CountedHandshake().run(counter)
                return try await counter.allocations
            },
            CountedPath(name: "async-round-trip-64", sides: .together, warmUp: 50, operations: 300) {
                try await CountedTasks.roundTrip(of: [UInt8](repeating: 0x6e, count: 64), counter: $0)
            },
            CountedPath(name: "task-send-64", sides: .together, warmUp: 5, operations: 20, parts: 512) {
                try await CountedTasks.send([UInt8](repeating: 0x6e, count: 64), burst: 512, counter: $0)
            },
            CountedPath(name: "codable-round-trip", sides: .together, warmUp: 50, operations: 200) {
                try await CountedTasks.codableRoundTrip(counter: $0)
            },
            CountedPath(name: "cbor-round-trip", sides: .together, warmUp: 50, operations: 200) {
                try await CountedTasks.codableRoundTrip(CBORCoder(), counter: $0)
            },
            CountedPath(name: "channel-round-trip-64", sides: .together, warmUp: 50, operations: 300) {
                try await CountedTasks.channelRoundTrip(
                    of: [UInt8](repeating: 0x6e, count: 64), counter: $0)
            },
            CountedPath(name: "channel-send-64", sides: .together, warmUp: 5, operations: 20, parts: 512) {
                try await CountedTasks.channelSend(
                    [UInt8](repeating: 0x6e, count: 64), burst: 512, counter: $0)
            },
            CountedPath(name: "question", sides: .together, warmUp: 50, operations: 200) {
                try await CountedTasks.question(counter: $0)
            },
            CountedPath(name: "actor-call", sides: .together, warmUp: 50, operations: 200) {
                try await CountedTasks.actorCall(counter: $0)
            },
            CountedPath(name: "actor-echo-64", sides: .together, warmUp: 50, operations: 200) {
                try await CountedTasks.actorEcho(of: [UInt8](repeating: 0x6e, count: 64), counter: $0)
            },
            CountedPath(name: "file-mebibyte", sides: .together, warmUp: 1, operations: 1, parts: 8) {
                try await CountedTasks.file(mebibytes: 8, counter: $0)
            },
        ]

    /// Runs the path. Returns the blocks that its operations have taken from the heap.
    func count() async throws -> UInt64 {
        try await run(OperationCounter(warmUp: warmUp, operations: operations))
    }

    // MARK: The paths

    /// A message there and the same back, from handler to handler.
    private static func roundTrip(_ name: String, size: Int, security: SessionSecurity) -> CountedPath {
        CountedPath(
            name: name, sides: .apart, warmUp: 50, operations: size > 4_096 ? 50 : 300
        ) { counter in
            try await exchange(ByteSlice([UInt8](repeating: 0x6e, count: size)), security, counter: counter)
        }
    }

    /// A message there and the same back, as datagrams.
    private static func datagram(size: Int) -> CountedPath {
        CountedPath(
            name: "datagram-round-trip-\(size)", sides: .apart, warmUp: 50, operations: 300
        ) { counter in
            try await exchange(
                ByteSlice([UInt8](repeating: 0x6e, count: size)), .none, .unordered, counter: counter)
        }
    }

    private static func exchange(
        _ payload: ByteSlice, _ security: SessionSecurity, _ reliability: Reliability = .reliable,
        counter: OperationCounter
    ) async throws -> UInt64 {
        let target = CountedTarget()
        let sessions = try await CountedSessions.start(
            security: security, datagrams: reliability != .reliable,
            handlers: .init(
                atCaller: { bytes, _ in
                    guard bytes.byteCount == payload.count else { return }
                    if counter.operationEnded() { target.send(payload, reliability) }
                },
                atAnswerers: { session, bytes, origin in
                    bytes.withUnsafeBytes { bytes in
                        Bursts.demand { try session.trySend(bytes, to: origin.peer, reliability) }
                    }
                    if bytes.byteCount == payload.count { counter.operationEndedAtAnswerer() }
                }))
        try await sessions.connect()
        // After 100 ms the answerer makes a ticket, which costs more than a hundred round trips.
        if security == .encrypted { try await Task.sleep(for: .milliseconds(500)) }
        if reliability != .reliable { try await sessions.waitForPackets() }
        let peers = sessions.answerers.map(\.id)
        sessions.caller.loop.execute {
            target.set(sessions.caller, peers)
            target.send(payload, reliability)
        }
        return try await sessions.close(after: counter)
    }

    /// Messages one way, in bursts. A burst begins when the one before it has arrived, so bursts never mix, and a
    /// burst costs the same each time.
    private static func stream(size: Int, burst: Int) -> CountedPath {
        bursts("stream-\(size)", size: size, peers: 1, burst: burst)
    }

    /// Each message to several peers, in bursts as in `stream`.
    private static func broadcast(size: Int, peers: Int, burst: Int) -> CountedPath {
        bursts("broadcast-\(size)-to-\(peers)", size: size, peers: peers, burst: burst)
    }

    private static func bursts(_ name: String, size: Int, peers: Int, burst: Int) -> CountedPath {
        CountedPath(
            name: name, sides: .apart, warmUp: 10, operations: 40, parts: burst
        ) { counter in
            let target = CountedTarget()
            let payload = ByteSlice([UInt8](repeating: 0x6e, count: size))
            let send: @Sendable () -> Void = { for _ in 0..<burst { target.send(payload, .reliable) } }
            let arrived = BurstArrivals(of: burst * peers)
            let sessions = try await CountedSessions.start(
                answerers: peers, security: .none,
                handlers: .init(
                    atCaller: { _, _ in },
                    atAnswerers: { _, _, _ in
                        guard arrived.areComplete() else { return }
                        counter.operationEndedAtAnswerer()
                        target.execute { if counter.operationEnded() { send() } }
                    }))
            try await sessions.connect()
            let all = sessions.answerers.map(\.id)
            sessions.caller.loop.execute {
                target.set(sessions.caller, all)
                send()
            }
            return try await sessions.close(after: counter)
        }
    }

    /// From inviting to the first answer, and leaving.
    private static func connect() -> CountedPath {
        CountedPath(name: "connect", sides: .apart, warmUp: 5, operations: 25) { counter in
            let payload = ByteSlice([UInt8](repeating: 0x6e, count: 16))
            let target = CountedTarget()
            let sessions = try await CountedSessions.start(
                security: .none,
                handlers: .init(
                    atCaller: { _, origin in target.leave(origin.peer) },
                    atAnswerers: { session, bytes, origin in
                        bytes.withUnsafeBytes { bytes in
                            Bursts.demand { try session.trySend(bytes, to: origin.peer) }
                        }
                        counter.operationEndedAtAnswerer()
                    }))
            let address = sessions.addresses[0]
            let call: @Sendable () -> Void = {
                sessions.caller.invite(at: address) { result in
                    switch result {
                    case .success: target.send(payload, .reliable)
                    case .failure(let error): counter.fail(error)
                    }
                }
            }
            sessions.caller.loop.execute {
                target.set(sessions.caller, [sessions.answerers[0].id]) {
                    if counter.operationEnded() { call() }
                }
                call()
            }
            return try await sessions.close(after: counter)
        }
    }
}
