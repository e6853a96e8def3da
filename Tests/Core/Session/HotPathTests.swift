import NighMemory
import NighTestKit
import Synchronization
import Testing

@testable import NighCore

/// Tests what the performance figures rely on: how often a pipe is written to, and where bytes are copied. `make
/// allocations` counts heap allocations.
@Suite struct HotPathTests {
    /// Two connected sessions, and the pipe between them as each side sees it.
    private final class Pair: @unchecked Sendable {
        // Confined to the test's thread, which is the virtual loop's.
        private let network: SimulatedNetwork
        private(set) var first: Session!
        private(set) var second: Session!
        private(set) var firstPipe: WatchedPipe!
        private(set) var secondPipe: WatchedPipe!
        /// Called with each message of the second session.
        var onMessage: (RawSpan) -> Void = { _ in }

        var loop: VirtualEventLoop { network.loop }

        /// Without encryption, the pipe shows what the session itself does with the bytes.
        init(security: SessionSecurity = .none) throws {
            network = SimulatedNetwork { $0.security = security }
            let one = network.join(through: WatchedPipe.watching { [unowned self] in firstPipe = $0 })
            first = one.session
            var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: "second"))
            configuration.security = security
            let watching = WatchedPipe.watching { [unowned self] in secondPipe = secondPipe ?? $0 }
            second = Session(
                configuration, identity: .ephemeral(seed: 99),
                transports: [watching(MemoryTransport(hub: network.hub()))], loop: loop)
            second.start(
                onEvent: { if case .invited(let invitation) = $0 { invitation.accept() } },
                onMessage: { [unowned self] bytes, _ in onMessage(bytes) })
            try connect(first)
            firstPipe.entries.removeAll()
            secondPipe.entries.removeAll()
        }

        private func connect(_ session: Session) throws {
            try network.run(for: .seconds(1))
            session.invite(second.id) { _ in }
            try network.run(for: .seconds(1))
        }

        /// Connects one more session to the second one.
        func connectAnother() throws -> Session {
            let session = network.join().session
            try connect(session)
            return session
        }

        /// Sends messages to the second session, which all leave in this turn.
        func send(_ message: [UInt8], times: Int) throws {
            for _ in 0..<times { try first.trySend(message, to: second.id) }
            try loop.runQueued()
        }
    }

    private let message = [UInt8](repeating: 7, count: 64)
    /// The bytes of the message on the wire.
    private let size = 64 + FrameHeader.byteCount

    @Test func `Messages of one turn leave in one write`() throws {
        let pair = try Pair()
        try pair.send(message, times: 300)
        #expect(pair.firstPipe.writeSizes == [300 * size])
        #expect(pair.firstPipe.writes[0].count == 2, "one slice of the small chunk, and one of the large")
    }

    @Test func `Lanes and unreliable messages share the write`() throws {
        let pair = try Pair()
        for _ in 0..<10 {
            try pair.first.trySend(message, to: pair.second.id, .reliable(.main))
            try pair.first.trySend(message, to: pair.second.id, .reliable(.bulk))
            try pair.first.trySend(message, to: pair.second.id, .unreliable)
        }
        try pair.loop.runQueued()
        #expect(pair.firstPipe.writeSizes == [30 * size])
    }

    @Test func `Encrypted messages of one turn leave in one write of full records`() throws {
        let pair = try Pair(security: .encrypted)
        try pair.send(message, times: 1_000)
        let plain = 1_000 * size
        let records = (plain + TLSContext.recordSize - 1) / TLSContext.recordSize
        // A record costs a header of 5 bytes, a type byte and a tag of 16.
        #expect(pair.firstPipe.writeSizes == [plain + records * 22])
    }

    @Test func `Messages from another thread leave in one write`() async throws {
        let pair = try Pair()
        let (first, peer, message) = (pair.first!, pair.second.id, message)
        try await Task.detached {
            for _ in 0..<100 { try first.trySend(message, to: peer) }
        }.value
        try pair.loop.runQueued()
        #expect(pair.firstPipe.writeSizes == [100 * size])
    }

    @Test func `All input is handled before anything is written`() throws {
        let pair = try Pair()
        var handled = 0
        pair.onMessage = { _ in
            handled += 1
            #expect(throws: Never.self) { try pair.second.trySend(self.message, to: pair.first.id) }
        }
        // More than one of the encoding chunks holds, so that the messages arrive in several slices.
        try pair.send(message, times: 1_500)
        #expect(handled == 1_500)
        let entries = pair.secondPipe.entries
        let firstWrite = try #require(entries.firstIndex { if case .wrote = $0 { true } else { false } })
        #expect(firstWrite > 1, "all came in one slice: the test shows nothing")
        #expect(entries[..<firstWrite].reduce(0) { $0 + $1.byteCount } == 1_500 * size)
        #expect(pair.secondPipe.writes.count == 1, "and the answers leave as one write")
    }

    @Test func `An answer to a lone message is written before other work`() throws {
        let pair = try Pair()
        let writes = Mutex<[Int]>([])
        pair.onMessage = { _ in
            #expect(throws: Never.self) { try pair.second.trySend(self.message, to: pair.first.id) }
            pair.loop.execute { writes.withLock { $0.append(pair.secondPipe.writes.count) } }
        }
        for _ in 0..<3 {
            try pair.first.trySend(message, to: pair.second.id)
            try pair.loop.run(for: .milliseconds(1))
        }
        #expect(writes.withLock { $0 } == [1, 2, 3])
    }

    @Test func `What several peers bring in one turn is passed on in one write`() throws {
        let pair = try Pair()
        let third = try pair.connectAnother()
        pair.onMessage = { _ in
            #expect(throws: Never.self) { try pair.second.trySend(self.message, to: pair.first.id) }
        }
        pair.secondPipe.entries.removeAll()
        for _ in 0..<5 {
            try pair.first.trySend(message, to: pair.second.id)
            try third.trySend(message, to: pair.second.id)
            try pair.loop.run(for: .milliseconds(1))
        }
        #expect(pair.secondPipe.writeSizes == Array(repeating: 2 * size, count: 5))
    }

    @Test func `A handler reads small messages where the pipe left them`() throws {
        let pair = try Pair()
        var addresses: [UnsafeRawPointer] = []
        pair.onMessage = { bytes in
            bytes.withUnsafeBytes { if let address = $0.baseAddress { addresses.append(address) } }
        }
        try pair.send(message, times: 50)
        let slice = try #require(pair.secondPipe.reads.first)
        slice.withUnsafeBytes { received in
            #expect(addresses.count == 50)
            for (index, address) in addresses.enumerated() {
                let place = index * size + FrameHeader.byteCount
                #expect(address == received.baseAddress.map { $0 + place })
            }
        }
    }

    @Test func `A large payload is written by reference`() throws {
        let pair = try Pair()
        let payload = ByteSlice([UInt8](repeating: 9, count: 64 << 10))
        var received = 0
        pair.onMessage = { received += $0.byteCount }
        try pair.first.trySend(payload, to: pair.second.id)
        try pair.loop.runQueued()
        #expect(received == payload.count)
        let own = pair.firstPipe.writes.joined().filter { $0.chunk === payload.chunk }
        #expect(own.reduce(0) { $0 + $1.count } == payload.count)
    }

    @Test func `Receiving alone writes nothing`() throws {
        let pair = try Pair()
        try pair.send(message, times: 10)
        #expect(pair.secondPipe.writes.isEmpty, "the acknowledgement can wait for something to travel with")
        try pair.loop.run(for: .milliseconds(200))
        #expect(pair.secondPipe.writes.count == 1, "but not for long")
    }
}

/// A pipe that records what passes through it, slice by slice and in order.
final class WatchedPipe: ForwardingPipe {
    enum Entry {
        /// One call of `write`, with the slices that it took.
        case wrote([ByteSlice])
        case received(ByteSlice)

        var byteCount: Int {
            switch self {
            case .wrote(let slices): slices.reduce(0) { $0 + $1.count }
            case .received(let slice): slice.count
            }
        }
    }

    let inner: any Pipe
    var entries: [Entry] = []

    var writes: [[ByteSlice]] {
        entries.compactMap { if case .wrote(let slices) = $0 { slices } else { nil } }
    }
    var writeSizes: [Int] { writes.map { $0.reduce(0) { $0 + $1.count } } }
    var reads: [ByteSlice] { entries.compactMap { if case .received(let slice) = $0 { slice } else { nil } } }

    init(_ inner: any Pipe) { self.inner = inner }

    /// Wraps a transport so that its pipes are watched. `opened` gets each of them.
    static func watching(_ opened: @escaping (WatchedPipe) -> Void) -> (any Transport) -> any Transport {
        { inner in
            RelabelledTransport(inner, scheme: inner.scheme, priority: 0) { pipe in
                let watched = WatchedPipe(pipe)
                opened(watched)
                return watched
            }
        }
    }

    func write(_ queue: inout ByteQueue) {
        entries.append(.wrote((0..<queue.sliceCount).map { queue[$0] }))
        inner.write(&queue)
    }

    func deliver(_ bytes: ByteSlice, to handler: any PipeHandler) {
        entries.append(.received(bytes))
        handler.pipe(self, received: bytes)
    }
}
