import ChildPrograms
import Foundation
import Testing

@testable import nigh

/// Tests `nigh peers --map`, and what other commands say of peers that others introduce or carry, with real programs.
@Suite(.callsPrograms) struct MapCommandTests {
    private let puma = NighUser()
    private let lynx = NighUser()
    private let hare = NighUser()
    private let user = NighUser()
    private let session = [
        "-s", "m\(UInt32.random(in: .min ... .max))", "-t", "tcp:interface=lo,mdns=embedded",
    ]

    /// Three who chat in a mesh.
    private func chat() throws -> [Child] {
        let first = try puma.start(["chat", "-n", "Puma", "--mesh"] + session, reads: true)
        let second = try lynx.start(["chat", "Puma", "-n", "Lynx", "--mesh"] + session, reads: true)
        try second.line(with: "Puma", "has joined, over tcp")
        let third = try hare.start(["chat", "Puma", "-n", "Hare", "--mesh"] + session, reads: true)
        try second.line(with: "Hare", "has joined, over tcp")
        return [first, second, third]
    }

    private func end(_ children: [Child]) throws {
        for child in children {
            child.closeInput()
            _ = try NighCall(finishing: child)
        }
    }

    /// Asks for a map until it is whole. It counts as complete after 2 s without a change, in which a busy machine may
    /// get nothing done.
    private func map(_ options: [String], until isWhole: (NighCall) throws -> Bool) throws -> NighCall {
        var call: NighCall
        var attempts = 0
        repeat {
            call = try user.run(["peers", "--map", "--once", "--timeout", "60s"] + options + session)
            attempts += 1
        } while try attempts < 5 && !isWhole(call)
        return call
    }

    @Test("With --once it shows who of a mesh is connected to whom, as text, as JSON and as a picture")
    func once() throws {
        let chatting = try chat()
        let picture = "\(user.folder.path)/mesh.svg"
        let summary = "4 peers, 6 conversations: 6 over tcp"
        let table = try map(["-n", "Otter", "--svg", picture, "--force"]) { $0.lines.contains(summary) }
        #expect(table.status == 0, "\(table)")
        #expect(table.lines.contains(summary), "\(table)")
        for name in ["Otter", "Puma", "Lynx", "Hare"] {
            #expect(table.lines.contains { $0.contains("  \(name) ") }, "\(table)")
        }
        let svg = try String(contentsOfFile: picture, encoding: .utf8)
        #expect(svg.hasPrefix("<svg") && svg.contains(#"data-kind="tcp" data-count="6""#))
        let again = try user.run(["peers", "--map", "--once", "--svg", picture] + session)
        #expect(again.status == 2 && again.errors.first?.contains("--force overwrites it") == true)

        let whole = try map(["--json"]) { call in
            let conversations = try call.object()["conversations"] as? [[String: Any]] ?? []
            return try conversations.count == 6 && (call.object()["missing"] as? [Any])?.isEmpty == true
                && conversations.allSatisfy { $0["transport"] as? String == "tcp" }
                && conversations.count { ($0["told_by"] as? [String])?.count == 2 } >= 3
        }
        #expect(whole.status == 0, "\(whole)")
        try whole.expectSchema("map")
        let conversations = try #require(try whole.object()["conversations"] as? [[String: Any]])
        #expect(conversations.allSatisfy { $0["transport"] as? String == "tcp" })
        // Both ends of a conversation between two others tell of it.
        #expect(conversations.count { ($0["told_by"] as? [String])?.count == 2 } >= 3)
        #expect((try whole.object()["missing"] as? [Any])?.isEmpty == true)

        // Nobody reads it, so it cannot be opened for writing.
        let pipe = "\(user.folder.path)/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        let unwritten = try user.run(
            ["peers", "--map", "--once", "--json", "--timeout", "60s", "--svg", pipe, "--force"] + session)
        #expect(unwritten.status == 1 && unwritten.errors.count == 1, "\(unwritten)")
        try unwritten.expectSchema("map")
        #expect(try unwritten.object()["svg"] is NSNull)
        try end(chatting)
    }

    @Test("Without --once it reports changes as they happen, until Ctrl-C")
    func live() throws {
        let chatting = try chat()
        let watching = try user.start(["peers", "--map", "--json-lines", "-n", "Otter"] + session)
        for number in 1...6 { try watching.line(with: "\"change\":\"connected\"", occurrence: number) }
        chatting[2].send(SIGKILL)
        _ = try? chatting[2].end()
        try watching.line(with: "\"interrupted\":true")
        watching.send(SIGINT)
        let call = try NighCall(finishing: watching)
        #expect(call.status == 0, "\(call)")
        try call.expectSchema("map", lines: true)
        try end([chatting[0], chatting[1]])
    }

    @Test("The map is printed while a terminal shows what happens if the results go elsewhere")
    func redirected() throws {
        let chatting = try chat()
        let windows = try TerminalWindows(of: "nigh")
        let file = "\(user.folder.path)/map.txt"
        try windows.open(
            "map", "peers --map -n Otter \(session.joined(separator: " ")) >\(file)",
            environment: "LANG=C.UTF-8 XDG_DATA_HOME=\(user.folder.path)")
        try windows.wait("map", shows: "Ctrl-C ends")
        try windows.wait("the map is in the file") {
            try String(contentsOfFile: file, encoding: .utf8).contains("conversations: ")
        }
        try end(chatting)
    }

    @Test("If nobody is there, the status is 1, no picture is written, and the output points to discover")
    func nobody() throws {
        let picture = "\(user.folder.path)/none.svg"
        let call = try user.run(
            ["peers", "--map", "--once", "--timeout", "300ms", "--json", "--svg", picture] + session)
        #expect(call.status == 1)
        try call.expectSchema("map")
        #expect(call.errors.count == 1 && call.errors[0].contains("nigh discover"), "\(call)")
        #expect(!FileManager.default.fileExists(atPath: picture))
    }

    @Test("A program that does not let the session in is named with its reason")
    func refused() throws {
        let waiting = try puma.start(["pair", "--name", "Puma", "-v", "--timeout", "1h"] + session)
        let call = try user.run(["peers", "--map", "--once", "--timeout", "60s"] + session)
        #expect(call.status == 1)
        #expect(
            call.errors.contains { $0.contains("Puma") && $0.contains("accepts only `nigh pair`") }, "\(call)"
        )
        #expect(call.errors.first?.contains("looking for peers of the service") == true, "\(call)")
        waiting.send(SIGTERM)
        _ = try waiting.end()
    }

    @Test(
        "A wrong command line ends with status 2",
        arguments: [
            ["--once"], ["--svg", "x.svg"], ["--timeout", "1s"], ["--force"], ["--map", "--force"],
            ["--map", "--paired"], ["--map", "--svg", "/nowhere/x.svg"], ["--map", "Puma"],
        ])
    func misuse(_ arguments: [String]) throws {
        let call = try user.run(["peers"] + arguments)
        #expect(call.status == 2 && call.lines.isEmpty && call.errors.count == 1, "\(call)")
    }

    // MARK: Through another peer

    /// A host that carries connections, and another one that is connected to it and that nobody else finds.
    private func carried() throws -> (lynx: HostInTests, hare: HostInTests) {
        let carrier = try HostInTests(of: lynx, "--name", "Lynx", "--relays", "everyone")
        let far = try HostInTests(
            of: hare, "--name", "Hare", "--relays", "everyone", "--through", carrier.address, "-v")
        try far.child.error(with: "Lynx", "is connected over tcp")
        return (carrier, far)
    }

    private func through(_ carrier: HostInTests) -> [String] {
        ["--through", carrier.address, "--relays", "everyone", "-t", HostInTests.transport]
    }

    @Test("A peer that another one carries is discovered with the name of that one, which ping names as well")
    func discoverAndPing() throws {
        let (carrier, far) = try carried()
        let watching = try user.start(["discover", "--json-lines"] + through(carrier))
        let line = try watching.line(with: "\"event\":\"found\"", "\"name\":\"Hare\"")
        #expect(line.contains("\"through\":\""))
        watching.send(SIGINT)
        let discovery = try NighCall(finishing: watching)
        try discovery.expectSchema("discover", lines: true)
        let once = try user.start(["discover", "--once", "--timeout", "1h", "-v"] + through(carrier))
        try once.error(with: "Hare (", "can be reached")
        once.send(SIGINT)
        let table = try NighCall(finishing: once)
        #expect(table.lines.contains { $0.hasPrefix("Hare") && $0.contains("through Lynx (") }, "\(table)")

        let ping = try user.run(
            ["ping", "Hare", "-c", "2", "-i", "10ms", "--timeout", "1m"] + through(carrier))
        #expect(ping.status == 0, "\(ping)")
        #expect(ping.lines.first?.contains(") is connected through Lynx (") == true, "\(ping)")
        let json = try user.run(["ping", "Hare", "-c", "1", "--timeout", "1m", "--json"] + through(carrier))
        try json.expectSchema("ping")
        let peer = try #require((try json.object()["peers"] as? [[String: Any]])?.first)
        #expect((peer["through"] as? String)?.count == 52)
        let direct = try user.run(
            ["ping", far.address, "-c", "1", "--timeout", "1m", "-t", HostInTests.transport])
        #expect(direct.lines.first?.contains(") is connected directly over tcp") == true, "\(direct)")
        #expect(try carrier.end().status == 0)
        #expect(try far.end().status == 0)
    }

    @Test("A peer to go through that does not answer is named, while the command goes on")
    func nobodyToGoThrough() throws {
        let asking = try user.start(
            "discover", "--once", "--timeout", "1h", "--through", "tcp://127.0.0.1:1", "-t",
            HostInTests.transport)
        try asking.error(with: "--through tcp://127.0.0.1:1: still looking for a way to it")
        asking.send(SIGINT)
        #expect(try NighCall(finishing: asking).status == 1)
        let misuse = try user.run("discover", "--mesh")
        #expect(misuse.status == 2 && misuse.errors.first?.contains("--mesh needs --through") == true)
    }

    @Test(
        "The doctor says over what the other two are connected, and that the one carries connections to the other"
    )
    func doctorAsksAnother() throws {
        let (carrier, far) = try carried()
        let call = try user.run(
            "doctor", "--json", "-t", HostInTests.transport, "--peer", "Hare", "--timeout", "30s",
            "--through",
            carrier.address)
        #expect(call.status == 1, "\(call)")
        try call.expectSchema("doctor")
        let checks = try #require(try call.object()["checks"] as? [[String: Any]])
        func check(_ id: String) -> [String: Any]? { checks.first { $0["id"] as? String == id } }
        #expect(check("peer.through")?["verdict"] as? String == "pass")
        #expect((check("peer.through")?["finding"] as? String)?.contains("over tcp") == true)
        #expect(check("peer.common")?["verdict"] as? String == "pass")
        #expect(check("peer.address")?["verdict"] as? String == "fail")
        #expect((check("peer.carried")?["finding"] as? String)?.contains("carries connections") == true)
        #expect(try carrier.end().status == 0)
        #expect(try far.end().status == 0)
    }

    @Test("The doctor asks nobody else about a peer to which there is a direct way")
    func doctorAsksNobody() throws {
        let chatting = try chat()
        let call = try user.run(
            ["doctor", "--json", "--peer", "Hare", "--through", "Puma", "--timeout", "20s"] + session)
        #expect(call.status == 0, "\(call)")
        let checks = try #require(try call.object()["checks"] as? [[String: Any]])
        #expect(!checks.contains { $0["id"] as? String == "peer.through" })
        try end(chatting)
    }
}
