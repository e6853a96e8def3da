import NighMemory
import NighTestKit
import Synchronization
import Testing

@testable import NighCore

/// Tests what the performance figures rely on: how often a pipe is written to, and where bytes are copied. `make
/// allocations` counts heap allocations.
@Suite struct HotPathTests {
    /// Two connected sessions, and the pipe between them as each side sees it.
    final class Pair: @unchecked Sendable {
        // Confined to the test's thread, which is the virtual loop's.
        let loop = VirtualEventLoop()
        private(set) var first: Session!
        private(set) var second: Session!
        private(set) var firstPipe: WatchedPipe!
        private(set) var secondPipe: WatchedPipe!
        private let hub = MemoryHub()
        /// Called with each message of the second session.
        var onMessage: (RawSpan) -> Void = { _ in }

        private let security: SessionSecurity

        /// Without encryption, the pipe shows what the session itself does with the bytes.
        init(security: SessionSecurity = .none) throws {
            self.security = security
            first = session("first") { [unowned self] in firstPipe = $0 }
            second = session("second") { [unowned self] in secondPipe = secondPipe ?? $0 }
            first.start(onEvent: { _ in }, onMessage: { _, _ in })
            second.start(
                onEvent: { event in
                    if case .invited(let invitation) = event { invitation.accept() }
                }, onMessage: { [unowned self] bytes, _ in onMessage(bytes) })
            try loop.run(for: .milliseconds(100))
            first.invite(second.id) { _ in }
            try loop.run(for: .milliseconds(100))
            firstPipe.entries.removeAll()
            secondPipe.entries.removeAll()
        }

        /// Connects one more session to the second one.
        func connectAnother() throws -> Session {
            let session = session("third") { _ in }
            session.start(onEvent: { _ in }, onMessage: { _, _ in })
            try loop.run(for: .milliseconds(100))
            session.invite(second.id) { _ in }
            try loop.run(for: .milliseconds(100))
            return session
        }

        private func session(
            _ name: String, _ opened: @escaping (WatchedPipe) -> Void
        ) -> Session {
            let transport = RelabelledTransport(
                MemoryTransport(hub: hub, address: name), scheme: "memory", priority: 0
            ) { pipe in
                let watched = WatchedPipe(pipe)
                opened(watched)
                return watched
            }
            var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: name))
            configuration.security = security
            return Session(
                configuration, identity: .ephemeral(), transports: [transport], loop: loop)
        }
    }

    private let message = [UInt8](repeating: 7, count: 64)

    @Test func messagesOfOneTurnLeaveInOneWrite() throws {
        let pair = try Pair()
        for _ in 0..<300 { try pair.first.trySend(message, to: pair.second.id) }
        try pair.loop.runQueued()
        #expect(pair.firstPipe.writes.count == 1)
        let sizes = pair.firstPipe.writes[0].map(\.count)
        #expect(sizes.count == 2, "one slice of the small chunk, and one of the large")
        #expect(sizes.reduce(0, +) == 300 * (64 + FrameHeader.byteCount))
    }

    @Test func lanesAndUnreliableMessagesShareTheWrite() throws {
        let pair = try Pair()
        for _ in 0..<10 {
            try pair.first.trySend(message, to: pair.second.id, .reliable(.main))
            try pair.first.trySend(message, to: pair.second.id, .reliable(.bulk))
            try pair.first.trySend(message, to: pair.second.id, .unreliable)
        }
        try pair.loop.runQueued()
        #expect(pair.firstPipe.writes.count == 1)
        #expect(pair.firstPipe.writes[0].reduce(0) { $0 + $1.count } == 30 * (64 + FrameHeader.byteCount))
    }

    @Test func encryptedMessagesOfOneTurnLeaveInOneWriteOfFullRecords() throws {
        let pair = try Pair(security: .encrypted)
        for _ in 0..<1_000 { try pair.first.trySend(message, to: pair.second.id) }
        try pair.loop.runQueued()
        #expect(pair.firstPipe.writes.count == 1)
        let plain = 1_000 * (64 + FrameHeader.byteCount)
        let records = (plain + TLSContext.recordSize - 1) / TLSContext.recordSize
        // A record costs a header of 5 bytes, a type byte and a tag of 16.
        #expect(pair.firstPipe.writes[0].reduce(0) { $0 + $1.count } == plain + records * 22)
    }

    @Test func messagesFromAnotherThreadLeaveInOneWrite() async throws {
        let pair = try Pair()
        let (first, peer, message) = (pair.first!, pair.second.id, message)
        try await Task.detached {
            for _ in 0..<100 { try first.trySend(message, to: peer) }
        }.value
        try pair.loop.runQueued()
        #expect(pair.firstPipe.writes.count == 1)
        #expect(pair.firstPipe.writes[0].reduce(0) { $0 + $1.count } == 100 * (64 + FrameHeader.byteCount))
    }

    @Test func allInputIsHandledBeforeAnythingIsWritten() throws {
        let pair = try Pair()
        var handled = 0
        pair.onMessage = { _ in
            handled += 1
            #expect(throws: Never.self) { try pair.second.trySend(self.message, to: pair.first.id) }
        }
        // More than one of the encoding chunks holds, so that the messages arrive in several slices.
        for _ in 0..<1_500 { try pair.first.trySend(message, to: pair.second.id) }
        try pair.loop.runQueued()
        #expect(handled == 1_500)
        let entries = pair.secondPipe.entries
        let firstWrite = try #require(entries.firstIndex { if case .wrote = $0 { true } else { false } })
        #expect(firstWrite > 1, "all came in one slice: the test shows nothing")
        #expect(
            entries[..<firstWrite].reduce(0) { $0 + $1.byteCount } == 1_500 * (64 + FrameHeader.byteCount))
        #expect(pair.secondPipe.writes.count == 1, "and the answers leave as one write")
    }

    @Test func anAnswerToALoneMessageIsWrittenBeforeOtherWork() throws {
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

    @Test func whatSeveralPeersBringInOneTurnIsPassedOnInOneWrite() throws {
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
        let sizes = pair.secondPipe.writes.map { $0.reduce(0) { $0 + $1.count } }
        #expect(sizes == Array(repeating: 2 * (64 + FrameHeader.byteCount), count: 5))
    }

    @Test func aHandlerReadsSmallMessagesWhereThePipeLeftThem() throws {
        let pair = try Pair()
        var addresses: [UnsafeRawPointer] = []
        pair.onMessage = { bytes in
            bytes.withUnsafeBytes { if let address = $0.baseAddress { addresses.append(address) } }
        }
        for _ in 0..<50 { try pair.first.trySend(message, to: pair.second.id) }
        try pair.loop.runQueued()
        let slice = try #require(pair.secondPipe.reads.first)
        slice.withUnsafeBytes { received in
            #expect(addresses.count == 50)
            for (index, address) in addresses.enumerated() {
                let place = index * (64 + FrameHeader.byteCount) + FrameHeader.byteCount
                #expect(address == received.baseAddress.map { $0 + place })
            }
        }
    }

    @Test func aLargePayloadIsWrittenByReference() throws {
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

    @Test func receivingAloneWritesNothing() throws {
        let pair = try Pair()
        for _ in 0..<10 { try pair.first.trySend(message, to: pair.second.id) }
        try pair.loop.runQueued()
        #expect(pair.secondPipe.writes.isEmpty, "the acknowledgement can wait for something to travel with")
        try pair.loop.run(for: .milliseconds(200))
        #expect(pair.secondPipe.writes.count == 1, "but not for long")
    }
}
