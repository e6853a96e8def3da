import Nigh
import NighTestKit
import Synchronization
import Testing

/// Two programs in virtual time: one talks, the other is talked to.
private func converse<Result: Sendable>(
    settings: @escaping @Sendable (inout SessionSettings) -> Void = { _ in },
    talking: @escaping @Sendable (Session, Peer) async throws -> Void,
    listening: @escaping @Sendable (Session, Peer) async throws -> Result
) throws -> Result {
    let simulation = Simulation()
    @Sendable func program<Value>(
        _ body: @escaping @Sendable (Session, Peer) async throws -> Value
    ) async throws -> Value? {
        try await withSession(service: "converse", configure: settings) { session in
            session.connectsAutomatically = true
            for await case .connected(let peer) in session.events { return try await body(session, peer) }
            return nil
        }
    }
    simulation.start(on: "Puma") {
        try await program { session, peer in
            try await talking(session, peer)
            await session.run()
        }
    }
    let result = simulation.start(on: "Lynx") { try await program(listening) }
    return try #require(try simulation.result(of: result))
}

@Suite("Messages") struct PeerMessagesTests {
    @Test func `Messages of one peer come apart from others, also those that came earlier`() throws {
        let numbers = try converse { _, peer in
            for number in 1...10 { try await peer.send(number) }
        } listening: { session, peer in
            try await session.clock.sleep(for: .seconds(1))
            var numbers: [Int] = []
            for await message in try await peer.messages(of: Int.self) {
                #expect(message.sender == peer)
                numbers.append(message.content)
                if numbers.count == 10 { break }
            }
            #expect(session.messages.poll() == nil)
            return numbers
        }
        #expect(numbers == Array(1...10))
    }

    @Test func `Messages of one peer end with its conversation, and cannot be had without one`() throws {
        let numbers = try converse { session, peer in
            for number in 1...10 { try await peer.send(number) }
            try await peer.disconnect()
        } listening: { _, peer in
            var numbers: [Int] = []
            for await message in try await peer.messages(of: Int.self) { numbers.append(message.content) }
            let error = await #expect(throws: NighError.self) { _ = try await peer.messages() }
            #expect(error?.cause == .notConnected)
            return numbers
        }
        #expect(numbers == Array(1...10))
    }

    @Test func `Messages that were flushed are there, and a flush after the end fails`() throws {
        let flushed = Mutex<[Bool]>([])
        let count = try converse { session, peer in
            try await peer.flush()
            for _ in 0..<200 { try await peer.send(bytes: [UInt8](repeating: 7, count: 10_000)) }
            try await peer.send(bytes: [UInt8](repeating: 7, count: 1_000_000), on: .bulk)
            try await peer.flush()
            flushed.withLock { $0.append(true) }
            try await peer.disconnect()
            let error = await #expect(throws: NighError.self) { try await peer.flush() }
            #expect(error?.cause == .notConnected)
            flushed.withLock { $0.append(false) }
        } listening: { session, peer in
            // Nothing is read, so what exceeds the window is not here, and the flush waits.
            try await session.clock.sleep(for: .seconds(5))
            let wasFlushed = flushed.withLock { !$0.isEmpty }
            #expect(!wasFlushed)
            var count = 0
            for await message in session.messages {
                count += message.count
                if count == 3_000_000 { break }
            }
            try await session.clock.sleep(for: .seconds(1))
            #expect(flushed.withLock { $0 } == [true, false])
            return count
        }
        #expect(count == 3_000_000)
    }

    @Test func `A flush whose task is cancelled ends at once, and the messages still arrive`() throws {
        let cause = Mutex<NighError.Cause?>(nil)
        let count = try converse { session, peer in
            for _ in 0..<200 { try await peer.send(bytes: [UInt8](repeating: 7, count: 10_000)) }
            let flush: @Sendable () async -> Void = {
                let error = await #expect(throws: NighError.self) { try await peer.flush() }
                cause.withLock { $0 = error?.cause }
            }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await flush() }
                group.cancelAll()
            }
        } listening: { session, _ in
            try await session.clock.sleep(for: .seconds(1))
            #expect(cause.withLock { $0 } == .cancelled)
            var count = 0
            for await _ in session.messages {
                count += 1
                if count == 200 { break }
            }
            return count
        }
        #expect(count == 200)
    }

    @Test
    func `Messages that are values of a coder of the program's own travel as that writes them`() throws {
        let seen = try converse {
            $0.coder = Backwards()
        } talking: { session, peer in
            try session.answer("twice") { (text: String, _) in text + text }
            try await peer.send("reliable")
            try session.broadcastUnreliably("unreliable")
        } listening: { session, peer in
            var seen: [String] = []
            for await message in session.messages {
                seen.append(String(decoding: message.bytes.reversed(), as: UTF8.self))
                if seen.count == 2 { break }
            }
            return seen.sorted() + [try await peer.ask("twice", "ab")]
        }
        #expect(seen == ["reliable", "unreliable", "abab"])
    }

    /// Writes texts from their end to their beginning.
    private struct Backwards: MessageCoder {
        func encode(_ value: some Encodable) throws -> [UInt8] {
            guard let text = value as? String else {
                throw EncodingError.invalidValue(value, .init(codingPath: [], debugDescription: ""))
            }
            return text.utf8.reversed()
        }

        func decode<Value: Decodable>(_ type: Value.Type, from bytes: ByteSlice) throws -> Value {
            let text = String(decoding: bytes.bytes.reversed(), as: UTF8.self)
            guard let value = text as? Value else {
                throw DecodingError.typeMismatch(type, .init(codingPath: [], debugDescription: ""))
            }
            return value
        }
    }

    @Test
    func `Messages that cannot be encoded are an error that says so, to one peer, several and all`() throws {
        let reasons = try converse { _, _ in
        } listening: { session, peer in
            let error = await #expect(throws: NighError.self) { try await peer.send(Double.nan) }
            let errors = await #expect(throws: PartialSendError.self) {
                try await session.broadcast(Double.nan)
            }
            #expect(errors?.failures.keys.contains(peer.id) == true)
            return ["\(error!)", "\(errors!)"]
        }
        #expect(reasons.allSatisfy { $0.contains("Double: it cannot be encoded") }, "\(reasons)")
    }

    @Test func `Events and failed answers are noted in the program's log with a level and facts`() throws {
        struct Line: Equatable {
            var level: LogLevel
            var facts: [String: String]
        }
        let lines = Mutex<[Line]>([])
        _ = try converse {
            $0.log = { level, message, facts in lines.withLock { $0.append(Line(level: level, facts: facts)) }
            }
        } talking: { session, _ in
            try session.answer("never") { (_: Int, _) -> Int in throw CancellationError() }
        } listening: { _, peer in
            do throws(NighError) { _ = try await peer.ask("never", 1, for: Int.self) } catch {}
            return 0
        }
        let seen = lines.withLock { $0 }
        #expect(seen.contains { $0.level == .info && $0.facts["peer-name"] == "Puma" })
        #expect(seen.contains { $0.level == .warning && $0.facts["question"] == "never" })
        #expect(seen.contains { $0.level == .info && $0.facts["cause"] == "peer left" })
    }

    @Test func `Messages that two tasks wait for at once stop a program in a debug build`() async {
        await #expect(processExitsWith: .failure) {
            let session = try Session(service: "readers", transports: "memory") { $0.identity = .temporary }
            async let first = session.messages.next()
            async let second = session.messages.next()
            _ = await (first, second)
        }
    }
}

@Suite("A session of somebody else's program") struct EmbeddedSessionTests {
    @Test func `A session runs until it is cancelled, and then closes`() throws {
        let simulation = Simulation()
        let running = simulation.start(on: "Puma") {
            let session = try Session(service: "run")
            let events = session.events
            await session.run()
            var last: SessionEvent?
            while let event = events.poll() { last = event }
            if case .closed? = last { return true }
            return false
        }
        try simulation.run(for: .seconds(60))
        running.cancel()
        #expect(try simulation.result(of: running))
    }

    private actor Owner {
        var words: [String] = []

        /// The body runs in this actor, so it may touch the actor's state.
        func meet() async throws {
            try await withSession(service: "actor") { session in
                session.connectsAutomatically = true
                for await message in session.messages(of: String.self) {
                    words.append(message.content)
                    break
                }
            }
        }
    }

    @Test func `A session lives in an actor, which its body may touch`() throws {
        let simulation = Simulation()
        let owner = Owner()
        let meeting = simulation.start(on: "Puma") { try await owner.meet() }
        simulation.start(on: "Lynx") {
            try await withSession(service: "actor") { session in
                session.connectsAutomatically = true
                for await case .connected(let peer) in session.events { try await peer.send("hello") }
            }
        }
        try simulation.result(of: meeting)
        let words = simulation.start(on: "Puma") { await owner.words }
        #expect(try simulation.result(of: words) == ["hello"])
    }
}
