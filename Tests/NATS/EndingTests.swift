import Glibc
import NATSServers
import NighBroker
import NighCore
import NighSystem
import NighTestKit
import Testing

@testable import NighNATS

@Suite(.serialized) struct EndingTests {
    @Test func `After the shutdown nothing is reported, while packets still come in`() throws {
        let server = try NATSServer()
        let (sender, receiver) = (try Client(of: server), try Client(of: server))
        #expect(receiver.subscribe(to: "nigh.one"))
        sender.publish(20_000, of: 1_000, to: "nigh.one")
        #expect(receiver.wait { receiver.packets.count > 100 })
        receiver.shutdown()
        let count = receiver.monitor.read { receiver.eventCount }
        #expect(sender.reachServer())
        usleep(200_000)
        #expect(receiver.monitor.read { receiver.eventCount } == count)
    }

    @Test func `A client that has ended leaves no thread and no descriptor behind`() async {
        // In a process of its own, where no other test runs.
        await #expect(processExitsWith: .success) {
            func countsAtRest() -> [Int] {
                var counts: [Int] = []
                // Until nothing has changed for half a second.
                var rests = 0
                while rests < 5 {
                    usleep(100_000)
                    let now = ["task", "fd"].map { TemporaryFolder.names(in: "/proc/self/\($0)").count }
                    rests = now == counts ? rests + 1 : 0
                    counts = now
                }
                return counts
            }
            let server = try NATSServer()
            func round() throws {
                let clients = try (0..<4).map { _ in try Client(of: server) }
                for client in clients {
                    precondition(client.subscribe(to: "nigh.>"))
                    client.publish("x", to: "nigh.one")
                }
            }
            // The threads of the library itself stay.
            try round()
            let before = countsAtRest()
            for _ in 0..<3 { try round() }
            let after = countsAtRest()
            precondition(after[0] <= before[0] && after[1] <= before[1], "\(before) became \(after)")
        }
    }

    @Test func `A client ends while its server does not answer, and before it is connected`() throws {
        let server = try NATSServer()
        let connected = try Client(of: server)
        server.suspend()
        defer { server.suspend(false) }
        connected.publish(1_000, of: 65_536, to: "a")
        let start = LoopThread.now
        connected.shutdown()
        let early = try Client(startedFor: server.address)
        early.shutdown()
        #expect(LoopThread.now - start < .seconds(5))
        usleep(300_000)
        #expect(early.monitor.read { early.eventCount } == 0)
    }
}
