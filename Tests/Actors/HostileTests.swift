import Distributed
import Nigh
import NighActors
import NighCalls
import NighCore
import NighTestKit
import Testing

@Suite("A hostile caller of actors") struct HostileCallerTests {
    /// Calls the actor `slow`, whose calls do not end, a million times, and keeps to the credit or not. Returns the
    /// number of calls that it could write.
    private static func flood(_ side: Meeting.Side, _ peer: Peer, keepsToCredit: Bool) async throws -> Int {
        let stream = try await peer.openStream(named: "@slow", for: .actors)
        let name = "Board.wait(_:) 4waityySiYaKFTE"
        var written = 0
        var used: UInt64 = 0
        do throws(NighError) {
            try await stream.write(CallRecord.name(name).frame)
            for number in 1...1_000_000 as ClosedRange<UInt64> {
                // 3,000 seconds.
                let call = CallRecord.numbered(
                    number: number, timeout: 0, name: 0, content: ByteSlice([0x19, 0x0B, 0xB8]))
                used += CallRecord.cost(of: call.frame.count - 4)
                try await stream.write(call.frame)
                written += 1
                // The calls that begin are too few for more credit.
                if keepsToCredit, used >= CallRecord.firstCredit { break }
            }
            if keepsToCredit { try? await side.sleep(.seconds(600)) }
            stream.finish()
        } catch {
            guard case .streamCancelled = error.cause else { throw error }
        }
        return written
    }

    @Test(
        "of a million calls holds a bounded number there, and hurts no other peer", arguments: [true, false])
    func million(keepsToCredit: Bool) throws {
        let simulation = Simulation(workLimit: 20_000_000)
        func device<Result: Sendable>(
            _ name: String, _ body: @escaping @Sendable (Meeting.Side) async throws -> Result
        ) -> Task<Result, any Error> {
            simulation.start(on: name) {
                try await withSession(service: "board") { session in
                    session.connectsAutomatically = true
                    return try await body(Meeting.Side(session: session, actors: try ActorSystem(session)))
                }
            }
        }
        let host = device("Puma") { side in
            let slow = Table(side.actors) { try await side.sleep($0) }
            try side.actors.publish(slow, as: "slow", through: $Board.self)
            try side.actors.publish(Table(side.actors), as: "board", through: $Board.self)
            var most = [0, 0]
            for _ in 0..<600 {
                try await side.sleep(.milliseconds(500))
                let counts = await side.counts()
                most = [max(most[0], counts[1]), max(most[1], counts[2])]
            }
            return most
        }
        let hostile = device("Eve") { side in
            let peer = try await Self.puma(side)
            return try await Self.flood(side, peer, keepsToCredit: keepsToCredit)
        }
        let guest = device("Lynx") { side in
            let board = try side.actors.actor($Board.self, named: "board", on: try await Self.puma(side))
            var slowest = Moment.Span.zero
            for column in 100..<300 {
                let begin = side.session.loop.now
                _ = try await board.play(column: column)
                slowest = max(slowest, side.session.loop.now - begin)
                try await side.sleep(.milliseconds(100))
            }
            return slowest
        }
        #expect(try simulation.result(of: guest, within: .seconds(200)) < .milliseconds(500))
        let most = try simulation.result(of: host, within: .seconds(400))
        #expect(most[0] < 4_000 && most[1] <= 256, "\(most)")
        if keepsToCredit { #expect(most[0] > 3_000 && most[1] == 256, "\(most)") }
        if !keepsToCredit {
            #expect(try simulation.result(of: hostile, within: .seconds(10)) < 1_000_000)
        }
    }

    private static func puma(_ side: Meeting.Side) async throws -> Peer {
        for await peers in side.session.peerLists {
            if let puma = peers.first(where: { $0.isConnected && $0.name == "Puma" }) { return puma }
        }
        throw NighError(.calling, .closed)
    }
}
