import ChildPrograms
import Foundation
import Testing

@testable import nigh

/// Tests `nigh ping` as a user runs it.
@Suite(.callsPrograms) struct PingTests {
    private let user = NighUser()
    private let transport = ["-t", HostInTests.transport]
    /// Options with which a reply of a busy machine is never lost.
    private var patient: [String] { ["--timeout", "1m"] + transport }

    @Test("Each reply is printed with its transport, and a summary follows")
    func words() throws {
        let host = try HostInTests("--name", "Puma")
        let call = try user.run(["ping", host.address, "-c", "3", "-i", "1ms"] + patient)
        #expect(call.status == 0)
        #expect(
            call.lines.first?.hasPrefix("Puma (") == true && call.lines.first?.contains("over tcp") == true)
        for number in 1...3 {
            #expect(
                call.lines.contains { $0.hasPrefix("#\(number)  ") && $0.hasSuffix(" ms  tcp") },
                "\(call.lines)")
        }
        #expect(call.lines.contains { $0.hasSuffix("3 sent, 3 received, 0 % lost") })
        #expect(call.lines.contains { $0.hasPrefix("round trip: min ") && $0.contains("jitter") })
        #expect(call.lines.contains { $0.contains("p50") && $0.contains("p95") && $0.contains("p99") })
        #expect(call.lines.last == "carried by tcp 3; 0 reconnects, 0 rejoins")
    }

    @Test("The JSON output matches its schema, whole and in lines")
    func json() throws {
        let host = try HostInTests()
        let whole = try user.run(
            ["ping", host.address, "-c", "4", "-i", "0", "--json", "--size", "1k"] + patient)
        #expect(whole.status == 0)
        try whole.expectSchema("ping")
        let object = try whole.object()
        #expect((object["replies"] as? [Any])?.count == 4 && object["received"] as? Int == 4)
        #expect((object["paths"] as? [[String: Any]])?.first?["received"] as? Int == 4)
        let lines = try user.run(["ping", host.address, "-c", "2", "-i", "0", "--json-lines"] + patient)
        try lines.expectSchema("ping", lines: true)
        #expect(try lines.objects().map { $0["type"] as? String } == ["peer", "reply", "reply", "summary"])
        let quiet = try user.run(
            ["ping", host.address, "-c", "500", "-i", "0", "-q", "--json-lines"] + patient)
        #expect(try quiet.objects().map { $0["type"] as? String } == ["peer", "summary"])
        #expect(try quiet.objects().last?["received"] as? Int == 500)
    }

    @Test("Pings travel beside the link, and a network that loses packets loses pings")
    func datagrams() throws {
        let host = try HostInTests()
        let common = ["ping", host.address, "--datagrams", "-i", "1ms", "--json"] + transport
        let call = try user.run(common + ["--until", "--size", "1k"])
        #expect(call.status == 0)
        try call.expectSchema("ping")
        let object = try call.object()
        #expect(object["over"] as? String == "packets" && object["received"] as? Int == 1)
        let lossy = try user.run(common + ["-c", "200", "--timeout", "200ms", "--inject", "loss=20%"])
        try lossy.expectSchema("ping")
        let losses = try #require(try lossy.object()["losses"] as? [String: Int])
        // On a busy machine answers may be so late that packets count as blocked.
        #expect((losses["timeout"] ?? 0) + (losses["blocked"] ?? 0) > 20 && losses["link_lost"] == 0)
        let blocked = try user.run(common + ["-c", "3", "--inject", "loss=all"])
        #expect(blocked.status == 1)
        try blocked.expectSchema("ping")
        #expect((try blocked.object()["losses"] as? [String: Int])?["blocked"] == 3)
    }

    @Test("The number of replies in one JSON object is limited")
    func bounded() throws {
        let host = try HostInTests()
        let call = try user.run(["ping", host.address, "-c", "1200", "-i", "0", "--json"] + patient)
        let object = try call.object()
        #expect((object["replies"] as? [Any])?.count == 1_000 && object["items_left_out"] as? Int == 200)
        #expect(object["received"] as? Int == 1_200)
    }

    @Test("A missed threshold gives status 4, and one that is kept gives 0")
    func thresholds() throws {
        let host = try HostInTests()
        let common = ["ping", host.address, "-c", "5", "-i", "0", "--json"] + patient
        let missed = try user.run(common + ["--max-p99", "1us"])
        #expect(missed.status == 4)
        #expect((try missed.object()["missed"] as? [String])?.count == 1)
        #expect(try user.run(common + ["--max-p99", "60s", "--max-loss", "5%"]).status == 0)
    }

    @Test("Ctrl-C ends it with its summary")
    func interrupt() throws {
        let host = try HostInTests()
        let child = try user.start(["ping", host.address, "-i", "100ms", "--json-lines"] + patient)
        try child.line(with: "\"number\":3")
        child.send(SIGINT)
        let call = try NighCall(finishing: child)
        #expect(call.status == 0)
        let summary = try #require(try call.objects().last)
        #expect(summary["type"] as? String == "summary" && (summary["received"] as? Int ?? 0) >= 3)
        #expect(summary["lost"] as? Int == 0, "what was under way is not lost")
    }

    @Test("A peer that is killed causes lost pings, and the command ends in time")
    func killed() throws {
        let host = try HostInTests()
        let child = try user.start(
            ["ping", host.address, "-c", "600", "-i", "20ms", "--json-lines"] + transport)
        try child.line(with: "\"number\":2")
        host.child.send(SIGKILL)
        let call = try NighCall(finishing: child)
        #expect(call.status == 0)
        try call.expectSchema("ping", lines: true)
        let summary = try #require(try call.objects().last)
        #expect(summary["sent"] as? Int == 600)
        #expect((summary["lost"] as? Int ?? 0) > 0)
        #expect(try call.objects().contains { $0["change"] as? String == "reconnecting" })
        let limited = try call.objects().last?["losses"] as? [String: Int]
        #expect((limited?["no_link"] ?? 0) + (limited?["link_lost"] ?? 0) > 0, "\(call.lines)")
    }

    @Test("A peer that returns is pinged again, in a new conversation")
    func back() throws {
        let owner = NighUser()
        let host = try HostInTests(of: owner)
        let child = try user.start(["ping", host.address, "-i", "20ms", "--json-lines"] + transport)
        try child.line(with: "\"number\":2")
        let port = try host.port
        host.child.send(SIGKILL)
        try child.line(with: "\"reconnecting\"")
        let again = try HostInTests(of: owner, port: port)
        try child.line(with: "\"rejoined\"")
        try child.line(with: "\"after_reconnect\":true")
        child.send(SIGINT)
        let call = try NighCall(finishing: child)
        #expect(call.status == 0)
        try call.expectSchema("ping", lines: true)
        let summary = try #require(try call.objects().last)
        #expect(summary["rejoins"] as? Int == 1 && (summary["lost"] as? Int ?? 0) > 0)
        _ = try again.end()
    }

    @Test("A link that is cut loses the pings under way, and the conversation continues over another")
    func cut() throws {
        let host = try HostInTests()
        let child = try user.start(
            ["ping", host.address, "-i", "20ms", "--json-lines", "--inject", "cut-after-bytes=16k"]
                + transport)
        try child.line(with: "\"reconnected\"")
        try child.line(with: "\"after_reconnect\":true")
        child.send(SIGINT)
        let call = try NighCall(finishing: child)
        #expect(call.status == 0)
        let summary = try #require(try call.objects().last)
        #expect((summary["reconnects"] as? Int ?? 0) >= 1 && summary["rejoins"] as? Int == 0, "\(call.lines)")
    }

    @Test("A reply that is late counts as lost, and without any reply the status is 1")
    func timeout() throws {
        let host = try HostInTests()
        let call = try user.run(
            [
                "ping", host.address, "-c", "3", "-i", "1ms", "--timeout", "1ms", "--json", "--inject",
                "delay=150ms",
            ] + transport)
        #expect(call.status == 1)
        try call.expectSchema("ping")
        let object = try call.object()
        #expect((object["losses"] as? [String: Int])?["timeout"] == 3 && object["round_trip_ms"] is NSNull)
        #expect((object["replies"] as? [Any])?.isEmpty == true)
    }

    @Test("If nobody is there, the status is 1 with one sentence, and --until waits for a peer")
    func until() throws {
        let port = try FreePort.find()
        let address = "tcp://127.0.0.1:\(port)"
        let nobody = try user.run(["ping", address, "-c", "1", "--json", "--wait", "300ms"] + transport)
        #expect(nobody.status == 1)
        try nobody.expectSchema("ping")
        #expect(nobody.errors.count == 1)
        let limited = try user.run(["ping", address, "--until", "--wait", "300ms"] + transport)
        #expect(limited.status == 1 && limited.errors.count == 1, "\(limited)")
        let child = try user.start(["ping", address, "--until", "--json", "-v"] + transport)
        let host = try HostInTests(port: port)
        let call = try NighCall(finishing: child)
        #expect(call.status == 0)
        #expect(try call.object()["received"] as? Int == 1)
        _ = try host.end()
    }

    @Test("A search or a call that takes a while is announced, except with --quiet or as JSON")
    func announcement() throws {
        let words = ["ping", "Nobody", "--wait", "2s"] + transport
        for (more, isAnnounced) in [([], true), (["--quiet"], false), (["--json"], false)] {
            let call = try user.run(words + more)
            #expect(call.status == 1 && call.errors.count == (isAnnounced ? 2 : 1), "\(call)")
            #expect(call.errors.contains("nigh: looking for Nobody …") == isAnnounced, "\(call)")
        }
        // It accepts a connection, and says nothing.
        let silent = try BoundSocket()
        try #require(listen(silent.descriptor, 1) == 0)
        let address = "tcp://127.0.0.1:\(silent.port)"
        let call = try user.run(["ping", address, "--wait", "2s"] + transport)
        #expect(call.status == 1 && call.errors.first == "nigh: calling \(address) …", "\(call)")
    }

    @Test("A peer can be named by name or by the beginning of its PeerID, and is found by mDNS")
    func byName() throws {
        let name = "Puma \(UInt32.random(in: 0 ... .max))"
        let service = "p\(UInt32.random(in: 0 ... .max))"
        let owner = NighUser()
        let host = try owner.start(
            "host", service, "-t", "tcp:interface=lo,mdns=embedded", "--json-lines", "--name", name)
        let line = try host.line(with: "\"peer_id\"")
        let id = try #require(line.split(separator: "\"").first { $0.count == 52 })
        for choice in [name, String(id.prefix(6))] {
            let call = try user.run(
                "ping", choice, "-c", "1", "--timeout", "1m", "-s", service, "-t",
                "tcp:interface=lo,mdns=embedded", "--json")
            #expect(call.status == 0, "\(call)")
            #expect((try call.object()["peer"] as? [String: Any])?["name"] as? String == name)
        }
    }

    @Test(
        "A wrong command line ends with status 2 and one sentence",
        arguments: [
            ["ping"], ["ping", "a", "b"], ["ping", "a", "-c", "0"], ["ping", "a", "--size", "1025"],
            ["ping", "a", "--until", "-c", "3"], ["ping", "a", "--max-loss", "101%"],
            ["ping", "a", "--max-loss", "-1"],
            ["ping", "a", "-i", "fast"], ["ping", "tcp://"],
        ])
    func misuse(_ arguments: [String]) throws {
        let call = try user.run(arguments)
        #expect(call.status == 2)
        #expect(call.errors.count == 1 && call.lines.isEmpty, "\(call)")
    }

    @Test("If no transport works, the status is 3")
    func unavailable() throws {
        let call = try user.run("ping", "Puma", "-t", "bluetooth:adapter=hci60000", "--json")
        #expect(call.status == 3)
        try call.expectSchema("ping")
    }

    @Test("The help explains what happens to pings without a link")
    func help() throws {
        let call = try user.run("ping", "--help")
        #expect(call.status == 0)
        let text = call.lines.joined(separator: " ")
        for word in ["counts as lost", "Jitter", "--until", "--max-p99", "--timeout"] {
            #expect(text.contains(word))
        }
    }
}
