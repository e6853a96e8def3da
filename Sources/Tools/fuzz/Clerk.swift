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

/// How often methods have run.
final class Tally: Sendable {
    private let counts = Mutex((allowed: 0, forbidden: 0))

    var allowed: Int { counts.withLock(\.allowed) }
    var forbidden: Int { counts.withLock(\.forbidden) }

    func note(isAllowed: Bool) {
        counts.withLock { counts in
            if isAllowed { counts.allowed += 1 } else { counts.forbidden += 1 }
        }
    }
}

/// An actor whose methods are counted.
distributed actor Clerk: Desk, Guest, Vault {
    /// The contract under which the peer may call it.
    enum Role {
        case desk
        case guest
        case none
    }

    private let tally: Tally
    private let role: Role
    private let clock: any Clock<Duration>
    private var letters: [Letter] = []
    private var shared: Clerk?

    init(_ actors: NighActors.ActorSystem, _ tally: Tally, as role: Role, clock: any Clock<Duration>) {
        actorSystem = actors
        self.tally = tally
        self.role = role
        self.clock = clock
    }

    distributed func add(_ number: Int, to text: String) -> String {
        tally.note(isAllowed: role == .desk)
        return "\(text) \(number)"
    }

    distributed func file(_ letter: Letter) throws -> [Letter] {
        tally.note(isAllowed: role == .desk)
        letters = letters.suffix(3) + [letter]
        return letters
    }

    distributed func greet(_ guest: $Guest) async throws -> String {
        tally.note(isAllowed: role == .desk)
        return "Hello, \(try await guest.name())"
    }

    distributed func own() throws -> $Guest {
        tally.note(isAllowed: role == .desk)
        let clerk = shared ?? Clerk(actorSystem, tally, as: .guest, clock: clock)
        shared = clerk
        return try actorSystem.share(clerk, through: $Guest.self)
    }

    distributed func sum(_ numbers: RemoteStream<Int>) async throws -> Int {
        tally.note(isAllowed: role == .desk)
        var sum = 0
        for try await number in numbers { sum &+= number }
        return sum
    }

    distributed func count(to end: Int) -> RemoteStream<Int> {
        tally.note(isAllowed: role == .desk)
        return RemoteStream(
            AsyncStream { numbers in
                for number in 0..<max(0, min(end, 50)) { numbers.yield(number) }
                numbers.finish()
            })
    }

    distributed func wait() async throws {
        tally.note(isAllowed: role == .desk)
        try await clock.sleep(for: .seconds(60))
    }

    distributed func name() async throws -> String {
        tally.note(isAllowed: role == .guest)
        return "the clerk"
    }

    distributed func unlock(_ code: Int) -> Bool {
        tally.note(isAllowed: false)
        return code == 7
    }

    /// In no contract.
    distributed func secret() -> String {
        tally.note(isAllowed: false)
        return "secret"
    }

    /// In no contract, but with the name of a method of one.
    distributed func add(_ number: Int, to other: Int) -> Int {
        tally.note(isAllowed: false)
        return number &+ other
    }

    /// An actor whose type is inside that of another.
    distributed actor Helper {
        private let tally: Tally

        init(_ actors: NighActors.ActorSystem, _ tally: Tally) {
            actorSystem = actors
            self.tally = tally
        }

        distributed func ring(_ times: Int) -> Int {
            tally.note(isAllowed: false)
            return times
        }
    }
}

/// An actor that peers call through its own type.
distributed actor Porter {
    private let tally: Tally

    init(_ actors: NighActors.ActorSystem, _ tally: Tally) {
        actorSystem = actors
        self.tally = tally
    }

    distributed func ring(_ times: Int) -> Int {
        tally.note(isAllowed: true)
        return times
    }

    distributed func carry(_ letters: [Letter]) throws -> Int {
        tally.note(isAllowed: true)
        return letters.count
    }

    /// An actor with a method of the same name.
    distributed actor Trainee {
        private let tally: Tally

        init(_ actors: NighActors.ActorSystem, _ tally: Tally) {
            actorSystem = actors
            self.tally = tally
        }

        distributed func ring(_ times: Int) -> Int {
            tally.note(isAllowed: false)
            return times
        }
    }
}
