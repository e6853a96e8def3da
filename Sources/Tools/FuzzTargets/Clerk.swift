import Distributed
import NighActors
import NighCore
import Synchronization

typealias DefaultDistributedActorSystem = NighActors.ActorSystem

/// The contract under which peers call a clerk.
@Resolvable protocol Desk: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func add(_ number: Int, to text: String) -> String
    distributed func file(_ letter: Letter) throws -> [Letter]
    distributed func greet(_ guest: $Guest) async throws -> String
    distributed func own() throws -> $Guest
    distributed func sum(_ numbers: RemoteStream<Int>) async throws -> Int
    distributed func count(to end: Int) -> RemoteStream<Int>
    distributed func wait() async throws
}

/// The contract of actors that a peer is given by reference.
@Resolvable protocol Guest: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func name() async throws -> String
}

/// A contract that the clerk meets and under which nobody may call it.
@Resolvable protocol Vault: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func unlock(_ code: Int) -> Bool
}

/// An argument that contains others.
struct Letter: Codable, Sendable {
    enum Kind: Codable, Sendable {
        case card
        case parcel(weight: Double)
    }

    var kind: Kind
    var words: [String: [Int8?]]
    var sender: NighActors.ActorSystem.ActorID
}

/// Counts how often a method has run that nobody may call.
final class ForbiddenCalls: Sendable {
    private let counter = Mutex(0)

    var count: Int { counter.withLock(\.self) }

    func add(if isForbidden: Bool = true) { if isForbidden { counter.withLock { $0 += 1 } } }
}

/// An actor that a peer calls under one contract, or not at all.
distributed actor Clerk: Desk, Guest, Vault {
    enum Role {
        case desk
        case guest
        case none
    }

    private let forbidden: ForbiddenCalls
    private let role: Role
    private let clock: any Clock<Duration>
    private var letters: [Letter] = []
    private var shared: Clerk?

    init(
        _ actors: NighActors.ActorSystem, _ forbidden: ForbiddenCalls, as role: Role,
        clock: any Clock<Duration>
    ) {
        actorSystem = actors
        self.forbidden = forbidden
        self.role = role
        self.clock = clock
    }

    distributed func add(_ number: Int, to text: String) -> String {
        forbidden.add(if: role != .desk)
        return "\(text) \(number)"
    }

    distributed func file(_ letter: Letter) throws -> [Letter] {
        forbidden.add(if: role != .desk)
        letters = letters.suffix(3) + [letter]
        return letters
    }

    distributed func greet(_ guest: $Guest) async throws -> String {
        forbidden.add(if: role != .desk)
        return "Hello, \(try await guest.name())"
    }

    distributed func own() throws -> $Guest {
        forbidden.add(if: role != .desk)
        let clerk = shared ?? Clerk(actorSystem, forbidden, as: .guest, clock: clock)
        shared = clerk
        return try actorSystem.share(clerk, through: $Guest.self)
    }

    distributed func sum(_ numbers: RemoteStream<Int>) async throws -> Int {
        forbidden.add(if: role != .desk)
        return try await numbers.reduce(0, &+)
    }

    distributed func count(to end: Int) -> RemoteStream<Int> {
        forbidden.add(if: role != .desk)
        return RemoteStream(
            AsyncStream { numbers in
                for number in 0..<max(0, min(end, 50)) { numbers.yield(number) }
                numbers.finish()
            })
    }

    distributed func wait() async throws {
        forbidden.add(if: role != .desk)
        try await clock.sleep(for: .seconds(60))
    }

    distributed func name() async throws -> String {
        forbidden.add(if: role != .guest)
        return "the clerk"
    }

    // Under no contract that the clerk is published with, or under none at all.

    distributed func unlock(_ code: Int) -> Bool {
        forbidden.add()
        return code == 7
    }

    distributed func secret() -> String {
        forbidden.add()
        return "secret"
    }

    /// With the name of a method of a contract.
    distributed func add(_ number: Int, to other: Int) -> Int {
        forbidden.add()
        return number &+ other
    }

    /// An actor whose type is inside that of another.
    distributed actor Helper {
        private let forbidden: ForbiddenCalls

        init(_ actors: NighActors.ActorSystem, _ forbidden: ForbiddenCalls) {
            actorSystem = actors
            self.forbidden = forbidden
        }

        distributed func ring(_ times: Int) -> Int {
            forbidden.add()
            return times
        }
    }
}

/// An actor that peers call through its own type.
distributed actor Porter {
    init(_ actors: NighActors.ActorSystem) { actorSystem = actors }

    distributed func ring(_ times: Int) -> Int { times }
    distributed func carry(_ letters: [Letter]) throws -> Int { letters.count }
}
