import ChildPrograms
import Glibc
import NighCore
import NighLoop
import NighMemory
import Testing

@testable import nigh

/// Tests `nigh inject` as a user runs it.
@Suite(.callsPrograms) struct InjectTests {
    private let user = NighUser()
    private static let nobody = "tcp://127.0.0.1:1"

    /// Starts a relay, which reads what a test types; returns it with its address.
    private func relay(_ faults: String, to target: String, _ options: String = "") throws -> (Child, String)
    {
        let child = try user.start(
            "inject \(faults) --to \(target) --listen tcp:interface=lo --json-lines \(options)", reads: true)
        return (child, try #require(child.json(with: "\"type\":\"listening\"")["addresses"][0].string))
    }

    @Test func `It delays a conversation that stays authenticated; typed faults apply`() throws {
        let conversation = try RecordedConversation()
        let (inject, address) = try relay("delay=100ms", to: conversation.address)
        #expect(address != conversation.address)
        let call = try conversation.call(to: address)
        let pong = try #require(call.frames("pong", "in").first)
        #expect(pong["round_trip_ms"].double ?? 0 >= 200)
        #expect(call.objects.contains { $0["event"].string == "secured" })
        try inject.line(with: "\"event\":\"closed\"")
        for line in ["status", "faults none", "faults", "jump", "cut 9"] { inject.type(line) }
        try inject.line(with: "\"command\":\"cut 9\"")
        let output = try inject.finish(after: SIGINT)
        let replies = output.objects("reply")
        #expect(replies.map { $0["is_done"].bool } == [true, true, true, false, false])
        #expect(replies[2]["lines"].strings == ["faults: none"])
        let summary = output.summary
        #expect(summary["connection_count"].int == 1 && summary["failed_count"].int == 0)
        #expect(summary["bytes_out"].int ?? 0 > 500 && summary["bytes_in"].int ?? 0 > 500)
        try conversation.end()
    }

    @Test(
        arguments: [
            ("tcp://127.0.0.1:4000", "tcp", "lo"), ("tcp://[::1]:4000", "tcp:port=5000", "lo"),
            ("tcp://localhost:4000", "tcp", "lo"), ("tcp://host=127.0.0.1,port=1", "tcp", "lo"),
            ("tcp://127.0.0.1:4000", "tcp:interface=eth0", "eth0"), ("tcp://192.168.1.7:4000", "tcp", nil),
            ("tcp://example.org:4000", "tcp", nil), ("tcp://127.0.0.1:4000", "bluetooth", nil),
            ("bluetooth://00:11:22:33:44:55", "tcp", nil),
        ])
    func `For a target on this machine it listens on loopback`(
        _ target: String, _ listen: String, _ expected: String?
    ) throws {
        let command = InjectCommand(
            output: OutputOptions(form: .text), faults: .none,
            target: try #require(TransportAddress(target)),
            listen: try TransportSpec(parsing: listen), service: SessionOptions.ownService, plugins: .none)
        #expect(command.listeningSpec.options["interface"] == expected)
        #expect(command.listeningSpec.options["port"] == (listen.contains("port") ? "5000" : nil))
    }

    @Test func `It offers on loopback alone what only this machine reaches`() throws {
        let inject = try user.start("inject none --to \(Self.nobody) --json-lines")
        let listed = try inject.json(with: "\"type\":\"listening\"")["addresses"].strings
        try inject.finish(after: SIGINT)
        #expect(
            !listed.isEmpty
                && listed.allSatisfy { $0.hasPrefix("tcp://127.0.0.1:") || $0.hasPrefix("tcp://[::1]:") },
            "\(listed)")
    }

    @Test func `A cut ends the link at both ends, and quit ends it with a reason`() throws {
        let conversation = try RecordedConversation()
        let inject = try user.start(
            "inject none --to \(conversation.address) --listen tcp:interface=lo", reads: true)
        let words = try inject.line(with: "listens at").split(separator: " ")
        let address = try #require(words.first { $0.hasPrefix("tcp://127.0.0.1:") }).filter { $0 != "," }
        let calling = try user.start("\(RecordedConversation.trace) --connect \(address) --json-lines")
        try calling.line(with: "\"frame\":\"accept\"")
        inject.type("cut")
        for child in [calling, conversation.accepting] { try child.line(with: "\"event\":\"ended\"") }
        try inject.line(with: "connection 1 ended after", "the target: the link was lost")
        inject.type("quit")
        let output = try inject.finish()
        #expect(output.errors.isEmpty && output.lines.last?.contains("bytes out") == true, "\(output)")
        try calling.finish(after: SIGINT, status: nil)
        try conversation.end()
    }

    @Test(arguments: [false, true])
    func `Packets go through it, or within the link if it loses all`(_ isLossy: Bool) async throws {
        let (target, caller) = (try ForeignSession(), try ForeignSession(role: .client))
        let (inject, address) = try relay(isLossy ? "loss=all" : "none", to: target.address)
        let id = try await caller.call(address, for: [])
        try caller.session.trySend([0], to: id, .unreliable)
        if !isLossy { try #require(caller.probe.wait { $0.peer(id)?.hasDatagrams == true }) }
        for number in 1...50 as ClosedRange<UInt8> {
            try caller.session.trySend([number], to: id, .unreliable)
            if isLossy { try #require(target.probe.wait { $0.messages.last?.bytes == [number] }) }
        }
        try #require(target.probe.wait { $0.messages.last?.bytes == [50] })
        // The path is tried beside the messages, perhaps after them.
        var status = ""
        for number in 1...600 where !status.contains("lost") == isLossy {
            inject.type("status")
            status = try inject.line(with: "\"command\":\"status\"", occurrence: number)
            usleep(20_000)
        }
        #expect(caller.probe.peer(id)?.hasDatagrams == !isLossy)
        let summary = try inject.finish(after: SIGINT).summary
        let (passed, lost) = (summary["packets_out"].int ?? -1, summary["packets_lost_out"].int ?? -1)
        #expect(isLossy ? passed == 0 && lost > 0 : passed >= 50 && lost == 0, "\(summary)")
        #expect(isLossy || summary["packets_in"].int ?? 0 > 0)
        await caller.end()
        await target.end()
    }

    @Test func `A missing target is reported for each connection, a port in use at once`() throws {
        let (inject, address) = try relay("none", to: Self.nobody)
        try user.run("\(RecordedConversation.trace) --connect \(address)", status: 1)
        try inject.line(with: "\"event\":\"failed\"")
        let port = address.split(separator: ":").last ?? ""
        try user.fail("inject none --to \(Self.nobody) --listen tcp:interface=lo,port=\(port)")
        inject.type("quit")
        try inject.finish()
        let whole = try user.start(
            "inject none --to \(Self.nobody) --listen tcp:interface=lo --json", reads: true)
        whole.type("quit")
        let json = try whole.finish().json
        #expect(json["connections"].list.isEmpty)
    }
}
