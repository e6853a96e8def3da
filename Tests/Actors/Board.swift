import Distributed
import Nigh
import NighActors
import Synchronization

typealias DefaultDistributedActorSystem = NighActors.ActorSystem

struct Score: Codable, Sendable, Equatable { var discs: Int }

/// An error that travels as it is.
struct ColumnFull: Error, Codable, Equatable { var column: Int }

/// One that does not.
struct Broken: Error {}

@Resolvable protocol Board: DistributedActor, VersionedContract where ActorSystem == NighActors.ActorSystem {
    distributed func play(column: Int) throws -> Score
    distributed func wait(_ seconds: Int) async throws
    distributed func reset()
    distributed func join(_ player: $Player) async throws -> String
    distributed func caller() -> String?
    distributed func moves(_ count: Int) -> RemoteStream<Score>
    distributed func sum(_ scores: RemoteStream<Score>) async throws -> Int
    distributed func played() -> [Int]
}

extension Board { static var contractVersion: UInt32 { 3 } }

@Resolvable protocol Player: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func name() -> String
    distributed func ping(_ depth: Int, _ other: $Player) async throws -> Int
}

distributed actor Table: Board {
    private var columns: [Int] = []
    /// The calls of `wait` that go on, and those that were cancelled.
    private(set) var waiting = 0
    private(set) var cancelled = 0
    private let sleep: @Sendable (Duration) async throws -> Void

    init(
        _ actors: NighActors.ActorSystem,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { _ in }
    ) {
        actorSystem = actors
        self.sleep = sleep
    }

    distributed func play(column: Int) throws -> Score {
        if column == 7 { throw ColumnFull(column: column) }
        if column > 7, column < 100 { throw Broken() }
        columns.append(column)
        return Score(discs: columns.count)
    }

    distributed func wait(_ seconds: Int) async throws {
        waiting += 1
        defer { waiting -= 1 }
        do {
            try await sleep(.seconds(seconds))
        } catch {
            cancelled += 1
            throw error
        }
    }

    distributed func reset() { columns = [] }

    distributed func join(_ player: $Player) async throws -> String { "Welcome, \(try await player.name())" }

    distributed func caller() -> String? { NighActors.ActorSystem.currentPeer?.name }

    distributed func moves(_ count: Int) -> RemoteStream<Score> {
        RemoteStream(scores(count, counter: counter))
    }

    distributed func sum(_ scores: RemoteStream<Score>) async throws -> Int {
        var sum = 0
        for try await score in scores { sum += score.discs }
        return sum
    }

    distributed func played() -> [Int] { columns }

    /// In no contract that peers have.
    distributed func secret() -> String { "secret" }

    let counter = Counter()
}

extension Meeting.Side {
    /// Publishes a table as "board".
    @discardableResult
    func publishTable() throws -> Table {
        let table = Table(actors) { try await sleep($0) }
        try actors.publish(table, as: "board", through: $Board.self)
        return table
    }

    /// The table that a peer has published.
    func board(of peer: Peer) throws -> $Board {
        try actors.actor($Board.self, named: "board", on: peer)
    }
}

distributed actor Human: Player {
    private let shownName: String

    init(_ actors: NighActors.ActorSystem, name: String) {
        actorSystem = actors
        shownName = name
    }

    distributed func name() -> String { shownName }

    distributed func ping(_ depth: Int, _ other: $Player) async throws -> Int {
        if depth == 0 { return 0 }
        return try await other.ping(depth - 1, actorSystem.share(self, through: $Player.self)) + 1
    }
}

/// Counts the values that were asked for.
final class Counter: Sendable {
    private let value = Mutex(0)
    var count: Int { value.withLock(\.self) }
    func increment() { value.withLock { $0 += 1 } }
}

/// Scores, of which the last one fails if the count is negative. Counts those that are asked for.
func scores(_ count: Int, counter: Counter = Counter()) -> AsyncThrowingStream<Score, any Error> {
    let own = Counter()
    return AsyncThrowingStream(unfolding: {
        try Task.checkCancellation()
        guard own.count < abs(count) else {
            if count < 0 { throw ColumnFull(column: own.count) }
            return nil
        }
        counter.increment()
        own.increment()
        return Score(discs: own.count)
    })
}
