import Nigh
import NighActors
import NighCalls
import NighCore
import NighTestKit
import Synchronization

/// Two programs with actors on two devices, in virtual time. The host prepares its actors, and the guest calls them.
struct Meeting {
    /// One of the two programs.
    struct Side: Sendable {
        let session: Session
        let actors: NighActors.ActorSystem

        /// The only other one, connected.
        func other() async -> Peer {
            for await peers in session.peerLists {
                if let peer = peers.first(where: \.isConnected) { return peer }
            }
            preconditionFailure("the session has closed")
        }

        func sleep(_ duration: Duration) async throws { try await session.clock.sleep(for: duration) }

        /// The calls that are not over, and the tasks that work on calls.
        func counts() async -> [Int] {
            let calls = session.layer(Calls.self)
            return await withCheckedContinuation { continuation in
                session.loop.execute {
                    let counts = calls?.counts
                    continuation.resume(
                        returning: [counts?.outgoing ?? -1, counts?.incoming ?? -1, counts?.running ?? -1])
                }
            }
        }
    }

    var simulation = Simulation()
    var errors: [any (Error & Codable).Type] = [ColumnFull.self]

    /// Runs both programs until the guest's has ended, for at most an hour, and checks that no call is left.
    ///
    /// - Parameter disturb: called every half a second.
    func run<Result: Sendable>(
        host: @escaping @Sendable (Side) async throws -> Void,
        guest: @escaping @Sendable (Side, Peer) async throws -> Result,
        disturbing disturb: (Simulation) -> Void = { _ in }
    ) throws -> Result {
        let hasEnded = Atomic(false)
        let (errors, simulation) = (errors, simulation)
        let hosting = simulation.start(on: "Puma") {
            try await Self.begin(errors) { side in
                try await host(side)
                _ = await side.other()
                // Until the guest leaves.
                for await case .disconnected in side.session.events { break }
                try await side.sleep(.seconds(60))
                return await side.counts()
            }
        }
        let visiting = simulation.start(on: "Lynx") {
            try await Self.begin(errors) { side in
                defer { hasEnded.store(true, ordering: .relaxed) }
                let result = try await guest(side, await side.other())
                try await side.sleep(.seconds(60))
                return (result, await side.counts())
            }
        }
        for _ in 0..<7_200 where !hasEnded.load(ordering: .relaxed) {
            try simulation.run(for: .milliseconds(500))
            disturb(simulation)
        }
        let (result, counts) = try simulation.result(of: visiting, within: .seconds(3_600))
        guard counts == [0, 0, 0] else { throw Left(counts: counts) }
        let hostCounts = try simulation.result(of: hosting, within: .seconds(600))
        guard hostCounts == [0, 0, 0] else { throw Left(counts: hostCounts) }
        return result
    }

    /// Something of a call is left.
    struct Left: Error { let counts: [Int] }

    private static func begin<Result>(
        _ errors: [any (Error & Codable).Type], _ body: (Side) async throws -> Result
    ) async throws -> Result {
        try await withSession(service: "board") { session in
            session.connectsAutomatically = true
            return try await body(Side(session: session, actors: try ActorSystem(session, errors: errors)))
        }
    }
}
