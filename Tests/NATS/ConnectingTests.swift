import ChildPrograms
import Glibc
import NATSServers
import NighBroker
import NighCore
import NighTestKit
import Testing

@testable import NighNATS

/// Tests what a client says when it cannot connect, or is not allowed something.
@Suite(.serialized) struct ConnectingTests {
    private static let users = """
        authorization {
            users = [
                { user: alice, password: "right", permissions: {
                    publish: { deny: "nigh.closed.>" }, subscribe: { deny: "nigh.secret.>" } } }
            ]
        }
        """
    private static let passwordFile = "user=alice\npassword=right\n"

    private func problem(_ address: String, credentials: String? = nil) throws -> NighError {
        try Client(startedFor: address, credentials: credentials).problem()
    }

    @Test func `A server that is not running is refused, and a name without address is named`() throws {
        let server = try NATSServer()
        try server.kill()
        let refused = try problem(server.address)
        #expect(refused.cause == .refused && refused.peer == server.address)
        #expect(refused.advice?.contains("is nats-server running there") == true)
        let unknown = try problem("nats://nobody.invalid:4222")
        #expect(unknown.cause.description.contains("the name nobody.invalid has no address"))
    }

    @Test func `Of several servers that cannot be reached, each has its own reason`() throws {
        let server = try NATSServer()
        try server.kill()
        let addresses = try [server.address, "nobody.invalid"].map { try ServerAddress(parsing: $0) }
        let client = Client(NATSOptions(servers: addresses))
        client.start()
        let error = try client.problem()
        #expect(error.cause == .allFailed)
        #expect(Set(error.attempts.compactMap(\.peer)) == [server.address, "nats://nobody.invalid:4222"])
    }

    @Test func `A client connects as soon as its server appears`() throws {
        let first = try NATSServer()
        try first.kill()
        let client = try Client(startedFor: first.address)
        _ = try client.problem()
        let second = try NATSServer(port: first.port)
        defer { withExtendedLifetime(second) {} }
        #expect(client.wait(within: 10) { client.connections.count == 1 })
    }

    @Test
    func `The port of a server's cluster, and that of another program, are told from a port for clients`()
        throws
    {
        let server = try NATSServer(cluster: ("c", nil))
        let error = try problem("nats://127.0.0.1:\(server.clusterPort)")
        #expect(error.cause == .unavailable("no NATS server answers there"))
        #expect(error.advice?.contains("is \(server.clusterPort) the port of its clients") == true)
        let silent = try NATSServer(.debian, "http: \"127.0.0.1:-1\"")
        let late = try problem("nats://127.0.0.1:\(try #require(silent.monitorPort))")
        #expect(late.cause == .timedOut && late.advice?.contains("it does not greet") == true)
    }

    @Test(.timeLimit(.minutes(2))) func `A server that hangs while the connection is encrypted is given up`()
        throws
    {
        let server = try Child(
            "/usr/bin/python3",
            [
                "-c",
                """
                import socket
                server = socket.create_server(("127.0.0.1", 0))
                print(server.getsockname()[1], flush=True)
                clients = []
                while True:
                    clients.append(server.accept()[0])
                    clients[-1].sendall(b'INFO {"version":"2.10.0","client_id":1,"tls_required":true}\\r\\n')
                """,
            ])
        let client = try Client(startedFor: "tls://127.0.0.1:\(server.line(where: { _ in true }))")
        // The second time by another thread.
        #expect(client.wait(within: 40) { client.disconnections.count == 2 })
        #expect(client.monitor.read { client.disconnections.map(\.cause) } == [.timedOut, .timedOut])
    }

    @Test(arguments: NATSServer.Version.allCases) func `Missing credentials are told from wrong ones`(
        _ version: NATSServer.Version
    ) throws {
        let folder = TemporaryFolder()
        let server = try NATSServer(version, Self.users)
        let none = try problem(server.address)
        #expect(none.cause == .unavailable("the server wants credentials, and none are given"))
        let file = folder.file("wrong", "user=alice\npassword=wrong\n")
        let wrong = try problem(server.address, credentials: file)
        #expect(wrong.cause == .unavailable("the server does not accept these credentials"))
        #expect(wrong.advice?.contains(file) == true)
        _ = try Client(of: server, credentials: folder.file("right", Self.passwordFile))
    }

    @Test func `A token, an NKey seed and a .creds file admit a client`() throws {
        let folder = TemporaryFolder()
        let token = try NATSServer(.debian, "authorization { token: \"s3cret\" }")
        _ = try Client(of: token, credentials: folder.file("token", "# ours\ntoken=s3cret\n"))
        let seed = "SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y"
        let key = "UAB2CB576PHBBPQ5ODORRZ2LYCMWPZGWGCN2KDK7DXOIMZASKUY3RLKK"
        let nkey = try NATSServer(.debian, "authorization { users = [ { nkey: \(key) } ] }")
        _ = try Client(of: nkey, credentials: folder.file("nkey", seed + "\n"))
    }

    @Test func `Credentials that others can read are not used`() throws {
        let folder = TemporaryFolder()
        let file = folder.file("open", Self.passwordFile, mode: 0o644)
        let address = "nats://127.0.0.1:4222"
        let error = try problem(address, credentials: file)
        #expect(error.cause.description.contains("others may read or write it"))
        #expect(error.advice == "`chmod 600 \(file)`")
        let missing = try problem(address, credentials: "/nowhere/at/all")
        #expect(missing.cause.description.contains("it does not exist"))
        let empty = try problem(address, credentials: folder.file("none", "user=alice\n"))
        #expect(empty.cause.description.contains("it has no credentials"))
    }

    @Test(arguments: NATSServer.Version.allCases)
    func `A subject that the user may not use is named once, and the connection goes on`(
        _ version: NATSServer.Version
    ) throws {
        let folder = TemporaryFolder()
        let server = try NATSServer(version, Self.users)
        let client = try Client(of: server, credentials: folder.file("right", Self.passwordFile))
        #expect(client.diagnosis("permitted")?.verdict == .pass)
        #expect(client.subscribe(to: "nigh.secret.one"))
        for _ in 0..<3 { client.publish("x", to: "nigh.closed.two") }
        #expect(client.wait { client.failures.count == 2 })
        #expect(client.reachServer())
        client.monitor.read {
            #expect(
                Set(client.failures.map(\.cause.description)) == [
                    "the server does not let this user subscribe to nigh.secret.one",
                    "the server does not let this user publish to nigh.closed.two",
                ])
            #expect(client.disconnections.isEmpty)
        }
        let line = client.diagnosis("permitted")
        #expect(line?.verdict == .fail && line?.finding.contains("nigh.closed.two") == true)
    }

    @Test
    func `A diagnosis names the library, the server with its version, and the round trip once it is known`()
        throws
    {
        for (version, verdict) in [
            (NATSServer.Version.debian, Diagnosis.Verdict.warn), (.current, .pass),
        ] {
            let server = try NATSServer(version)
            let client = try Client(of: server)
            #expect(client.diagnosis("library")?.finding.hasPrefix("libnats 3.4") == true)
            let clock = LoadAdjustedClock()
            while client.diagnosis("server")?.isPending == true, clock.elapsed < .seconds(20) {
                usleep(10_000)
                clock.advance()
            }
            let line = client.diagnosis("server")
            #expect(line?.verdict == verdict && line?.isPending == false)
            #expect(line?.finding.contains("round trip ") == true)
            #expect(client.diagnosis("tls")?.verdict == .pass)
            #expect(client.diagnosis("payload")?.verdict == .pass)
        }
        let client = try Client(startedFor: "nats://127.0.0.1:1")
        _ = try client.problem()
        let line = client.diagnosis("server")
        #expect(line?.verdict == .fail && line?.finding.contains("nats://127.0.0.1:1: ") == true)
    }
}
