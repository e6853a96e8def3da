import Nigh
import NighTestKit
import Synchronization
import Testing

/// A program as a user writes it, with nothing in it about tests.
private struct Ticker {
    struct Tick: Codable, Equatable { var count: Int }

    /// Sends a tick each minute.
    func send(_ count: Int) async throws {
        try await withSession(service: "ticker", name: "Clock", transports: "tcp") { session in
            session.connectsAutomatically = true
            for number in 1...count {
                try await session.clock.sleep(for: .seconds(60))
                try await session.broadcast(Tick(count: number))
            }
            for peer in session.connectedPeers { try await peer.flush() }
        }
    }

    /// Collects ticks until the clock leaves.
    func collect() async throws -> [Tick] {
        try await withSession(service: "ticker") { session in
            session.connectsAutomatically = true
            async let ticks = {
                var ticks: [Tick] = []
                for await tick in session.messages(of: Tick.self) { ticks.append(tick.content) }
                return ticks
            }()
            for await case .disconnected in session.events { break }
            await session.close()
            return await ticks
        }
    }
}

private actor Tally {
    private(set) var answers: [Int] = []
    func note(_ answer: Int) { answers.append(answer) }
}

@Suite("A simulated program", .timeLimit(.minutes(15))) struct SimulationTests {
    @Test("runs unchanged, hours of it in a moment, while links break")
    func ticks() throws {
        let simulation = Simulation()
        simulation.start(on: "Clock") { try await Ticker().send(100) }
        let collecting = simulation.start(on: "Wall") { try await Ticker().collect() }
        for minutes in [10, 20, 30] {
            try simulation.run(for: .seconds(minutes * 60 + 30))
            simulation.cutLinks(of: "Wall")
        }
        let ticks = try simulation.result(of: collecting, within: .seconds(10_000))
        #expect(ticks == (1...100).map(Ticker.Tick.init))
    }

    @Test("loses a device that is offline, and finds it again")
    func offline() throws {
        let simulation = Simulation()
        let seen = Mutex<[String]>([])
        for name in ["Puma", "Lynx"] {
            simulation.start(on: name) {
                try await withSession(service: "offline") { session in
                    session.connectsAutomatically = true
                    for await event in session.events where name == "Puma" {
                        switch event {
                        case .connected(let peer): seen.withLock { $0.append("+\(peer.name)") }
                        case .disconnected(let peer, _): seen.withLock { $0.append("-\(peer.name)") }
                        default: break
                        }
                    }
                }
            }
        }
        try simulation.run(for: .seconds(5))
        simulation.takeOffline("Lynx")
        try simulation.run(for: .seconds(300))
        #expect(seen.withLock { $0 } == ["+Lynx", "-Lynx"])
        simulation.bringOnline("Lynx")
        #expect(try simulation.run(until: { seen.withLock { $0.count == 3 } }))
        #expect(seen.withLock(\.last) == "+Lynx")
    }

    @Test("runs the same way each time, with its actors, child tasks and questions", arguments: [1, 2])
    func replay(seed: UInt64) throws {
        func run() throws -> (answers: [Int], work: Int) {
            let simulation = Simulation(seed: seed)
            simulation.start(on: "Puma") {
                try await withSession(service: "replay") { session in
                    try session.answer("square") { (number: Int, _) in
                        try await session.clock.sleep(for: .milliseconds(number * 37 % 101))
                        return number * number
                    }
                    session.connectsAutomatically = true
                    await session.run()
                }
            }
            let asking = simulation.start(on: "Lynx") {
                try await withSession(service: "replay") { session in
                    session.connectsAutomatically = true
                    let tally = Tally()
                    for await case .connected(let peer) in session.events {
                        try await withThrowingTaskGroup { group in
                            for number in 0..<50 {
                                group.addTask { await tally.note(try await peer.ask("square", number)) }
                            }
                            try await group.waitForAll()
                        }
                        break
                    }
                    return await tally.answers
                }
            }
            let answers = try simulation.result(of: asking)
            return (answers, simulation.loop.workDone)
        }
        let (first, second) = (try run(), try run())
        #expect(first.answers.sorted() == (0..<50).map { $0 * $0 } && first.answers != first.answers.sorted())
        #expect(first.answers == second.answers && first.work == second.work)
    }

    @Test("that does not end in time is an error, and a sleep that is cancelled ends at once")
    func clock() throws {
        let simulation = Simulation()
        let ended = Mutex(false)
        let sleeping = simulation.start(on: "Puma") {
            try await withSession(service: "clock") { session in
                defer { ended.withLock { $0 = true } }
                try await session.clock.sleep(for: .seconds(3_600))
            }
        }
        #expect(throws: Simulation.StillRunning.self) {
            try simulation.result(of: sleeping, within: .seconds(3_590))
        }
        sleeping.cancel()
        #expect(try simulation.run(until: { ended.withLock(\.self) }, within: .zero))
        #expect(throws: CancellationError.self) { try simulation.result(of: sleeping) }
    }
}
