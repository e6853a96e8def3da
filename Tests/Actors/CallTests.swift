import Distributed
import Nigh
import NighActors
import NighCore
import NighTestKit
import Synchronization
import Testing

@Suite("Calls of actors") struct ActorCallTests {
    private let meeting = Meeting()

    /// Plays in these columns, in calls that are made one after the other, of which none waits for another.
    private static func play(_ columns: Range<Int>, _ board: $Board, _ side: Meeting.Side) async throws -> Int
    {
        let played = try await withThrowingTaskGroup(of: Score.self) { group in
            for column in columns {
                group.addTask { try await board.play(column: column) }
            }
            return try await group.reduce(into: Set<Int>()) { $0.insert($1.discs) }
        }
        return played.count
    }

    @Test("are made once each and in order, whatever happens to the link")
    func links() throws {
        var cuts = 0
        let played = try meeting.run(
            host: { try $0.publishTable() },
            guest: { side, peer in
                let board = try side.board(of: peer)
                for round in 1...40 {
                    let columns = (round * 100)..<(round * 100 + 100)
                    #expect(try await Self.play(columns, board, side) == 100)
                    try await side.sleep(.milliseconds(400))
                }
                return try await board.played()
            },
            disturbing: { simulation in
                simulation.cutLinks(of: "Lynx")
                cuts += 1
            })
        #expect(played == Array(100..<4_100))
        #expect(cuts > 10)
    }

    @Test("end at both sides when their caller is cancelled, at once")
    func cancelled() throws {
        let tables = Mutex<[Table]>([])
        let cancelledCount = Mutex(0)
        try meeting.run { side in
            let table = Table(side.actors) { try await side.sleep($0) }
            tables.withLock { $0 = [table] }
            try side.actors.publish(table, as: "board", through: $Board.self)
        } guest: { side, peer in
            let board = try side.board(of: peer)
            await withTaskGroup { group in
                for _ in 0..<50 {
                    group.addTask {
                        let error = await #expect(throws: NighError.self) { try await board.wait(3_000) }
                        #expect(error?.cause == .cancelled && error?.stage == .calling)
                    }
                }
                try? await side.sleep(.seconds(1))
                group.cancelAll()
            }
            try await side.sleep(.seconds(1))
            let table = tables.withLock { $0[0] }
            let (waiting, cancelled) = await table.whenLocal { ($0.waiting, $0.cancelled) }!
            #expect(waiting == 0)
            cancelledCount.withLock { $0 = cancelled }
        }
        #expect(cancelledCount.withLock(\.self) == 50)
    }

    @Test("fail when their time has passed, which counts for the calls that they lead to, too")
    func timeouts() throws {
        try meeting.run(host: { try $0.publishTable() }) { side, peer in
            let board = try side.board(of: peer)
            let begin = side.session.loop.now
            let error = await #expect(throws: NighError.self) {
                try await side.actors.withTimeout(.seconds(5)) {
                    try await board.wait(1)
                    try await board.wait(3_000)
                }
            }
            #expect(error?.cause == .timedOut)
            #expect(side.session.loop.now - begin < .seconds(6))
            // By default 30 s.
            await #expect(throws: NighError.self) { try await board.wait(3_000) }
            #expect(side.session.loop.now - begin < .seconds(36))
            try await side.actors.withTimeout(.seconds(50)) { try await board.wait(10) }
        }
    }

    @Test("fail when the peer is gone, and say whether they may have been made")
    func gone() throws {
        let simulation = Simulation()
        let causes = Mutex<[NighError.Cause]>([])
        simulation.start(on: "Puma") {
            try await withSession(service: "board") { session in
                session.connectsAutomatically = true
                let actors = try ActorSystem(session)
                let table = Table(actors) { try await session.clock.sleep(for: $0) }
                try actors.publish(table, as: "board", through: $Board.self)
                try await session.clock.sleep(for: .seconds(40))
            }
        }
        let visiting = simulation.start(on: "Lynx") {
            try await withSession(service: "board") { session in
                session.connectsAutomatically = true
                let actors = try ActorSystem(session)
                for await boards in actors.listing(of: $Board.self) {
                    guard let board = boards.first?.actor else { continue }
                    for _ in 0..<2 {
                        let error = await #expect(throws: NighError.self) {
                            try await actors.withTimeout(.seconds(600)) { try await board.wait(3_000) }
                        }
                        if let cause = error?.cause { causes.withLock { $0.append(cause) } }
                    }
                    break
                }
            }
        }
        try simulation.result(of: visiting, within: .seconds(600))
        #expect(causes.withLock(\.self) == [.answerLost, .notConnected])
    }

    @Test("to a peer whose program has no actors fail")
    func none() throws {
        let simulation = Simulation()
        simulation.start(on: "Puma") {
            try await withSession(service: "board") { session in
                session.connectsAutomatically = true
                try await session.clock.sleep(for: .seconds(3_600))
            }
        }
        let visiting = simulation.start(on: "Lynx") {
            try await withSession(service: "board") { session in
                session.connectsAutomatically = true
                let side = Meeting.Side(session: session, actors: try ActorSystem(session))
                let error = await #expect(throws: NighError.self) {
                    try await side.board(of: await side.other()).reset()
                }
                return "\(error!)"
            }
        }
        #expect(try simulation.result(of: visiting).contains("does not support the actor \"board\""))
    }

    // MARK: Sequences

    @Test("return sequences, whose values come in order with their end or their error")
    func sequences() throws {
        try meeting.run(host: { try $0.publishTable() }) { side, peer in
            let board = try side.board(of: peer)
            for count in [0, 1, 10_000] {
                var discs: [Int] = []
                for try await score in try await board.moves(count) { discs.append(score.discs) }
                #expect(discs == Array(1..<count + 1))
            }
            var discs: [Int] = []
            await #expect(throws: ColumnFull(column: 3)) {
                for try await score in try await board.moves(-3) { discs.append(score.discs) }
            }
            #expect(discs == [1, 2, 3])
        }
    }

    @Test("of a program to an actor of its own, through a reference, carry sequences both ways")
    func ownSequences() throws {
        try meeting.run(host: { try $0.publishTable() }) { side, _ in
            let table = Table(side.actors)
            let board = try side.actors.share(table, through: $Board.self)
            #expect(try await board.sum(RemoteStream(Moves(count: 10, counter: Counter()))) == 55)
            var discs: [Int] = []
            for try await score in try await board.moves(3) { discs.append(score.discs) }
            #expect(discs == [1, 2, 3])
            await #expect(throws: ColumnFull(column: 7)) { try await board.play(column: 7) }
        }
    }

    @Test("get sequences as arguments, which the actor reads")
    func sequenceArguments() throws {
        let sum = try meeting.run(host: { try $0.publishTable() }) { side, peer in
            try await side.board(of: peer).sum(RemoteStream(Moves(count: 1_000, counter: Counter())))
        }
        #expect(sum == 500_500)
    }

    @Test("slow a sequence down that is not read, and end it when its reader stops")
    func slowReader() throws {
        let tables = Mutex<[Table]>([])
        let counts = Mutex<[Int]>([])
        try meeting.run { side in
            let table = Table(side.actors)
            tables.withLock { $0 = [table] }
            try side.actors.publish(table, as: "board", through: $Board.self)
        } guest: { side, peer in
            let table = tables.withLock { $0[0] }
            func produced() async -> Int { await table.whenLocal { $0.counter.count }! }
            do {
                let moves = try await side.board(of: peer).moves(10_000_000)
                try await side.sleep(.seconds(60))
                let first = await produced()
                try await side.sleep(.seconds(600))
                let second = await produced()
                counts.withLock { $0 = [first, second] }
                for try await score in moves where score.discs == 100 { break }
            }
            try await side.sleep(.seconds(60))
            let end = await produced()
            try await side.sleep(.seconds(60))
            #expect(await produced() == end)
        }
        let (first, second) = counts.withLock { ($0[0], $0[1]) }
        #expect(first == second && first < 100_000, "\(first), \(second)")
    }
}
