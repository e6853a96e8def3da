import ChildPrograms
import Glibc
import NighCore
import NighMemory
import Testing

@testable import nigh

/// Tests `nigh inject` as a user runs it.
@Suite(.callsPrograms) struct InjectTests {
    private let user = NighUser()

    private static func address(in line: String) -> String {
        "tcp://127.0.0.1:" + line.split(separator: "tcp://127.0.0.1:", maxSplits: 1)[1].prefix { $0.isNumber }
    }

    @Test("It delays a conversation without breaking its authentication; typed faults apply; Ctrl-C sums up")
    func relay() throws {
        let conversation = try RecordedConversation()
        let inject = try user.start(
            "inject", "delay=100ms", "--to", conversation.address, "--listen", "tcp:interface=lo",
            "--json-lines",
            reads: true)
        let address = Self.address(in: try inject.line(with: "\"type\":\"listening\""))
        #expect(address != conversation.address)
        let call = try conversation.call(to: address)
        let objects = try call.objects()
        let pong = try #require(
            objects.first { $0["frame"] as? String == "pong" && $0["direction"] as? String == "in" })
        #expect((pong["round_trip_ms"] as? Double ?? 0) >= 200)
        #expect(objects.contains { $0["event"] as? String == "secured" })
        try inject.line(with: "\"event\":\"closed\"")
        for line in ["status", "faults none", "faults", "jump", "cut 9"] { inject.type(line) }
        try inject.line(with: "\"command\":\"cut 9\"")
        inject.send(SIGINT)
        let output = try NighCall(finishing: inject)
        #expect(output.status == 0, "\(output.errors)")
        try output.expectSchema("inject", lines: true)
        let replies = try output.objects().filter { $0["type"] as? String == "reply" }
        #expect(replies.map { $0["is_done"] as? Bool } == [true, true, true, false, false])
        #expect((replies[2]["lines"] as? [String]) == ["faults: none"])
        let summary = try #require(try output.objects().last)
        #expect(summary["connection_count"] as? Int == 1 && summary["failed_count"] as? Int == 0)
        #expect((summary["bytes_out"] as? Int ?? 0) > 500 && (summary["bytes_in"] as? Int ?? 0) > 500)
        _ = try conversation.end()
    }

    @Test(
        "For a target on this machine it listens on loopback, unless an interface is named",
        arguments: [
            ("tcp://127.0.0.1:4000", "tcp", "lo"), ("tcp://[::1]:4000", "tcp:port=5000", "lo"),
            ("tcp://localhost:4000", "tcp", "lo"), ("tcp://host=127.0.0.1,port=1", "tcp", "lo"),
            ("tcp://127.0.0.1:4000", "tcp:interface=eth0", "eth0"), ("tcp://192.168.1.7:4000", "tcp", nil),
            ("tcp://example.org:4000", "tcp", nil), ("tcp://127.0.0.1:4000", "bluetooth", nil),
            ("bluetooth://00:11:22:33:44:55", "tcp", nil),
        ])
    func interface(_ target: String, _ listen: String, _ expected: String?) throws {
        let command = InjectCommand(
            output: OutputOptions(form: .text), faults: .none,
            target: try #require(TransportAddress(target)),
            listen: try TransportSpec(parsing: listen), service: SessionOptions.ownService, plugins: .none)
        #expect(command.listeningSpec.options["interface"] == expected)
        #expect(command.listeningSpec.options["port"] == (listen.contains("port") ? "5000" : nil))
    }

    @Test("It offers on loopback alone what only this machine reaches")
    func loopbackTarget() throws {
        let inject = try user.start("inject", "none", "--to", "tcp://127.0.0.1:1", "--json-lines")
        let line = try inject.line(with: "\"type\":\"listening\"")
        inject.send(SIGINT)
        #expect(try NighCall(finishing: inject).status == 0)
        #expect(line.contains("tcp://127.0.0.1:"), "\(line)")
        let listed = line.split(separator: "tcp://").dropFirst()
        #expect(listed.allSatisfy { $0.hasPrefix("127.0.0.1:") || $0.hasPrefix("[::1]:") }, "\(line)")
    }

    @Test("A cut ends the link at both ends, and quit ends it with a reason")
    func cut() throws {
        let conversation = try RecordedConversation()
        let inject = try user.start(
            "inject", "none", "--to", conversation.address, "--listen", "tcp:interface=lo", reads: true)
        let address = Self.address(in: try inject.line(with: "listens at"))
        let calling = try user.start(
            "trace", "-t", RecordedConversation.transport, "--identity", "ephemeral", "--connect", address,
            "--json-lines")
        try calling.line(with: "\"frame\":\"accept\"")
        inject.type("cut")
        try calling.line(with: "\"event\":\"ended\"")
        try conversation.accepting.line(with: "\"event\":\"ended\"")
        try inject.line(with: "connection 1 ended after", "the target: the link was lost")
        inject.type("quit")
        let output = try NighCall(finishing: inject)
        #expect(output.status == 0 && output.errors == [], "\(output.errors)")
        #expect(output.lines.last?.contains("bytes out") == true)
        calling.send(SIGINT)
        _ = try calling.end()
        _ = try conversation.end()
    }

    @Test("A missing target is reported for each connection, also as one object")
    func noTarget() throws {
        let inject = try user.start(
            "inject", "none", "--to", "tcp://127.0.0.1:1", "--listen", "tcp:interface=lo", "--json-lines",
            reads: true)
        let address = Self.address(in: try inject.line(with: "\"type\":\"listening\""))
        let call = try user.run(
            "trace", "-t", RecordedConversation.transport, "--identity", "ephemeral", "--connect", address)
        #expect(call.status == 1)
        try inject.line(with: "\"event\":\"failed\"")
        inject.type("quit")
        let output = try NighCall(finishing: inject)
        #expect(output.status == 0)
        try output.expectSchema("inject", lines: true)
        let whole = try user.start(
            "inject", "none", "--to", "tcp://127.0.0.1:1", "--listen", "tcp:interface=lo", "--json",
            reads: true)
        whole.type("quit")
        let object = try NighCall(finishing: whole)
        #expect(object.status == 0)
        try object.expectSchema("inject")
        #expect((try object.object()["connections"] as? [Any])?.isEmpty == true)
    }

    @Test("A transport that does not work gives status 3, and a port in use gives status 1")
    func unavailable() throws {
        let none = try user.run(
            "inject", "none", "--to", "tcp://127.0.0.1:1", "--listen", "tcp:interface=nowhere0")
        #expect(none.status == 3, "\(none.errors)")
        let conversation = try RecordedConversation()
        let port = conversation.address.split(separator: ":").last ?? ""
        let taken = try user.run(
            "inject", "none", "--to", "tcp://127.0.0.1:1", "--listen", "tcp:interface=lo,port=\(port)")
        #expect(taken.status == 1 && taken.errors.count == 1, "\(taken.errors)")
        _ = try conversation.end()
    }

    @Test(
        "A wrong command line ends with status 2 and one sentence",
        arguments: [
            ["delay=1s"], ["--to", "tcp://127.0.0.1:1"], ["dely=1s", "--to", "tcp://127.0.0.1:1"],
            ["none", "--to", "nowhere"], ["none", "--to", "tcp://127.0.0.1:1", "--listen", ":"],
            ["none", "more", "--to", "tcp://127.0.0.1:1"],
        ])
    func misuse(_ arguments: [String]) throws {
        let call = try user.run(["inject"] + arguments)
        #expect(call.status == 2, "\(call)")
        #expect(call.errors.count == 1 && call.lines.isEmpty, "\(call)")
    }

    @Test("The help lists every fault, and every command that can be typed")
    func help() throws {
        let call = try user.run("help", "inject")
        #expect(call.status == 0)
        #expect(try user.run("inject", "--help").lines == call.lines)
        for (key, value, _) in FaultPlan.guide {
            #expect(call.lines.contains { $0.hasPrefix("  \(key)=\(value) ") }, "\(key)")
        }
        for (command, _) in RelayCommand.guide {
            #expect(call.lines.contains { $0.hasPrefix("  \(command)") }, "\(command)")
        }
    }
}
