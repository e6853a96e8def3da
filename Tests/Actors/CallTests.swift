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
    private static func play(_ columns: Range<Int>, _ board: $Board) async throws -> Int {
        let played = try await withThrowingTaskGroup(of: Score.self) { group in
            for column in columns {
                group.addTask { try await board.play(column: column) }
            }
            return try await group.reduce(into: Set<Int>()) { $0.insert($1.discs) }
        }
        return played.count
    }

    @Test func `Calls are made once each and in order, whatever happens to the link`() throws {
        var cuts = 0
        let played = try meeting.play { side, board in
            for round in 1...40 {
                let columns = (round * 100)..<(round * 100 + 100)
                #expect(try await Self.play(columns, board) == 100)
                try await side.sleep(.milliseconds(400))
            }
            return try await board.played()
        } disturbing: { simulation in
            simulation.cutLinks(of: "Lynx")
            cuts += 1
        }
        #expect(played == Array(100..<4_100))
        #expect(cuts > 10)
    }

    /// As `play` of the meeting, with the host's table for a look at its state.
    private func play(
        _ guest: @escaping @Sendable (Meeting.Side, $Board, Table) async throws -> Void
    ) throws {
        let tables = Mutex<[Table]>([])
        try meeting.run { side in
            let table = try side.publishTable()
            tables.withLock { $0 = [table] }
        } guest: { side, peer in
            try await guest(side, side.board(of: peer), tables.withLock { $0[0] })
        }
    }

    @Test func `Calls end at both sides when their caller is cancelled, at once`() throws {
        try play { side, board, table in
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
            let (waiting, cancelled) = await table.whenLocal { ($0.waiting, $0.cancelled) }!
            #expect(waiting == 0 && cancelled == 50)
        }
    }

    @Test func `Calls fail when their time has passed, and so do the calls that they lead to`() throws {
        try meeting.play { side, board in
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

    @Test func `Calls fail when the peer is gone, and say whether they may have been made`() throws {
        _ = meeting.start(on: "Puma") { side in
            try side.publishTable()
            try await side.sleep(.seconds(40))
        }
        let visiting = meeting.start(on: "Lynx") { side in
            let board = try side.board(of: await side.other())
            var causes: [NighError.Cause?] = []
            for _ in 0..<2 {
                let error = await #expect(throws: NighError.self) {
                    try await side.actors.withTimeout(.seconds(600)) { try await board.wait(3_000) }
                }
                causes.append(error?.cause)
            }
            return causes
        }
        let causes = try meeting.simulation.result(of: visiting, within: .seconds(600))
        #expect(causes == [.answerLost, .notConnected])
    }

    @Test func `Calls to a peer whose program has no actors fail`() throws {
        meeting.simulation.start(on: "Puma") {
            try await withSession(service: "board") { session in
                session.connectsAutomatically = true
                try await session.clock.sleep(for: .seconds(3_600))
            }
        }
        let visiting = meeting.start(on: "Lynx") { side in
            let board = try side.board(of: await side.other())
            let error = await #expect(throws: NighError.self) { try await board.reset() }
            return "\(error!)"
        }
        let words = try meeting.simulation.result(of: visiting)
        #expect(words.contains("does not support the actor \"board\""))
    }

    // MARK: Sequences

    @Test func `Calls return sequences, whose values come in order with their end or their error`() throws {
        try meeting.play { _, board in
            for count in [0, 1, 10_000] {
                let discs = try await Self.discs(board.moves(count))
                #expect(discs == Array(1..<count + 1))
            }
            var discs: [Int] = []
            await #expect(throws: ColumnFull(column: 3)) {
                for try await score in try await board.moves(-3) { discs.append(score.discs) }
            }
            #expect(discs == [1, 2, 3])
        }
    }

    private static func discs(_ scores: RemoteStream<Score>) async throws -> [Int] {
        var discs: [Int] = []
        for try await score in scores { discs.append(score.discs) }
        return discs
    }

    @Test func `Calls get sequences as arguments, which the actor reads`() throws {
        let sum = try meeting.play { _, board in
            try await board.sum(RemoteStream(scores(1_000)))
        }
        #expect(sum == 500_500)
    }

    @Test func `Calls of a program to an actor of its own carry sequences both ways`() throws {
        try meeting.play { side, _ in
            let table = Table(side.actors)
            let board = try side.actors.share(table, through: $Board.self)
            #expect(try await board.sum(RemoteStream(scores(10))) == 55)
            let discs = try await Self.discs(board.moves(3))
            #expect(discs == [1, 2, 3])
            await #expect(throws: ColumnFull(column: 7)) { try await board.play(column: 7) }
        }
    }

    @Test func `A sequence that is not read slows down, and ends when its reader stops`() throws {
        try play { side, board, table in
            /// How many values have been asked for after this time.
            func produced(after time: Duration) async throws -> Int {
                try await side.sleep(time)
                return await table.whenLocal { $0.counter.count }!
            }
            do {
                let moves = try await board.moves(10_000_000)
                let first = try await produced(after: .seconds(60))
                #expect(try await produced(after: .seconds(600)) == first && first < 100_000)
                for try await score in moves where score.discs == 100 { break }
            }
            let end = try await produced(after: .seconds(60))
            #expect(try await produced(after: .seconds(60)) == end)
        }
    }

    // MARK: On real threads

    /// Two connected sessions over memory, each on a thread of its own.
    private static func meet(
        _ body: (_ host: NighActors.ActorSystem, _ guest: Meeting.Side, _ peer: Peer) async throws -> Void
    ) async throws {
        let network = "memory:hub=actors-\(UInt64.random(in: 0 ... .max))"
        func session(_ name: String) throws -> Session {
            try Session(service: "board", name: name, transports: network) { settings in
                settings.identity = .temporary
                settings.connectsAutomatically = true
            }
        }
        let (puma, lynx) = (try session("Puma"), try session("Lynx"))
        // The machine may be busy with other tests.
        let side = Meeting.Side(session: lynx, actors: try ActorSystem(lynx, timeout: nil))
        try await body(try ActorSystem(puma), side, await side.other())
        await puma.close()
        await lynx.close()
    }

    @Test func `Calls start in the order in which they were made`() async throws {
        try await Self.meet { host, guest, peer in
            try host.publish(Table(host), as: "board", through: $Board.self)
            let board = try guest.actors.actor($Board.self, named: "board", on: peer)
            let tasks = await withCheckedContinuation { continuation in
                // On a thread that is no task's, each runs up to its call before the next one begins.
                guest.session.loop.execute {
                    continuation.resume(
                        returning: (100..<1_100).map { column in
                            Task.immediate { try await board.play(column: column).discs }
                        })
                }
            }
            for (number, task) in tasks.enumerated() { #expect(try await task.value == number + 1) }
            #expect(try await board.played() == Array(100..<1_100))
        }
    }

    @Test func `Calls of many tasks are made once each, and nothing is left`() async throws {
        try await Self.meet { host, guest, peer in
            let table = Table(host) { try await Task.sleep(for: $0) }
            try host.publish(table, as: "slow", through: $Board.self)
            try host.publish(Table(host), as: "board", through: $Board.self)
            let slow = try guest.actors.actor($Board.self, named: "slow", on: peer)
            // Of the many calls to the slow actor 256 are made, and the others wait; but not those to this one.
            let board = try guest.actors.actor($Board.self, named: "board", on: peer)
            let waits = (0..<600).map { number in
                let task = Task { try await slow.wait(600) }
                if number % 7 == 0 { task.cancel() }
                return task
            }
            let scores = try await withThrowingTaskGroup(of: Int.self) { group in
                for column in 100..<400 { group.addTask { try await board.play(column: column).discs } }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(scores.count == 300)
            for wait in waits.shuffled() { wait.cancel() }
            for wait in waits { await #expect(throws: NighError.self) { try await wait.value } }
            // A call behind the others: those that were cancelled before it have reached their tasks.
            while true {
                _ = try await board.caller()
                let (waiting, counts) = (await table.whenLocal { $0.waiting }, await guest.counts())
                if waiting == 0, counts == [0, 0, 0] { break }
            }
        }
    }
}
