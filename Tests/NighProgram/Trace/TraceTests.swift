import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh trace` and `--record` as a user runs them.
@Suite(.callsPrograms) struct TraceTests {
    private let user = NighUser()
    private let nothing = ["nothing has passed"]
    private var path: String { "\(user.folder.path)/talk.nigh" }

    @Test func `A live trace shows hello, invitation, pings with their time, and the end`() throws {
        let conversation = try RecordedConversation()
        // Injected faults are visible: with 200 ms each way at one side, a round trip takes 400 ms or more.
        let call = try conversation.call("--inject delay=200ms")
        try conversation.accepting.line(with: "\"event\":\"ended\"")
        try conversation.end()
        let names = call.objects("frame").map { "\($0["direction"]) \($0["frame"])" }
        let expected = [
            "out preface", "in preface", "out hello", "in hello", "out invite", "in accept", "out close",
        ]
        for name in expected { #expect(names.contains(name), "\(names)") }
        let pong = try #require(call.frames("pong", "in").first)
        #expect(pong["round_trip_ms"].double ?? 0 >= 400 && pong["peer_name"].string == "Puma")
        let totals = call.summary["totals"].list
        #expect(totals.contains { $0["frame"].string == "hello" && $0["frames_in"].int == 1 })
    }

    @Test func `A record is shown as text, filtered, with its bytes, with a summary, and as JSON`() throws {
        try RecordedConversation.record(to: path)
        let all = try user.run("trace \(path)")
        #expect(all.errors.isEmpty, "\(all.errors)")
        for words in [
            ["accepted over tcp"], ["<-  hello", "Lynx (", "frames to 16384"],
            ["->  accept", "grants 1048576"],
            ["<-  close", "left"], ["on 1 link:"],
        ] {
            #expect(all.lines.contains { line in words.allSatisfy(line.contains) }, "\(words)")
        }

        let pings = try user.run("trace \(path) --type ping --direction in -x").lines
        // There are more of them if nothing else came for some seconds.
        #expect(pings.contains { $0.contains("<-  ping") })
        #expect(pings.contains { $0.hasPrefix("    000000  80 00 00 00 00 00 00 00") })
        #expect(!pings.contains { $0.contains("hello") || $0.contains("->") })
        for filter in ["--peer Lynx", "--until 1h"] {
            #expect(try user.run("trace \(path) \(filter)").lines == all.lines)
        }
        for filter in ["--peer Ada", "--link 77", "--since 1h"] {
            #expect(try user.run("trace \(path) \(filter)").lines == nothing)
        }

        let whole = try user.run("trace \(path) --json").json
        #expect(whole["gaps"].list.isEmpty)
        let hello = try #require(
            whole["frames"].list.first { $0["frame"].string == "hello" && $0["direction"].string == "in" })
        #expect(hello["details"]["name"].string == "Lynx" && hello["details"]["service"].string == "nigh")
        #expect(hello["details"]["peer"].string?.count == 52)
        let close = try user.run("trace \(path) --json-lines -x --type close").objects[0]
        #expect(close["payload"].string == "000000")
    }

    @Test func `Packets are shown by kind, filtered and counted, missing ones, too`() throws {
        try RecordedPackets.write(to: path)
        let all = try user.run("trace \(path)")
        #expect(all.errors.isEmpty, "\(all.errors)")
        for words in [
            "->  packet-message       3  Lynx (aaaqeaye)  2: 1 bytes, in order",
            "<-  packet-probe      29  Lynx (aaaqeaye)  0: token 0102030405060708",
            "9: breaks the protocol: an answer's token is cut short",
        ] {
            #expect(all.lines.contains { $0.hasSuffix(words) }, "\(words) in \(all.lines)")
        }
        #expect(
            all.lines.last
                == "packets: 8 in with 2 messages, 3 out with 1; 2 of those sent here are missing")
        let sent = try user.run("trace \(path) --type packet --direction out").lines
        #expect(sent.count { $0.contains("->") } == 3 && !sent.contains { $0.contains("<-") })
        let reports = try user.run("trace \(path) --type packet-report -x").lines
        #expect(reports.count { $0.contains("<-") } == 1)
        #expect(reports.contains { $0.hasPrefix("    000000  05 00 00 00") }, "\(reports)")
        #expect(try user.run("trace \(path) --type hello").lines == nothing)

        let json = try user.run("trace \(path) --json -x").json
        let packets = json["path_packets"]
        #expect(packets.list.count == 11)
        #expect(packets[5]["packet"].string == "packet-message" && packets[5]["number"].int == 4)
        #expect(packets[5]["payload"].string == "03066869")
        #expect(json["missing_packets"].int == 2 && json["fault_count"].int == 1)
        #expect(json["packet_messages_in"].int == 2 && json["packets_out"].int == 3)
        try user.run("trace \(path) --json-lines")

        try RecordedPackets.write(to: "\(path).short", headLimit: 0)
        let short = try user.run("trace \(path).short --json-lines --type packet-fragment").objects[0]
        #expect(short["recorded_bytes"].int == 1 && short["bytes"].int == 10)
    }

    @Test func `A record is read from a pipe, and one that is still being written is followed`() throws {
        let conversation = try RecordedConversation("--record \(path)")
        let following = try user.start("trace \(path) --follow --json-lines")
        try conversation.call()
        try following.line(with: "\"event\":\"ended\"")
        try following.finish(after: SIGINT)
        try conversation.end()
        let script = "cat \(path) | \(BuiltPrograms.path(of: "nigh")) trace - --type hello"
        let lines = try Child.run("/bin/sh", ["-c", script])
        #expect(lines.count { $0.contains("hello  ") && $0.contains("link") } == 2, "\(lines)")
    }

    @Test func `A record is readable after its program was killed, also if it is cut, and not overwritten`()
        throws
    {
        let conversation = try RecordedConversation("--record \(path)")
        try conversation.call()
        try conversation.accepting.line(with: "\"event\":\"ended\"")
        // The record is written on a thread of its own.
        let following = try user.start("trace \(path) --type close --follow")
        try following.line(with: "close")
        try conversation.accepting.finish(after: SIGKILL, status: -SIGKILL)
        let bytes = try Data(contentsOf: URL(filePath: path))
        try bytes.dropLast(3).write(to: URL(filePath: "\(path).cut"))
        let cut = try user.run("trace \(path).cut", says: "ends in the middle of an entry")
        #expect(cut.lines.contains { $0.contains("hello") })

        let again = "\(RecordedConversation.trace) -d 1ms --record \(path) --record-bytes 3"
        try user.run(again, status: 1, says: "have this one overwritten")
        #expect(try Data(contentsOf: URL(filePath: path)) == bytes)
        try user.run("\(again) --record-overwrite")
        #expect(try Data(contentsOf: URL(filePath: path)).count == 24)
    }

    @Test func `Only the beginnings of payloads are recorded if requested`() throws {
        try RecordedConversation.record(to: path, "--record-bytes 3")
        #expect(try user.run("trace \(path) --type hello").lines[0].contains("first 3 bytes"))
    }

    @Test func `A record that is invalid, damaged or missing is reported`() throws {
        let none = user.folder.file("none", "hello, this is no record at all")
        #expect(try user.run("trace \(none)", status: 1, says: "not a record").lines == [])
        try user.run("trace \(none) --pcapng \(none).out", status: 1)
        #expect(!FileManager.default.fileExists(atPath: "\(none).out"))
        try user.run("trace \(user.folder.file("empty", ""))", status: 1)
        let damaged = [0, 1, 0, 0, 255, 255, 255, 255] + [UInt8](repeating: 0, count: 8) + [255, 0, 0, 0]
        try (Data("NIGHREC\n".utf8) + damaged).write(to: URL(filePath: path))
        try user.run("trace \(path) --json", status: 1, says: "damaged at byte 24")
        try user.run("trace \(path).missing --json", status: 1, says: "reading")
    }

    @Test func `A peer that cannot be reached gives status 1`() throws {
        let call = try user.run("\(RecordedConversation.trace) --connect tcp://127.0.0.1:1", status: 1)
        // On a busy machine it also says that it calls.
        #expect(call.errors.count { !$0.contains("calling") } == 1, "\(call.errors)")
    }
}
