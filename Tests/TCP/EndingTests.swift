import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighTCP

/// Tests what happens when a loop ends while work is in progress.
struct EndingTests {
    /// `@unchecked Sendable`: guarded by the monitor.
    private final class Notes: @unchecked Sendable {
        let monitor = Monitor()
        var races: [ConnectionRace] = []
        var outcomes = 0
        var isStopped = false
    }

    /// A loop that ends closes the connection in progress. The race must not continue with the next address.
    @Test func aRaceEndsWithItsLoop() throws {
        let silent = SilentPort()
        let listener = PlainSocket()
        listener.listen()
        let addresses = [silent.port, listener.port].map { SocketAddress(.v4(0x7F00_0001), port: $0) }
        let notes = Notes()
        let loop = UVEventLoop()
        loop.execute {
            let race = ConnectionRace(addresses, by: nil, on: loop) { _ in
                notes.monitor.change { notes.outcomes += 1 }
            }
            race.start()
            notes.monitor.change { notes.races.append(race) }
            // Before the race tries the second address beside the first.
            loop.shutdown()
        }
        try #require(notes.monitor.wait(within: .seconds(20)) { !notes.races.isEmpty })
        let stopper = LoopThread()
        try stopper.start {
            loop.shutdown()
            notes.monitor.change { notes.isStopped = true }
        }
        try #require(
            notes.monitor.wait(within: .seconds(20)) { notes.isStopped }, "the loop does not end")
        stopper.join()
        #expect(notes.outcomes == 0)
    }
}
