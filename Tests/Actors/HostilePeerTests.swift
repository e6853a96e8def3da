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
        in meeting: Meeting = Meeting(),
        _ guest: @escaping @Sendable (Meeting.Side, Peer, Host) async throws -> Result
    ) throws -> Result {
        let host = Host()
        return try meeting.run { side in
            try side.actors.publish(Table(side.actors), as: "board", through: $Board.self)
            try side.actors.publish(Human(side.actors, name: "Ann"), as: "human")
            host.actors.withLock { $0 = side.actors }
        } guest: { side, peer in
            try await guest(side, peer, host)
        }
    }

    @Test func `Actors refuse methods whose names the runtime would take hours to read`() throws {
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

    @Test func `Actors keep nothing of the names of methods that they do not have`() throws {
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

    @Test func `Actors have no timer for each stream of values`() throws {
        let meeting = Meeting()
        let loop = meeting.simulation.loop
        let timers = try Self.meet(in: meeting) { side, peer, _ in
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

    @Test func `Actors follow the newest listing of a peer only, and not more than 256 actors`() throws {
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

    // MARK: Floods

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

    @Test(arguments: [true, false])
    func `A million calls hold a bounded number there, and hurt no other peer`(keepsToCredit: Bool) throws {
        let meeting = Meeting(simulation: Simulation(workLimit: 20_000_000))
        let host = meeting.start(on: "Puma") { side in
            let slow = Table(side.actors) { try await side.sleep($0) }
            try side.actors.publish(slow, as: "slow", through: $Board.self)
            try side.publishTable()
            var most = [0, 0]
            for _ in 0..<600 {
                try await side.sleep(.milliseconds(500))
                let counts = await side.counts()
                most = [max(most[0], counts[1]), max(most[1], counts[2])]
            }
            return most
        }
        let hostile = meeting.start(on: "Eve") { side in
            try await Self.flood(side, await side.other(named: "Puma"), keepsToCredit: keepsToCredit)
        }
        let guest = meeting.start(on: "Lynx") { side in
            let board = try side.board(of: await side.other(named: "Puma"))
            var slowest = Moment.Span.zero
            for column in 100..<300 {
                let begin = side.session.loop.now
                _ = try await board.play(column: column)
                slowest = max(slowest, side.session.loop.now - begin)
                try await side.sleep(.milliseconds(100))
            }
            return slowest
        }
        let simulation = meeting.simulation
        #expect(try simulation.result(of: guest, within: .seconds(200)) < .milliseconds(500))
        let most = try simulation.result(of: host, within: .seconds(400))
        #expect(most[0] < 4_000 && most[1] <= 256, "\(most)")
        if keepsToCredit { #expect(most[0] > 3_000 && most[1] == 256, "\(most)") }
        if !keepsToCredit {
            #expect(try simulation.result(of: hostile, within: .seconds(10)) < 1_000_000)
        }
    }
}
