import Nigh
import NighTestKit
import Synchronization
import Testing

private actor Tally {
    private(set) var answers: [Int] = []
    func note(_ answer: Int) { answers.append(answer) }
}

/// TickerTests has a program that runs unchanged while links break, as docs/guides/testing.md shows it.
@Suite("A simulated program", .timeLimit(.minutes(15))) struct SimulationTests {
    @Test func `A simulated program loses a device that is offline, and finds it again`() throws {
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

    @Test(arguments: [1, 2])
    func `A simulated program with actors and child tasks runs the same way each time`(seed: UInt64) throws {
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

    @Test func `A simulated mesh connects its members the same way each time`() throws {
        func run() throws -> [String] {
            let simulation = Simulation(seed: 3)
            let seen = Mutex<[String]>([])
            for number in 0..<6 {
                simulation.start(on: "Puma \(number)") {
                    try await withSession(service: "mesh") {
                        $0.topology = .mesh
                        // The others find only the first, which introduces them.
                        $0.browses = number == 0
                        $0.connectsAutomatically = true
                    } _: { session in
                        for await case .connected(let peer) in session.events {
                            let moment = session.clock.now
                            seen.withLock { $0.append("\(moment): \(number) is connected to \(peer.name)") }
                        }
                    }
                }
            }
            _ = try simulation.run(until: { seen.withLock { $0.count == 30 } })
            return seen.withLock(\.self)
        }
        let (first, second) = (try run(), try run())
        #expect(first.count == 30 && first == second)
    }

    @Test func `A program that runs too long is an error, and a cancelled sleep ends at once`() throws {
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
