import ChildPrograms
import Foundation
import Testing

@testable import nigh

/// Tests `nigh trace` and `--record` as a user runs them.
@Suite(.callsPrograms) struct TraceTests {
    private let user = NighUser()

    /// A record of a conversation, written by its accepting side.
    private func record() throws -> (path: String, user: NighUser) {
        let conversation = try RecordedConversation("--record", "\(user.folder.path)/talk.nigh")
        try conversation.call()
        try conversation.accepting.line(with: "\"event\":\"ended\"")
        #expect(try conversation.end().status == 0)
        return ("\(user.folder.path)/talk.nigh", user)
    }

    @Test("A live trace shows hello, invitation, pings with their round trip, and the end, on both sides")
    func live() throws {
        let conversation = try RecordedConversation()
        let call = try conversation.call()
        try conversation.accepting.line(with: "\"event\":\"ended\"")
        let other = try conversation.end()
        #expect(call.status == 0 && other.status == 0, "\(call.errors) \(other.errors)")
        try call.expectSchema("trace", lines: true)
        try other.expectSchema("trace", lines: true)
        let frames = try call.objects().filter { $0["type"] as? String == "frame" }
        let names = frames.map { "\($0["direction"] ?? "") \($0["frame"] ?? "")" }
        for name in [
            "out preface", "in preface", "out hello", "in hello", "out invite", "in accept", "out close",
        ] {
            #expect(names.contains(name), "\(names)")
        }
        let pong = try #require(
            frames.first { $0["frame"] as? String == "pong" && $0["direction"] as? String == "in" })
        #expect((pong["round_trip_ms"] as? Double ?? -1) >= 0)
        #expect(pong["peer_name"] as? String == "Puma")
        let totals = try #require(try call.objects().last?["totals"] as? [[String: Any]])
        #expect(totals.contains { $0["frame"] as? String == "hello" && $0["frames_in"] as? Int == 1 })
    }

    @Test("Injected faults are visible: with 200 ms each way at one side, a round trip takes 400 ms or more")
    func injected() throws {
        let conversation = try RecordedConversation()
        let call = try conversation.call("--inject", "delay=200ms")
        _ = try conversation.end()
        let pong = try #require(
            try call.objects().first {
                $0["frame"] as? String == "pong" && $0["direction"] as? String == "in"
            })
        #expect((pong["round_trip_ms"] as? Double ?? 0) >= 400)
    }

    @Test("A record is shown as text, filtered, with its bytes, and with a summary")
    func words() throws {
        let (path, user) = try record()
        let all = try user.run("trace", path)
        #expect(all.status == 0 && all.errors == [], "\(all.errors)")
        #expect(all.lines.contains { $0.contains("accepted over tcp") })
        #expect(
            all.lines.contains {
                $0.contains("<-  hello") && $0.contains("Lynx (") && $0.contains("frames to 16384")
            })
        #expect(all.lines.contains { $0.contains("->  accept") && $0.contains("grants 1048576") })
        #expect(all.lines.contains { $0.contains("<-  close") && $0.hasSuffix("left") })
        #expect(all.lines.contains("on 1 link:"))

        let pings = try user.run("trace", path, "--type", "ping", "--direction", "in", "-x")
        // There are more of them if nothing else came for some seconds.
        #expect(pings.lines.contains { $0.contains("<-  ping") })
        #expect(pings.lines.contains { $0.hasPrefix("    000000  80 00 00 00 00 00 00 00") })
        #expect(!pings.lines.contains { $0.contains("hello") || $0.contains("->") })
        #expect(try user.run("trace", path, "--peer", "Lynx").lines == all.lines)
        #expect(try user.run("trace", path, "--peer", "Ada").lines == ["nothing has passed"])
        #expect(try user.run("trace", path, "--link", "77").lines == ["nothing has passed"])
        #expect(try user.run("trace", path, "--since", "1h").lines == ["nothing has passed"])
        #expect(try user.run("trace", path, "--until", "1h").lines == all.lines)
    }

    @Test("Packets beside the link are shown by kind, filtered, counted, and those that are missing, too")
    func packets() throws {
        let path = "\(user.folder.path)/packets.nigh"
        try RecordedPackets.write(to: path)
        let all = try user.run("trace", path)
        #expect(all.status == 0 && all.errors == [], "\(all.errors)")
        for words in [
            "->  packet-message       3  Lynx (aaaqeaye)  2: 1 bytes, in order",
            "<-  packet-probe      29  Lynx (aaaqeaye)  0: token 0102030405060708",
            "4: 2 bytes, newest of key 4", "6: part 2 of 2 of message 7, 1 bytes, unordered",
            "7: 11 packets have come, 12 is the highest, 4.096 ms ago", "8: of a later version, and ignored",
            "9: breaks the protocol: an answer's token is cut short",
        ] {
            #expect(all.lines.contains { $0.hasSuffix(words) }, "\(words) in \(all.lines)")
        }
        #expect(
            all.lines.last
                == "packets: 8 in with 2 messages, 3 out with 1; 2 of those sent here are missing")
        let sent = try user.run("trace", path, "--type", "packet", "--direction", "out")
        #expect(sent.lines.filter { $0.contains("->") }.count == 3)
        #expect(!sent.lines.contains { $0.contains("<-") })
        let reports = try user.run("trace", path, "--type", "packet-report", "-x")
        #expect(reports.lines.filter { $0.contains("<-") }.count == 1)
        #expect(reports.lines.contains { $0.hasPrefix("    000000  05 00 00 00") }, "\(reports.lines)")
        #expect(try user.run("trace", path, "--type", "hello").lines == ["nothing has passed"])

        let json = try user.run("trace", path, "--json", "-x")
        try json.expectSchema("trace")
        let packets = try #require(try json.object()["path_packets"] as? [[String: Any]])
        #expect(packets.count == 11)
        #expect(packets[5]["packet"] as? String == "packet-message" && packets[5]["number"] as? Int == 4)
        #expect(packets[5]["payload"] as? String == "03066869")
        let object = try json.object()
        #expect(object["missing_packets"] as? Int == 2 && object["fault_count"] as? Int == 1)
        #expect(object["packet_messages_in"] as? Int == 2 && object["packets_out"] as? Int == 3)
        try user.run("trace", path, "--json-lines").expectSchema("trace", lines: true)

        try RecordedPackets.write(to: "\(path).short", headLimit: 0)
        let short = try user.run("trace", "\(path).short", "--json-lines", "--type", "packet-fragment")
        try short.expectSchema("trace", lines: true)
        #expect(try short.objects().first?["recorded_bytes"] as? Int == 1)
        #expect(try short.objects().first?["bytes"] as? Int == 10)
    }

    @Test("The JSON output matches its schema, whole and in lines, with and without bytes")
    func json() throws {
        let (path, user) = try record()
        let whole = try user.run("trace", path, "--json")
        try whole.expectSchema("trace")
        #expect((try whole.object()["gaps"] as? [Any])?.isEmpty == true)
        let frames = try #require(try whole.object()["frames"] as? [[String: Any]])
        let hello = try #require(
            frames.first { $0["frame"] as? String == "hello" && $0["direction"] as? String == "in" })
        let details = try #require(hello["details"] as? [String: Any])
        #expect(details["name"] as? String == "Lynx" && details["service"] as? String == "nigh")
        #expect((details["peer"] as? String)?.count == 52)
        let lines = try user.run("trace", path, "--json-lines", "-x", "--type", "close")
        try lines.expectSchema("trace", lines: true)
        #expect(try lines.objects().first?["payload"] as? String == "000000")
    }

    @Test("A record is read from a pipe, and one that is still being written is followed")
    func pipes() throws {
        let path = "\(user.folder.path)/live.nigh"
        let conversation = try RecordedConversation("--record", path)
        let following = try user.start(["trace", path, "--follow", "--json-lines"])
        try conversation.call()
        try following.line(with: "\"event\":\"ended\"")
        following.send(SIGINT)
        #expect(try following.end().status == 0)
        #expect(try conversation.end().status == 0)
        let shell = try Child(
            "/bin/sh", ["-c", "cat \(path) | \(BuiltPrograms.path(of: "nigh")) trace - --type hello"])
        let (status, errors) = try shell.end()
        #expect(status == 0, "\(errors)")
        #expect(
            shell.lines.filter { $0.contains("hello  ") && $0.contains("link") }.count == 2, "\(shell.lines)")
    }

    @Test("A record is private, is overwritten only on request, and is readable after its program was killed")
    func killed() throws {
        let path = "\(user.folder.path)/killed.nigh"
        let conversation = try RecordedConversation("--record", path)
        try conversation.call()
        try conversation.accepting.line(with: "\"event\":\"ended\"")
        // The record is written on a thread of its own.
        let following = try user.start("trace", path, "--type", "close", "--follow")
        try following.line(with: "close")
        conversation.accepting.send(SIGKILL)
        _ = try conversation.accepting.end()
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect((attributes[.posixPermissions] as? Int) == 0o600)
        // What was written before the program was killed is intact. A record that is cut by hand is reported as cut.
        let bytes = try Data(contentsOf: URL(filePath: path))
        try bytes.dropLast(3).write(to: URL(filePath: "\(path).cut"))
        let cut = try user.run("trace", "\(path).cut")
        #expect(cut.status == 0)
        #expect(cut.errors.contains { $0.contains("ends in the middle of an entry") }, "\(cut.errors)")
        #expect(cut.lines.contains { $0.contains("hello") })

        let again = try user.run(
            "trace", "-t", RecordedConversation.transport, "--identity", "ephemeral", "--record", path, "-d",
            "1ms")
        #expect(
            again.status == 1 && again.errors.first?.contains("have this one overwritten") == true,
            "\(again.errors)")
        #expect(try Data(contentsOf: URL(filePath: path)) == bytes)
        let over = try user.run(
            "trace", "-t", RecordedConversation.transport, "--identity", "ephemeral", "--record", path,
            "--record-overwrite",
            "-d", "1ms")
        #expect(over.status == 0, "\(over.errors)")
        #expect(try Data(contentsOf: URL(filePath: path)).count == 24)
    }

    @Test("Only the beginnings of payloads are recorded if requested")
    func heads() throws {
        let path = "\(user.folder.path)/heads.nigh"
        let conversation = try RecordedConversation("--record", path, "--record-bytes", "3")
        try conversation.call()
        try conversation.accepting.line(with: "\"event\":\"ended\"")
        _ = try conversation.end()
        let call = try user.run("trace", path, "--type", "hello", "--json-lines")
        try call.expectSchema("trace", lines: true)
        #expect(try call.objects().first?["recorded_bytes"] as? Int == 3)
        #expect(try user.run("trace", path, "--type", "hello").lines.first?.contains("first 3 bytes") == true)
    }

    @Test("A record that is invalid, damaged or missing is reported, with status 1")
    func faults() throws {
        let path = "\(user.folder.path)/none.nigh"
        try Data("hello, this is no record at all".utf8).write(to: URL(filePath: path))
        let none = try user.run("trace", path)
        #expect(none.status == 1 && none.lines == [] && none.errors.first?.contains("not a record") == true)
        #expect(try user.run("trace", path, "--pcapng", "\(path).out").status == 1)
        #expect(!FileManager.default.fileExists(atPath: "\(path).out"))
        try Data().write(to: URL(filePath: path))
        #expect(try user.run("trace", path).status == 1)
        let damaged =
            Data("NIGHREC\n".utf8)
            + Data([0, 1, 0, 0, 255, 255, 255, 255] + [UInt8](repeating: 0, count: 8) + [255, 0, 0, 0])
        try damaged.write(to: URL(filePath: path))
        let call = try user.run("trace", path, "--json")
        #expect(call.status == 1 && call.errors.first?.contains("damaged at byte 24") == true)
        try call.expectSchema("trace")
        let missing = try user.run("trace", "\(path).missing", "--json")
        #expect(missing.status == 1 && missing.errors.first?.contains("reading") == true)
    }

    @Test("A peer that cannot be reached gives status 1, and an unknown transport gives status 3")
    func unreachable() throws {
        let call = try user.run(
            "trace", "-t", RecordedConversation.transport, "--identity", "ephemeral", "--connect",
            "tcp://127.0.0.1:1"
        )
        // On a busy machine it also says that it calls.
        #expect(call.status == 1 && call.errors.count { !$0.contains("calling") } == 1, "\(call.errors)")
        let none = try user.run(
            "trace", "-t", "bluetooth:adapter=hci60000", "--identity", "ephemeral", "--connect", "Somebody")
        #expect(none.status == 3, "\(none.errors)")
        let waiting = try user.run(
            "trace", "-t", "bluetooth:adapter=hci60000", "--identity", "ephemeral")
        #expect(waiting.status == 3, "\(waiting.errors)")
    }

    @Test(
        "A wrong command line ends with status 2 and one sentence",
        arguments: [
            ["--follow"], ["--pcapng", "x"], ["file", "--accept"], ["file", "--connect", "Puma"],
            ["file", "--type", "pang"],
            ["file", "--direction", "up"], ["file", "--pcapng", "x", "--peer", "Puma"],
            ["file", "--pcapng", "x", "--since", "1s"], ["file", "--pcapng", "x", "--hex"],
            ["--record-bytes", "4"], ["file", "--record", "x"],
            ["a", "b"],
        ])
    func misuse(_ arguments: [String]) throws {
        let call = try user.run(["trace"] + arguments)
        #expect(call.status == 2)
        #expect(call.errors.count == 1 && call.lines.isEmpty, "\(call)")
    }

    @Test("The help explains what a record is, and that it is plain text")
    func help() throws {
        let call = try user.run("help", "trace")
        #expect(call.status == 0)
        let text = call.lines.joined(separator: " ")
        for words in ["plain text", "--record", "--pcapng", "--follow", "--peer", "--connect"] {
            #expect(text.contains(words), "\(words)")
        }
    }
}
