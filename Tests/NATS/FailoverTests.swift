import Glibc
import NATSServers
import NighBroker
import NighCore
import NighSystem
import NighTestKit
import Testing

@testable import NighNATS

@Suite(.serialized) struct FailoverTests {
    /// The server of a cluster to which `client` is connected.
    private func used(by client: Client, of servers: [NATSServer]) -> NATSServer? {
        let port = client.onLoop { client.connection.facts?.server.port }
        return servers.first { $0.port == port }
    }

    @Test func `When the server in use is killed, the client is at another one of the cluster at once`()
        throws
    {
        let servers = try NATSServer.cluster(of: 3)
        var spans: [Moment.Span] = []
        // Only one server is named; it tells of the others.
        let client = try Client(of: servers[0])
        for round in 1...2 {
            let server = try #require(used(by: client, of: servers))
            let start = LoopThread.now
            try server.kill()
            #expect(client.wait(within: 5) { client.connections.count == round + 1 })
            let (lost, found) = client.monitor.read { (client.disconnectedAt, client.connectedAt) }
            #expect(lost.count >= round && found.count == round + 1)
            if let last = found.last { spans.append(last - start) }
            #expect(used(by: client, of: servers) !== server)
            #expect(client.monitor.read { client.disconnections.first?.cause } == .linkLost)
            #expect(client.subscribe(to: "nigh.again"))
        }
        print("a killed server was replaced after \(spans)")
        for span in spans { #expect(span < .seconds(5)) }
    }

    @Test func `A server that shuts down says so`() throws {
        let server = try NATSServer()
        let client = try Client(of: server)
        try server.stop()
        #expect(client.wait { !client.disconnections.isEmpty })
        let cause = client.monitor.read { client.disconnections.first?.cause }
        #expect(cause == .unavailable("the server was shut down") || cause == .linkLost)
    }

    @Test func `A client leaves a server that is about to end its connections before the server ends it`()
        throws
    {
        let servers = try NATSServer.cluster(
            of: 2, .debian, "lame_duck_duration: \"30s\"\nlame_duck_grace_period: \"10s\"")
        let client = try Client(of: servers)
        let old = try #require(used(by: client, of: servers))
        let start = LoopThread.now
        old.enterLameDuckMode()
        #expect(client.wait { client.connections.count == 2 })
        print("the client left a lame duck after \(LoopThread.now - start)")
        client.monitor.read {
            #expect(
                client.disconnections.map(\.cause) == [.unavailable("the server is about to shut down")])
            // Both are reported together: the new connection was there first.
            #expect(client.connectedAt[1] - client.disconnectedAt[0] < .milliseconds(200))
        }
        #expect(used(by: client, of: servers) !== old)
        #expect(client.subscribe(to: "nigh.again"))
    }

    @Test
    func `A client stays with a server that is about to end its connections while there is no other one`()
        throws
    {
        let server = try NATSServer(.debian, "lame_duck_duration: \"30s\"\nlame_duck_grace_period: \"10s\"")
        let client = try Client(of: server)
        server.enterLameDuckMode()
        usleep(500_000)
        #expect(client.subscribe(to: "nigh.still"))
        #expect(client.monitor.read { client.disconnections.isEmpty })
    }

    @Test(.timeLimit(.minutes(2))) func `A server that hangs is noticed`() throws {
        let server = try NATSServer()
        let client = try Client(of: server)
        server.suspend()
        defer { server.suspend(false) }
        client.onLoop { client.connection.mark(1) }
        #expect(client.wait(within: 40) { !client.disconnections.isEmpty })
        #expect(client.monitor.read { client.disconnections.first?.cause } == .silent)
    }
}
