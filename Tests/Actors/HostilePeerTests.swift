import Distributed
import Nigh
import NighActors
import NighCalls
import NighCore
import NighTestKit
import Synchronization
import Testing

@Suite("Actors called by a hostile peer") struct HostilePeerTests {
    /// The actors of the host, for tests that look at them while the guest acts.
    private final class Host: Sendable {
        let actors = Mutex<NighActors.ActorSystem?>(nil)
        var counts: (listed: Int, streams: Int, methods: Int)? { actors.withLock(\.self)?.counts }
    }

    private static func meet<Result: Sendable>(
        in simulation: Simulation = Simulation(),
        _ guest: @escaping @Sendable (Meeting.Side, Peer, Host) async throws -> Result
    ) throws -> Result {
        let host = Host()
        return try Meeting(simulation: simulation).run { side in
            try side.actors.publish(Table(side.actors), as: "board", through: $Board.self)
            try side.actors.publish(Human(side.actors, name: "Ann"), as: "human")
            host.actors.withLock { $0 = side.actors }
        } guest: { side, peer in
            try await guest(side, peer, host)
        }
    }

    @Test("refuse methods whose names the runtime would take hours to read")
    func namesThatTakeLong() throws {
        try Self.meet { side, peer, _ in
            // A dictionary whose keys and values are dictionaries of the same type, 60 times.
            let ends = (4..<64).map { number in
                number < 26
                    ? "A\(Character(Unicode.Scalar(65 + UInt8(number))))G"
                    : number == 26 ? "A_G" : "A\(number - 27)_G"
            }
            let type = String(repeating: "SDy", count: 61) + "S2SG" + ends.joined()
            for (contract, actor) in [("Board", "@board"), ("Human", "@human")] {
                for signature in ["3addyy\(type)YaKFTE", "3addyy\(type)YaKF", "3addyySaySiGYaKFTE"] {
                    let outcome = try await side.call("\(contract).x \(signature)", on: actor, of: peer)
                    #expect(outcome == .refused(.noMethod))
                }
            }
        }
    }

    @Test("keep nothing of the names of methods that they do not have")
    func madeUpNames() throws {
        let methods = try Self.meet { side, peer, host in
            for number in 10..<110 {
                // With arguments that are no CBOR, and with none.
                for arguments in [[0xFF], []] as [[UInt8]] {
                    let name = "Human.x\(number)() 3x\(number)yyYaKFTE"
                    let outcome = try await side.call(name, arguments, on: "@human", of: peer)
                    #expect(outcome == .refused(.noMethod))
                }
            }
            return host.counts?.methods
        }
        #expect(methods == 0)
    }

    @Test("have no timer for each stream of values")
    func timersOfStreams() throws {
        let simulation = Simulation()
        let loop = simulation.loop
        let timers = try Self.meet(in: simulation) { side, peer, _ in
            let before = loop.pending.timers
            for number in 24..<124 as Range<UInt8> {
                let stream = try await peer.openStream(named: ">\(number)", for: .actors)
                let score: [UInt8] = [0, 0xA1, 0x65] + Array("discs".utf8) + [3]
                try await stream.write(
                    ByteSlice(StreamMessageParser.header(of: score.count) + score))
                stream.finish()
                try await side.sleep(.milliseconds(50))
                let name = "Board.sum(_:) 3sumySi10NighActors12RemoteStreamVyAA5ScoreVGYaKFTE"
                let arguments = [0x18, number]
                #expect(try await side.call(name, arguments, on: "@board", of: peer) == .answer([3]))
            }
            return loop.pending.timers - before
        }
        #expect(timers < 20)
    }

    @Test("follow the newest listing of a peer only, and not more than 256 actors")
    func twoListings() throws {
        let listed = try Self.meet { side, peer, host in
            let streams = [
                try await peer.openStream(named: "", for: .actors),
                try await peer.openStream(named: "", for: .actors),
            ]
            func publish(_ names: [String], in stream: ByteStream) async throws {
                for name in names {
                    let record = ListingRecord.published(name: name, contract: "Player", version: 0)
                    try await stream.write(record.frame)
                }
            }
            try await side.sleep(.seconds(1))
            try await publish((0..<255).map { "\($0)" }, in: streams[1])
            try await side.sleep(.seconds(1))
            let before = host.counts?.listed
            // The host has let go of the first one.
            try? await publish(["a", "b", "c"], in: streams[0])
            try await side.sleep(.seconds(1))
            let after = host.counts?.listed
            try? await publish(["one more", "too many"], in: streams[1])
            try await side.sleep(.seconds(1))
            return [before, after, host.counts?.listed]
        }
        #expect(listed == [255, 255, 0])
    }
}
