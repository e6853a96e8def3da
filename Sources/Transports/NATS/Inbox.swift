import NighCore

/// The events of a client's threads for the loop, in order.
///
/// One `execute` brings any number of events to the loop. The bytes of packets are copied into chunks that many packets
/// share, so a packet that is received allocates nothing once the pool has grown.
///
/// At most ``limit`` bytes of packets wait. Further packets are dropped and reported once, until the loop has taken
/// them. Callable from any thread.
///
/// `@unchecked Sendable`: only the loop touches `taken`, and the lock guards the rest.
final class Inbox: @unchecked Sendable {
    enum Event: Sendable {
        /// The library was loaded, and this is its version.
        case loaded(String)
        /// The client's thread hangs in a call of the library.
        case hung(NighError)
        case connected(ServerFacts)
        case disconnected(NighError)
        /// Something failed, and the connection goes on.
        case failed(NighError)
        case refused(NATSProblem.Refusal)
        case packet(ByteSlice, subject: String, answers: String?)
        case foundNobody(String)
        case marked(UInt64)
        case hasRoom
        case roundTrip(Moment.Span)
    }

    /// The most bytes of packets that wait. Bytes that the loop has taken and not delivered yet do not count.
    static let limit = 64 << 20
    /// The memory of a packet besides its bytes.
    private static let packetOverhead = 64
    private static let chunkSize = 256 << 10
    private static let keptChunks = 16
    /// If a burst has grown an array beyond this many elements, its memory is released.
    private static let keptCapacity = 16_384

    private struct State {
        var events = ContiguousArray<Event>()
        var byteCount = 0
        /// The number of the connection whose packets count.
        var generation: UInt64 = 0
        var isScheduled = false
        var isDropping = false
        var isClosed = false
        var chunk: Chunk?
        var pool = ChunkPool(chunkSize: chunkSize, keepAtMost: keptChunks)

        mutating func copy(_ bytes: UnsafeRawBufferPointer) -> ByteSlice {
            if var current = chunk.take() {
                // A chunk without readers is still in the processor's cache.
                _ = Chunk.rewindIfUnshared(&current)
                if current.room >= bytes.count {
                    chunk = current
                } else {
                    pool.recycle(current)
                }
            }
            let chunk = chunk ?? (bytes.count <= Inbox.chunkSize ? pool.take() : Chunk(capacity: bytes.count))
            self.chunk = chunk
            let start = chunk.filled
            chunk.append(bytes)
            return chunk.slice(from: start)
        }
    }

    private let loop: any EventLoop
    private let deliver: @Sendable () -> Void
    private let state = Guarded(State())
    private var taken = ContiguousArray<Event>()

    /// - Parameter deliver: is run on the loop when something has come, and calls `takeAll`.
    init(on loop: any EventLoop, deliver: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.deliver = deliver
    }

    /// Begins the connection numbered `generation`: reports of others are ignored.
    func connect(_ generation: UInt64, _ facts: ServerFacts) {
        change { state in
            state.generation = generation
            state.events.append(.connected(facts))
        }
    }

    /// Ends the connection: later reports of it are ignored.
    func disconnect(_ error: NighError) {
        change { state in
            state.generation = 0
            state.events.append(.disconnected(error))
        }
    }

    /// Adds an event of the connection numbered `generation`, or of none.
    func add(_ event: Event, of generation: UInt64? = nil) {
        change { state in
            guard generation == nil || generation == state.generation else { return }
            state.events.append(event)
        }
    }

    /// Adds a copy of a packet of the connection numbered `generation`. The loop gets it with the next event, or after
    /// ``deliverPackets()``.
    func addPacket(
        _ bytes: UnsafeRawBufferPointer, subject: @autoclosure () -> String,
        answers: @autoclosure () -> String?, of generation: UInt64
    ) {
        state.withLock { state in
            guard !state.isClosed, generation == state.generation else { return }
            guard state.byteCount < Self.limit else {
                if !state.isDropping {
                    state.events.append(.failed(NATSProblem.slowReader(limit: Self.limit)))
                }
                state.isDropping = true
                return
            }
            state.byteCount += bytes.count + Self.packetOverhead
            state.events.append(.packet(state.copy(bytes), subject: subject(), answers: answers()))
        }
    }

    /// Brings the loop the packets that were added, all at once.
    func deliverPackets() { change { _ in } }

    private func change(_ body: (inout State) -> Void) {
        let isFirst = state.withLock { state in
            guard !state.isClosed else { return false }
            body(&state)
            guard !state.isScheduled, !state.events.isEmpty else { return false }
            state.isScheduled = true
            return true
        }
        if isFirst { loop.execute(deliver) }
    }

    // MARK: On the loop

    /// Calls `body` with everything that waits, until it returns false.
    func takeAll(_ body: (borrowing Event) -> Bool) {
        state.withLock { state in
            swap(&state.events, &taken)
            state.byteCount = 0
            state.isDropping = false
            state.isScheduled = false
        }
        for event in taken { guard body(event) else { break } }
        taken.removeAll(keepingCapacity: taken.count <= Self.keptCapacity)
    }

    /// Drops everything, from now on too.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.events = []
            state.chunk = nil
        }
    }
}

/// The facts that the server of a connection has given.
struct ServerFacts: Sendable {
    /// The number of the connection. Never used twice.
    let generation: UInt64
    let server: ServerAddress
    let version: String
    let isEncrypted: Bool
    let longestPacket: Int
}
