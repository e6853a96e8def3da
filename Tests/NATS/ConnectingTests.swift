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

    /// The first report of a client that cannot connect.
    private func problem(_ options: NATSOptions) throws -> NighError {
        let client = Client(options)
        defer { client.shutdown() }
        client.start()
        #expect(client.wait { !client.disconnections.isEmpty })
        return try #require(client.monitor.read { client.disconnections.first })
    }

    private func options(_ address: String, credentials: String? = nil) throws -> NATSOptions {
        NATSOptions(servers: [try ServerAddress(parsing: address)], credentials: credentials)
    }

    @Test("A server that is not running is refused, and a name without address is named")
    func notThere() throws {
        let server = try NATSServer()
        try server.kill()
        let refused = try problem(try options(server.address))
        #expect(refused.cause == .refused && refused.peer == server.address)
        #expect(refused.advice?.contains("is nats-server running there") == true)
        let unknown = try problem(try options("nats://nobody.invalid:4222"))
        #expect(unknown.cause.description.contains("the name nobody.invalid has no address"))
    }

    @Test("Of several servers that cannot be reached, each has its own reason")
    func severalNotThere() throws {
        let server = try NATSServer()
        try server.kill()
        let error = try problem(
            NATSOptions(servers: [
                try ServerAddress(parsing: server.address), try ServerAddress(parsing: "nobody.invalid"),
            ]))
        #expect(error.cause == .allFailed)
        #expect(Set(error.attempts.compactMap(\.peer)) == [server.address, "nats://nobody.invalid:4222"])
    }

    @Test("A client connects as soon as its server appears")
    func appearing() throws {
        let first = try NATSServer()
        try first.kill()
        let client = Client(try options(first.address))
        defer { client.shutdown() }
        client.start()
        #expect(client.wait { !client.disconnections.isEmpty })
        let second = try NATSServer(port: first.port)
        defer { withExtendedLifetime(second) {} }
        #expect(client.wait(within: 10) { client.connections.count == 1 })
    }

    @Test("The port of a server's cluster, and that of another program, are told from a port for clients")
    func notForClients() throws {
        let server = try NATSServer(cluster: ("c", nil))
        let error = try problem(try options("nats://127.0.0.1:\(server.clusterPort)"))
        #expect(error.cause == .unavailable("no NATS server answers there"))
        #expect(error.advice?.contains("is \(server.clusterPort) the port of its clients") == true)
        let silent = try NATSServer(.debian, "http: \"127.0.0.1:-1\"")
        let late = try problem(try options("nats://127.0.0.1:\(try #require(silent.monitorPort))"))
        #expect(late.cause == .timedOut && late.advice?.contains("it does not greet") == true)
    }

    @Test("A server that hangs while the connection is encrypted is given up", .timeLimit(.minutes(2)))
    func endlessHandshake() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 8) == 0
                    && getsockname(listener, $0, &size) == 0
            }
        }
        try #require(isBound)
        let thread = LoopThread()
        try thread.start {
            var accepted: [Int32] = []
            while true {
                let next = accept(listener, nil, nil)
                guard next >= 0 else { break }
                let greeting = "INFO {\"version\":\"2.10.0\",\"client_id\":1,\"tls_required\":true}\r\n"
                _ = write(next, greeting, greeting.utf8.count)
                accepted.append(next)
            }
            for socket in accepted { close(socket) }
        }
        defer {
            shutdown(listener, Int32(SHUT_RDWR))
            thread.join()
            close(listener)
        }
        let client = Client(try options("tls://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"))
        defer { client.shutdown() }
        client.start()
        // The second time by another thread.
        #expect(client.wait(within: 40) { client.disconnections.count == 2 })
        #expect(client.monitor.read { client.disconnections.map(\.cause) } == [.timedOut, .timedOut])
    }

    @Test("Missing credentials are told from wrong ones", arguments: NATSServer.Version.allCases)
    func credentials(_ version: NATSServer.Version) throws {
        let folder = TemporaryFolder()
        let server = try NATSServer(version, Self.users)
        let none = try problem(try options(server.address))
        #expect(none.cause == .unavailable("the server wants credentials, and none are given"))
        let file = folder.file("wrong", "user=alice\npassword=wrong\n")
        let wrong = try problem(try options(server.address, credentials: file))
        #expect(wrong.cause == .unavailable("the server does not accept these credentials"))
        #expect(wrong.advice?.contains(file) == true)
        let right = try Client(of: server, credentials: folder.file("right", Self.passwordFile))
        right.shutdown()
    }

    @Test("A token, an NKey seed and a .creds file admit a client")
    func kindsOfCredentials() throws {
        let folder = TemporaryFolder()
        let token = try NATSServer(.debian, "authorization { token: \"s3cret\" }")
        try Client(of: token, credentials: folder.file("token", "# ours\ntoken=s3cret\n")).shutdown()

        let seed = "SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y"
        let key = "UAB2CB576PHBBPQ5ODORRZ2LYCMWPZGWGCN2KDK7DXOIMZASKUY3RLKK"
        let nkey = try NATSServer(.debian, "authorization { users = [ { nkey: \(key) } ] }")
        try Client(of: nkey, credentials: folder.file("nkey", seed + "\n")).shutdown()
    }

    @Test("Credentials that others can read are not used")
    func exposedCredentials() throws {
        let folder = TemporaryFolder()
        let file = folder.file("open", Self.passwordFile, mode: 0o644)
        let error = try problem(try options("nats://127.0.0.1:4222", credentials: file))
        #expect(error.cause.description.contains("others may read or write it"))
        #expect(error.advice == "`chmod 600 \(file)`")
        let missing = try problem(try options("nats://127.0.0.1:4222", credentials: "/nowhere/at/all"))
        #expect(missing.cause.description.contains("it does not exist"))
        let empty = try problem(
            try options("nats://127.0.0.1:4222", credentials: folder.file("none", "user=alice\n")))
        #expect(empty.cause.description.contains("it has no credentials"))
    }

    @Test(
        "A subject that the user may not use is named once, and the connection goes on",
        arguments: NATSServer.Version.allCases)
    func permissions(_ version: NATSServer.Version) throws {
        let folder = TemporaryFolder()
        let server = try NATSServer(version, Self.users)
        let client = try Client(of: server, credentials: folder.file("right", Self.passwordFile))
        defer { client.shutdown() }
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

    @Test("A diagnosis names the library, the server with its version, and the round trip once it is known")
    func diagnosis() throws {
        for (version, verdict) in [
            (NATSServer.Version.debian, Diagnosis.Verdict.warn), (.current, .pass),
        ] {
            let server = try NATSServer(version)
            let client = try Client(of: server)
            defer { client.shutdown() }
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
        let client = Client(try options("nats://127.0.0.1:1"))
        defer { client.shutdown() }
        client.start()
        #expect(client.wait { !client.disconnections.isEmpty })
        let line = client.diagnosis("server")
        #expect(line?.verdict == .fail && line?.finding.contains("nats://127.0.0.1:1: ") == true)
    }
}
