import Distributed
import Nigh
import NighActors
import NighCalls
import NighCore
import NighTestKit

/// The actors of a program, and a peer that calls, lists, streams and answers what it likes.
///
/// The numbers of actors are random. So an input in which one occurs differs a little the next time.
enum ActorTarget {
    /// How often something happened.
    struct Reach {
        /// Methods that have run.
        var calls = 0
        /// Calls to the peer that it has answered well enough.
        var answers = 0
        /// Calls of the peer that were refused.
        var refusals = 0
        /// Streams of values from the program.
        var values = 0
        /// Actors that the program has found listed.
        var listed = 0
    }

    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Reach {
        let material = try material.get()
        let loop = VirtualEventLoop()
        let reach: Reach
        do {
            let mutations = Mutator(seed: mutator.generator.next(), scenarios: [], frames: [])
            let visit = try HostileVisit(mutations, material, on: loop)
            for _ in 0...mutator.number(below: 30) {
                try visit.step(&mutator)
                try visit.check()
            }
            reach = try visit.end()
        }
        // Sessions that nobody holds any more have some last work to do.
        try loop.runQueued()
        return reach
    }

    /// Valid input, from which invalid input is made.
    struct Material: Sendable {
        /// The methods as they are named to peers, of all actors of the program.
        var methods: [String] = []
        /// The arguments of those methods.
        var arguments: [[UInt8]] = []
        /// What a listing says.
        var records: [[UInt8]] = []
        /// Pieces of the names of methods.
        var pieces: [String] = []
    }

    private static let material = Result { try recordMaterial() }

    /// Records what a program says that calls all methods.
    private static func recordMaterial() throws -> Material {
        let pair = try VirtualPair(configure: { $0.security = .none }) { Calls() }
        let recorder = CallRecorder()
        try pair.lynx.layer.add(recorder)
        let actors = try ActorSystem(pair.puma.session)
        let (peer, clock) = (pair.asPumaSeesLynx, pair.puma.session.clock)
        Task(executorPreference: pair.loop) { await callEverything(actors, at: peer, clock) }
        try pair.run()
        var material = recorder.material
        guard material.methods.count == 12 else { throw Finding("recorded \(material.methods)") }
        let records: [ListingRecord] = [
            .published(name: "guest", contract: "Guest", version: 0), .unpublished(name: "guest"),
            .published(name: "other", contract: "Guest", version: .max),
            .published(name: String(repeating: "n", count: 254), contract: "Desk", version: 7),
        ]
        material.records = records.map(\.frame.bytes)
        material.pieces = material.methods.map { String($0.split(separator: " ").last ?? "") } + pieces
        return material
    }

    private static let pieces = [
        "Desk.", "Guest.", "Vault.", "Clerk.", "Porter.", "$Desk.", "Clerk.Helper.", "Porter.Trainee.",
        "6HelperC", "7TraineeC", "6secretSSyYaKFTE", "6secretSSyYaKF", "YaKFTE", "YaKF", "FTE", "AA", "A_",
        "SDyS2SG", "SayXG", "C", "$s", "()", "(_:)", ".", " ", "é", "\0", "\u{1B}[2J", "\u{202E}",
        String(repeating: "7", count: 300), methodOfNestedType(levels: 40),
    ]

    /// The signature of a method of a type whose full name has 2 to the power of `levels` words.
    private static func methodOfNestedType(levels: Int) -> String {
        let ends = (4..<4 + levels).map { number in
            switch number {
            case 0..<26: "A\(Character(Unicode.Scalar(65 + UInt8(number))))G"
            case 26: "A_G"
            default: "A\(number - 27)_G"
            }
        }
        return "3addyy" + String(repeating: "SDy", count: levels + 1) + "S2SG" + ends.joined() + "YaKFTE"
    }

    private static func callEverything(
        _ actors: NighActors.ActorSystem, at peer: NighCore.Peer, _ clock: any Clock<Duration>
    ) async {
        let tally = Tally()
        do {
            let desk = try actors.actor($Desk.self, named: "desk", on: peer)
            let clerk = try actors.actor(Clerk.self, named: "desk", on: peer)
            let porter = try actors.actor(Porter.self, named: "porter", on: peer)
            let own = Clerk(actors, tally, as: .guest, clock: clock)
            let guest = try actors.share(own, through: $Guest.self)
            let letter = Letter(kind: .parcel(weight: 2.5), words: ["a": [1, nil, -128]], sender: clerk.id)
            let numbers = RemoteStream(AsyncStream<Int> { $0.finish() })
            _ = try? await desk.add(1, to: "text")
            _ = try? await desk.file(letter)
            _ = try? await desk.greet(guest)
            _ = try? await desk.own()
            _ = try? await desk.sum(numbers)
            _ = try? await desk.count(to: 7)
            _ = try? await actors.actor($Guest.self, named: "guest", on: peer).name()
            _ = try? await actors.actor($Vault.self, named: "desk", on: peer).unlock(7)
            _ = try? await clerk.secret()
            _ = try? await clerk.add(1, to: 2)
            _ = try? await porter.ring(3)
            _ = try? await porter.carry([letter, letter])
        } catch {
            // The caller sees that too little was recorded.
        }
    }
}

/// Notes the calls of a program, and answers none.
///
/// `@unchecked Sendable`: used on one virtual loop.
private final class CallRecorder: ActorHost, @unchecked Sendable {
    private(set) var material = ActorTarget.Material()

    func answer(_ call: ActorCall) async -> CallOutcome {
        material.methods.append(call.method)
        material.arguments.append(call.arguments.bytes)
        return .unknownName
    }

    func receive(_ stream: ByteStream) {}
    func handle(_ event: SessionEvent) {}
    func sessionDidClose() {}
}
