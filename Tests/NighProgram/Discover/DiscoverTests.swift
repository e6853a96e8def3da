import ChildPrograms
import Glibc
import Testing

@testable import nigh

/// Tests `nigh discover` with another program that it can find.
@Suite(.callsPrograms) struct DiscoverTests {
    private let user = NighUser()
    private let other = NighUser()
    private static let loopback = ["-t", "tcp:interface=lo,mdns=embedded"]
    private let service = "d\(UInt32.random(in: .min ... .max))"

    private func peer() throws -> Child {
        try other.start(["pair", "--name", "Puma", "-s", service, "-v", "--timeout", "1h"] + Self.loopback)
    }

    /// Discovers until Puma is seen, and then as Ctrl-C ends it.
    private func seen(by viewer: NighUser? = nil, _ options: String...) throws -> NighCall {
        let watching = try (viewer ?? user).start(
            ["discover", service, "--timeout", "1h", "-v"] + options + Self.loopback)
        try watching.error(with: "Puma (", "can be reached")
        watching.send(SIGINT)
        return try NighCall(finishing: watching)
    }

    @Test("Peers that appear and disappear are reported, and Ctrl-C ends it with a summary")
    func live() throws {
        let watching = try user.start(["discover", service, "--json-lines"] + Self.loopback)
        let puma = try peer()
        try watching.line(with: "\"event\":\"found\"", "\"name\":\"Puma\"")
        puma.send(SIGINT)
        try watching.line(with: "\"event\":\"lost\"", "\"name\":\"Puma\"")
        watching.send(SIGINT)
        let call = try NighCall(finishing: watching)
        #expect(call.status == 0)
        try call.expectSchema("discover", lines: true)
        #expect(try #require(call.objects().last)["peers"] as? [String] == [])
        #expect(try puma.end().status == 1)
    }

    @Test("With --once it prints a table or one object, with the names of the peers that it sees")
    func once() throws {
        let puma = try peer()
        _ = try puma.error(with: "others see this session")
        let table = try seen("--once")
        #expect(table.status == 0, "\(table)")
        #expect(table.lines.first?.hasPrefix("NAME") == true)
        #expect(table.lines.dropFirst().first?.hasPrefix("Puma  ") == true, "\(table)")
        let whole = try seen("--once", "--json")
        try whole.expectSchema("discover")
        let peers = try #require(try whole.object()["peers"] as? [[String: Any]])
        #expect(peers.map { $0["name"] as? String } == ["Puma"])
        #expect(peers.map { $0["own"] as? Bool } == [false])
        // Another program of one's own user is no stranger.
        let own = try #require(
            try seen(by: other, "--once", "--json").object()["peers"] as? [[String: Any]])
        #expect(own.map { $0["own"] as? Bool } == [true])
        puma.send(SIGTERM)
        _ = try puma.end()
    }

    @Test("A host in the transport's options is seen without mDNS, and no longer once it has ended")
    func hostInOptions() throws {
        let host = try HostInTests("--name", "Puma")
        let known = try "\(HostInTests.transport),host=127.0.0.1,port=\(host.port)"
        let watching = try user.start(["discover", "--json-lines", "-v", "-t", known])
        try watching.line(with: "\"event\":\"found\"", "\"name\":\"Puma\"")
        #expect(try host.end().status == 0)
        try watching.line(with: "\"event\":\"lost\"", "\"name\":\"Puma\"")
        try watching.error(with: "nobody listens there")
        watching.send(SIGINT)
        #expect(try NighCall(finishing: watching).status == 0)
    }

    @Test("If nobody is there, the status is 1, and the output points to doctor")
    func nobody() throws {
        let call = try user.run(
            ["discover", service, "--once", "--timeout", "100ms", "--json"] + Self.loopback)
        #expect(call.status == 1)
        try call.expectSchema("discover")
        #expect(call.errors.count == 1 && call.errors[0].contains("nigh doctor"), "\(call)")
    }

    @Test("If no transport works, the status is 3, with the reason")
    func unavailable() throws {
        let call = try user.run(
            "discover", "--once", "--timeout", "1s", "-t", "bluetooth:adapter=hci60000", "--json")
        #expect(call.status == 3)
        try call.expectSchema("discover")
        #expect(try call.object()["error"] != nil)
    }

    @Test(
        "A wrong command line ends with status 2",
        arguments: [["No_Service"], ["a", "b"], ["--timeout", "soon"]])
    func misuse(_ arguments: [String]) throws {
        let call = try user.run(["discover"] + arguments)
        #expect(call.status == 2 && call.lines.isEmpty && call.errors.count == 1, "\(call)")
    }
}
