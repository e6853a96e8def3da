import Distributed
import Nigh
import NighActors
import NighCore
import Testing

@Suite("Calls of actors on real threads") struct ActorOrderTests {
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

    @Test("start in the order in which they were made, though none waits for another")
    func order() async throws {
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

    @Test("of many tasks at once are made once each, and many are cancelled, and nothing is left")
    func storm() async throws {
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
