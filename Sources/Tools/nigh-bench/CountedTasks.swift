import Distributed
import Glibc
import Nigh
import NighActors

/// Counted paths of programs that import `Nigh`: two sessions over memory, whose messages tasks read and answer.
enum CountedTasks {
    /// A value of the kind that games send.
    struct Move: Codable, Sendable, Equatable {
        var player: String
        var column: Int
        var number: Int
    }

    private struct Pair {
        let puma: Session
        let lynx: Session
        let asLynx: Peer

        /// - Parameter onMessage: handles the messages that Lynx gets; nil if a task reads them.
        static func connect(
            coder: (any MessageCoder)? = nil,
            onMessage: (@Sendable (RawSpan, MessageOrigin) -> Void)? = nil
        ) async throws -> Pair {
            let network = "memory:hub=counted-\(UInt64.random(in: 0 ... .max))"
            func session(_ name: String) throws -> Session {
                try Session(service: "bench", name: name, transports: network) { settings in
                    settings.identity = .temporary
                    settings.security = .none
                    settings.connectsAutomatically = true
                    settings.files = .ask
                    settings.timings = .counted
                    if let coder { settings.coder = coder }
                    if name == "Lynx" { settings.onMessage = onMessage }
                }
            }
            let (puma, lynx) = (try session("Puma"), try session("Lynx"))
            for await case .connected(let peer) in puma.events {
                return Pair(puma: puma, lynx: lynx, asLynx: peer)
            }
            throw NighError(.conversing, .notConnected)
        }

        func close(after counter: OperationCounter) async throws -> UInt64 {
            let allocations = try await counter.allocations
            await puma.close()
            await lynx.close()
            return allocations
        }
    }

    /// Bytes there and the same back, by `send` and `for await`.
    static func roundTrip(of bytes: [UInt8], counter: OperationCounter) async throws -> UInt64 {
        let pair = try await Pair.connect()
        let answering = Task {
            for await message in pair.lynx.messages {
                try await pair.lynx.peer(message.sender).send(bytes: message.bytes)
            }
        }
        var answers = pair.puma.messages.makeAsyncIterator()
        repeat {
            try await pair.asLynx.send(bytes: bytes)
            _ = await answers.next()
        } while counter.operationEnded()
        let allocations = try await pair.close(after: counter)
        try await answering.value
        return allocations
    }

    /// A burst of messages that a task sends one after another, and an answer to the last of them.
    static func send(_ bytes: [UInt8], burst: Int, counter: OperationCounter) async throws -> UInt64 {
        let (ends, lastCame) = AsyncStream.makeStream(of: Void.self)
        // Handled on one loop, so the count needs no lock.
        nonisolated(unsafe) var count = 0
        let pair = try await Pair.connect { _, _ in
            count += 1
            if count % burst == 0 { lastCame.yield() }
        }
        var last = ends.makeAsyncIterator()
        repeat {
            for _ in 0..<burst { try await pair.asLynx.send(bytes: bytes) }
            _ = await last.next()
        } while counter.operationEnded()
        return try await pair.close(after: counter)
    }

    /// Bytes there and the same back, in a channel.
    static func channelRoundTrip(of bytes: [UInt8], counter: OperationCounter) async throws -> UInt64 {
        let pair = try await Pair.connect()
        let (channel, other) = (try pair.puma.channel("counted"), try pair.lynx.channel("counted"))
        let answering = Task {
            for await message in other.messages {
                try await other.send(bytes: message.bytes, to: pair.lynx.peer(message.sender))
            }
        }
        var answers = channel.messages.makeAsyncIterator()
        repeat {
            try await channel.send(bytes: bytes, to: pair.asLynx)
            _ = await answers.next()
        } while counter.operationEnded()
        let allocations = try await pair.close(after: counter)
        try await answering.value
        return allocations
    }

    /// A burst of messages that a task sends one after another in a channel, and an answer to the last of them.
    static func channelSend(_ bytes: [UInt8], burst: Int, counter: OperationCounter) async throws -> UInt64 {
        let pair = try await Pair.connect()
        let (channel, other) = (try pair.puma.channel("counted"), try pair.lynx.channel("counted"))
        let answering = Task {
            var count = 0
            for await message in other.messages {
                count += 1
                if count % burst == 0 { try await other.send(bytes: [], to: pair.lynx.peer(message.sender)) }
            }
        }
        var answers = channel.messages.makeAsyncIterator()
        repeat {
            for _ in 0..<burst { try await channel.send(bytes: bytes, to: pair.asLynx) }
            _ = await answers.next()
        } while counter.operationEnded()
        let allocations = try await pair.close(after: counter)
        try await answering.value
        return allocations
    }

    /// A question with a small value, and its answer.
    static func question(counter: OperationCounter) async throws -> UInt64 {
        let pair = try await Pair.connect()
        try pair.lynx.answer("next") { (number: Int, _) in number + 1 }
        var number = 0
        repeat { number = try await pair.asLynx.ask("next", number) } while counter.operationEnded()
        return try await pair.close(after: counter)
    }

    /// A call of an actor with a small value, and its result.
    static func actorCall(counter: OperationCounter) async throws -> UInt64 {
        let pair = try await Pair.connect()
        let (actors, others) = (try ActorSystem(pair.puma), try ActorSystem(pair.lynx))
        try others.publish(Adder(actorSystem: others), as: "adder", through: $Adding.self)
        let adder = try actors.actor($Adding.self, named: "adder", on: pair.asLynx)
        var number = 0
        repeat { number = try await adder.next(number) } while counter.operationEnded()
        return try await pair.close(after: counter)
    }

    /// Bytes in a call of an actor, and the same back.
    static func actorEcho(of bytes: [UInt8], counter: OperationCounter) async throws -> UInt64 {
        let pair = try await Pair.connect()
        let (actors, others) = (try ActorSystem(pair.puma), try ActorSystem(pair.lynx))
        try others.publish(Adder(actorSystem: others), as: "adder", through: $Adding.self)
        let adder = try actors.actor($Adding.self, named: "adder", on: pair.asLynx)
        repeat { _ = try await adder.echo(bytes) } while counter.operationEnded()
        return try await pair.close(after: counter)
    }

    /// A value there and the same back, by `send` and `for await`.
    static func codableRoundTrip(
        _ coder: (any MessageCoder)? = nil, counter: OperationCounter
    ) async throws -> UInt64 {
        let pair = try await Pair.connect(coder: coder)
        let answering = Task {
            for await move in pair.lynx.messages(of: Move.self) { try await move.sender.send(move.content) }
        }
        var answers = pair.puma.messages(of: Move.self).makeAsyncIterator()
        let move = Move(player: "Puma", column: 3, number: 17)
        repeat {
            try await pair.asLynx.send(move)
            _ = await answers.next()
        } while counter.operationEnded()
        let allocations = try await pair.close(after: counter)
        try await answering.value
        return allocations
    }

    /// A file from one folder in memory to another.
    static func file(mebibytes: Int, counter: OperationCounter) async throws -> UInt64 {
        var template = Array("/dev/shm/nigh-counts-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw NighError(.starting, .unavailable("/dev/shm")) }
        let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        let source = "\(folder)/source"
        let descriptor = open(source, O_CREAT | O_WRONLY, 0o600)
        _ = ftruncate(descriptor, off_t(mebibytes) << 20)
        Glibc.close(descriptor)
        let pair = try await Pair.connect()
        var offers = pair.lynx.fileOffers.makeAsyncIterator()
        var number = 0
        repeat {
            let sending = try await pair.asLynx.send(file: source)
            let target = "\(folder)/\(number)"
            mkdir(target, 0o700)
            let receiving = try await offers.next()?.accept(into: target)
            let received = try await receiving?.finish()
            try await sending.finish()
            for file in received ?? [] { unlink(file.path ?? "") }
            rmdir(target)
            number += 1
        } while counter.operationEnded()
        unlink(source)
        rmdir(folder)
        return try await pair.close(after: counter)
    }
}

/// Actors to count calls with.
@Resolvable protocol Adding: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func next(_ number: Int) -> Int
    distributed func echo(_ bytes: [UInt8]) -> [UInt8]
}

distributed actor Adder: Adding {
    typealias ActorSystem = NighActors.ActorSystem

    distributed func next(_ number: Int) -> Int { number + 1 }
    distributed func echo(_ bytes: [UInt8]) -> [UInt8] { bytes }
}
