import Distributed
import Nigh
import NighActors
import NighCalls
import NighCore
import NighTestKit
import Synchronization

/// Programs with actors on devices, in virtual time. The host prepares its actors, and the guest calls them.
struct Meeting {
    /// One of the programs.
    struct Side: Sendable {
        let session: Session
        let actors: NighActors.ActorSystem

        /// The only other one, or the one with this name, connected.
        func other(named name: String? = nil) async -> Peer {
            for await peers in session.peerLists {
                let other = peers.first { $0.isConnected && $0.name == name ?? $0.name }
                if let other { return other }
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

    /// Starts a program on a device.
    func start<Result: Sendable>(
        on device: String, _ program: @escaping @Sendable (Side) async throws -> Result
    ) -> Task<Result, any Error> {
        simulation.start(on: device) {
            try await withSession(service: "board") { session in
                session.connectsAutomatically = true
                let actors = try ActorSystem(session, errors: [ColumnFull.self])
                return try await program(Side(session: session, actors: actors))
            }
        }
    }

    /// Runs both programs until the guest's has ended, for at most an hour, and checks that no call is left.
    ///
    /// - Parameter disturb: called every half a second.
    func run<Result: Sendable>(
        host: @escaping @Sendable (Side) async throws -> Void,
        guest: @escaping @Sendable (Side, Peer) async throws -> Result,
        disturbing disturb: (Simulation) -> Void = { _ in }
    ) throws -> Result {
        let hasEnded = Atomic(false)
        let hosting = start(on: "Puma") { side in
            try await host(side)
            _ = await side.other()
            // Until the guest leaves.
            for await case .disconnected in side.session.events { break }
            try await side.sleep(.seconds(60))
            return await side.counts()
        }
        let visiting = start(on: "Lynx") { side in
            defer { hasEnded.store(true, ordering: .relaxed) }
            let result = try await guest(side, await side.other())
            try await side.sleep(.seconds(60))
            return (result, await side.counts())
        }
        for _ in 0..<7_200 where !hasEnded.load(ordering: .relaxed) {
            try simulation.run(for: .milliseconds(500))
            disturb(simulation)
        }
        let (result, counts) = try simulation.result(of: visiting, within: .seconds(3_600))
        let hostCounts = try simulation.result(of: hosting, within: .seconds(600))
        guard counts + hostCounts == [0, 0, 0, 0, 0, 0] else { throw Left(counts: counts + hostCounts) }
        return result
    }

    /// Runs a guest with the table that the host has published, of which it gets the board.
    func play<Result: Sendable>(
        _ guest: @escaping @Sendable (Side, $Board) async throws -> Result,
        disturbing disturb: (Simulation) -> Void = { _ in }
    ) throws -> Result {
        try run(
            host: { try $0.publishTable() }, guest: { try await guest($0, $0.board(of: $1)) },
            disturbing: disturb)
    }

    /// Something of a call is left.
    struct Left: Error { let counts: [Int] }
}

// MARK: Hostile programs

/// The outcome of a call, without its words.
enum RawOutcome: Equatable {
    case answer([UInt8])
    case error
    case refused(CallRefusal)
}

extension Meeting.Side {
    /// Calls what a hostile program may call.
    func call(
        _ name: String, _ arguments: [UInt8] = [], on actor: String, of peer: Peer
    ) async throws -> RawOutcome {
        let calls = session.layer(Calls.self)!
        switch try await calls.call(name, ByteSlice(arguments), at: peer, actor: actor, timeout: .seconds(30))
        {
        case .answer(let bytes): return .answer(bytes.bytes)
        case .error, .unknownName: return .error
        case .refused(let reason, _): return .refused(reason)
        }
    }
}
