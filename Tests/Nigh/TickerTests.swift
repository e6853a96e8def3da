import Nigh
import NighTestKit
import Testing

/// The program to test: it counts minutes aloud.
func tick(_ minutes: Int) async throws {
    try await withSession(service: "ticker") { session in
        session.connectsAutomatically = true
        for minute in 1...minutes {
            try await session.clock.sleep(for: .seconds(60))
            try await session.broadcast(minute)
        }
    }
}

/// The other program: it listens until the first one leaves.
func listen() async throws -> [Int] {
    try await withSession(service: "ticker") { session in
        session.connectsAutomatically = true
        var heard: [Int] = []
        for await case .connected(let peer) in session.events {
            for await minute in try await peer.messages(of: Int.self) {
                heard.append(minute.content)
            }
            break
        }
        return heard
    }
}

@Suite("The ticker")
struct TickerTests {
    @Test func `is heard whole, although the link breaks`() throws {
        let simulation = Simulation()
        simulation.start(on: "Clock") { try await tick(30) }
        let hearing = simulation.start(on: "Radio") { try await listen() }
        try simulation.run(for: .seconds(330))
        simulation.cutLinks(of: "Radio")
        try simulation.run(for: .seconds(600))
        simulation.takeOffline("Radio")
        try simulation.run(for: .seconds(5))
        simulation.bringOnline("Radio")
        #expect(
            try simulation.result(of: hearing, within: .seconds(3_600))
                == Array(1...30))
    }
}
