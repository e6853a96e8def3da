import NighCore

/// One way of using sessions that is measured.
struct Scenario: Sendable {
    /// How messages are sent: in bursts that the receiver starts, except where the session itself holds the sender
    /// back.
    enum Sender {
        /// `trySend` on the loop.
        case loop
        /// `trySend` on the loop, unreliable.
        case unreliable
        /// `trySend` from a thread of its own.
        case thread
        /// `await send` from a task of the global pool.
        case task
    }

    /// How messages are received.
    enum Receiver {
        /// The handler on the loop.
        case handler
        /// `messages.poll()` on the loop.
        case poll
        /// `await messages.next()` in a task that prefers the loop.
        case loopTask
        /// `await messages.next()` in a task of the global pool.
        case task
    }

    enum Kind {
        case stream(Sender, Receiver)
        /// A message there and its answer back, from handler to handler.
        case roundTrip
        /// Each message to this many peers at once.
        case broadcast(Int)
        /// Bytes one way on a stream of a session.
        case bytes
        /// No session: bytes one way over the pipe of a socket.
        case socket
    }

    let name: String
    let kind: Kind
    let loops: SessionGroup.Loops
    let sizes: [Int]
    var security = SessionSecurity.none
    /// The longest message that it can carry.
    var largestSize = 16 << 20
    /// The sizes that `--allocations` checks, and the most heap allocations per message that it allows.
    var checked: [(size: Int, limit: Double)] = []

    /// None, except for another chunk or the growth of an array when threads happen to run in another order: 200 blocks
    /// in a run of 200,000 messages. One block for each message would be a thousand times that.
    private static let none = 0.001

    /// The limit for large messages: 200 blocks in a run of 20,000. A chunk is new where a thread lost its processor
    /// while it held another, and how often that happens does not depend on the number of messages.
    private static let noneOfLarge = 0.01

    /// The limit for 64 KiB on a stream: the frames that give credit need another small chunk now and then, 109 in
    /// 20,000 messages.
    private static let controlChunks = 0.01

    // Under TLS, libssl takes and gives back two blocks to seal a record and two to open it. The limits below count
    // these: a burst of 512 small messages in at most three records; 64 KiB in four and a half, or five if sent alone.
    // Nigh adds none. A burst may need a fourth record, because it was cut differently or an acknowledgement left
    // separately: whether the first bursts leave together or one by one is decided by other programs that want the
    // processors, and stays so for the whole run. And the longer a run takes, the more keep-alive it includes.

    /// The limit for keep-alive per message under TLS, at eight blocks a time: at most one block in 100 messages.
    private static let keepAlive = 0.01

    static let all: [Scenario] = [
        Scenario(
            name: "stream", kind: .stream(.loop, .handler), loops: .one,
            sizes: [16, 64, 1 << 10, 16 << 10, 64 << 10, 1 << 20],
            checked: [
                (64, none), (16 << 10, noneOfLarge), (64 << 10, noneOfLarge), (1 << 20, noneOfLarge),
            ]),
        Scenario(
            name: "stream-2", kind: .stream(.loop, .handler), loops: .two,
            sizes: [16, 64, 1 << 10, 16 << 10, 64 << 10, 1 << 20], checked: [(64, none)]),
        Scenario(
            name: "unreliable", kind: .stream(.unreliable, .handler), loops: .one, sizes: [64, 1 << 10],
            largestSize: SessionLimits().unreliableMessage, checked: [(64, none)]),
        Scenario(
            name: "thread", kind: .stream(.thread, .handler), loops: .one, sizes: [64, 1 << 10, 64 << 10],
            checked: [(64, none)]),
        Scenario(
            name: "task", kind: .stream(.task, .handler), loops: .one, sizes: [64, 1 << 10, 64 << 10]),
        Scenario(
            name: "poll", kind: .stream(.loop, .poll), loops: .one, sizes: [64, 1 << 10],
            checked: [(64, none)]),
        Scenario(
            name: "inbox", kind: .stream(.loop, .loopTask), loops: .one, sizes: [64, 1 << 10]),
        Scenario(
            name: "inbox-pool", kind: .stream(.loop, .task), loops: .one, sizes: [64, 1 << 10]),
        Scenario(
            name: "broadcast-8", kind: .broadcast(8), loops: .one, sizes: [64, 1 << 10]),
        Scenario(
            name: "round-trip", kind: .roundTrip, loops: .one,
            sizes: [64, 1 << 10, 64 << 10, 1 << 20], checked: [(64, none), (1 << 20, noneOfLarge)]),
        Scenario(
            name: "round-trip-2", kind: .roundTrip, loops: .two,
            sizes: [64, 1 << 10, 64 << 10, 1 << 20], checked: [(64, none), (1 << 20, noneOfLarge)]),
        Scenario(
            name: "bytes", kind: .bytes, loops: .one, sizes: [1 << 10, 64 << 10],
            checked: [(1 << 10, none), (64 << 10, controlChunks + noneOfLarge)]),
        Scenario(
            name: "socket", kind: .socket, loops: .two, sizes: [64, 1 << 10, 64 << 10],
            checked: [(64, none), (64 << 10, noneOfLarge)]),
        Scenario(
            name: "tls", kind: .stream(.loop, .handler), loops: .one,
            sizes: [16, 64, 1 << 10, 16 << 10, 64 << 10, 1 << 20], security: .encrypted,
            checked: [(64, 16.0 / 512 + none), (64 << 10, 20 + keepAlive)]),
        Scenario(
            name: "tls-round-trip", kind: .roundTrip, loops: .one, sizes: [64, 1 << 10, 64 << 10, 1 << 20],
            security: .encrypted, checked: [(64, 8 + keepAlive), (64 << 10, 40 + keepAlive)]),
    ]

    func measure(size: Int, warmUp: Int, until: Meter.Until) async throws -> Measurement {
        switch kind {
        case .stream(let sender, let receiver):
            let stream = Stream(
                sender: sender, receiver: receiver, loops: loops, size: size, security: security)
            return try await stream.measure(warmUp: warmUp, until: until)
        case .broadcast(let count):
            let stream = Stream(
                sender: .loop, receiver: .handler, loops: loops, size: size, receiverCount: count)
            return try await stream.measure(warmUp: warmUp, until: until)
        case .bytes:
            return try await ByteTraffic(loops: loops, size: size, security: security)
                .measure(warmUp: warmUp, until: until)
        case .socket: return try await SocketTraffic(size: size).measure(warmUp: warmUp, until: until)
        case .roundTrip:
            return try await RoundTrip(loops: loops, size: size, security: security)
                .measure(warmUp: warmUp, until: until)
        }
    }
}
