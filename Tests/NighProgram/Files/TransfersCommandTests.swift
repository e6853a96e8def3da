import ChildPrograms
import Foundation
import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh transfers`.
@Suite(.callsPrograms) struct TransfersCommandTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    /// What `nigh transfers --json` lists.
    private func list(_ user: NighUser, into folder: String? = nil) throws -> [[String: Any]] {
        let call = try user.run(["transfers", "--json", "--into", folder ?? files.path])
        #expect(call.status == 0, "\(call)")
        try call.expectSchema("transfers")
        return try #require(try call.object()["transfers"] as? [[String: Any]])
    }

    /// Sends `big` and ends the sender in the middle with `signal`. Returns the receiver, which goes on.
    private func interrupt(_ signal: Int32) throws -> WaitingReceiver {
        try file("big", bytes: 4_000_000)
        let waiting = try receive()
        let sending = try sender.start(
            ["send", waiting.address, path("big")] + Self.transportOptions + Self.endlessly)
        try waitForBytes(waiting.child)
        sending.send(signal)
        _ = try NighCall(finishing: sending)
        try waiting.child.line(with: "\"failure\"")
        return waiting
    }

    @Test(
        "An interrupted send is listed with its peer and its files, and can be continued",
        arguments: [SIGINT, SIGKILL])
    func resumed(_ signal: Int32) throws {
        let waiting = try interrupt(signal)
        let listed = try #require(try list(sender).first)
        #expect(listed["direction"] as? String == "outgoing" && listed["peer_name"] as? String == "Puma")
        #expect(listed["names"] as? [String] == ["big"] && listed["size_bytes"] as? Int == 4_000_000)
        let id = try #require(listed["id"] as? String)
        let call = try sender.run("transfers", "resume", String(id.prefix(4)), "--json")
        #expect(call.status == 0, "\(call)")
        try call.expectSchema("send")
        #expect(try call.object()["resumed_bytes"] as? Int ?? 0 > 0, "\(call)")
        #expect(try list(sender).isEmpty)
        #expect(try content(received("big")) == content(path("big")))
        waiting.child.send(SIGINT)
        _ = try NighCall(finishing: waiting.child)
    }

    @Test("An interrupted send is not continued to somebody else who answers at the same address")
    func resumedElsewhere() throws {
        let waiting = try interrupt(SIGKILL)
        waiting.child.send(SIGKILL)
        _ = try NighCall(finishing: waiting.child)
        let stranger = NighUser()
        let other = try stranger.start(
            ["receive", "--accept", "any", "--into", inbox.path, "--json-lines", "-t"]
                + ["tcp:interface=lo,mdns=off,port=\(waiting.port)"])
        try other.line(with: "\"ready\"")
        let id = try #require(try list(sender).first?["id"] as? String)
        let call = try sender.run("transfers", "resume", id)
        #expect(call.status == 1 && call.errors.joined().contains("somebody else is there now"), "\(call)")
        #expect(try list(sender).count == 1, "it can be continued when the right one is back")
        other.send(SIGINT)
        let received = try NighCall(finishing: other)
        #expect(!received.lines.contains { $0.contains("big") }, "\(received)")
    }

    /// The command that a line of words means.
    private func send(_ line: [String]) throws -> SendCommand {
        let command =
            if case .action(let command) = try NighProgram.table.parse(line, width: 80) {
                command as? SendCommand
            } else { nil as SendCommand? }
        return try #require(command)
    }

    @Test("A record has every option by which the peer was found")
    func arguments() throws {
        let line = [
            "send", "--to", "Hare", "--transport", "tcp", "--service", "films", "--name", "Puma",
            "--identity",
            "ephemeral", "--security", "paired", "--relays", "everyone", "--through", "Lynx", "--wait",
            "90s", "--as", "f", "--", "/tmp/f",
        ]
        var command = try send(line)
        let hare = PeerChoice.named("Hare")
        #expect(command.arguments(to: hare, ["/tmp/f"]) == line)
        let identity = Identity.ephemeral().peerID
        command.identity = identity
        #expect(command.called(hare) == .named("\(identity)"))
        #expect(command.arguments(to: hare, ["/tmp/f"]) == line)
    }

    @Test("No plugin is recorded")
    func withoutPlugins() throws {
        let line = ["send", "Hare", "--plugin", "odd.so", "-t", "odd", "/tmp/f"]
        let arguments = try send(line).arguments(to: .named("Hare"), ["/tmp/f"])
        #expect(arguments.contains("odd") && !arguments.contains { $0.contains("plugin") }, "\(arguments)")
    }

    @Test("A record that others could have written is refused, and one that names a plugin does not load it")
    func insertedRecord() throws {
        let plugin = "\(files.path)/odd.so"
        try ForeignLibrary().build(to: plugin)
        let content = SendRecord.Content(
            names: ["f"], total: 1,
            arguments: ["send", "Hare", "--plugin", plugin, "-t", "odd", "--", path("f")])
        try file("f", bytes: 1)
        let folder = "\(sender.dataFolder)/transfers"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        chmod(folder, 0o700)
        let record = "\(folder)/1234abcd"
        try Data(content.text.utf8).write(to: URL(fileURLWithPath: record))
        chmod(record, 0o666)
        let refused = try sender.run("transfers", "resume", "1234")
        #expect(refused.status == 1 && refused.errors.count == 1, "\(refused)")
        #expect(refused.errors[0].contains("others may write it (mode 666); `chmod 600 \(record)`"))
        let listed = try sender.run("transfers", "--into", files.path)
        #expect(listed.errors.count == 1 && listed.lines == ["No transfer is unfinished."], "\(listed)")
        chmod(record, 0o600)
        let obeyed = try sender.run("transfers", "resume", "1234")
        #expect(
            obeyed.status != 0 && obeyed.errors.joined().contains("there is no transport \"odd\""),
            "\(obeyed)")
        #expect(!obeyed.errors.contains("its code has run"))
        chmod(record, 0o666)
        #expect(try sender.run("transfers", "remove", "1234").status == 0)
        #expect(access(record, F_OK) != 0)
    }

    @Test("Records in a folder that others may write to are refused")
    func exposedFolder() throws {
        let folder = TemporaryFolder()
        let content = SendRecord.Content(names: ["f"], total: 1, arguments: ["send", "Hare", "--", "/f"])
        _ = folder.file("1234abcd", content.text)
        let names = try SendRecord.all(in: folder.path).map { try $0.content.get().names }
        #expect(names == [["f"]])
        chmod(folder.path, 0o777)
        for record in SendRecord.all(in: folder.path) {
            #expect(throws: NighError.self) { try record.content.get() }
        }
    }

    @Test("A record is readable by its owner only")
    func mode() throws {
        _ = try interrupt(SIGINT)
        let folder = "\(sender.dataFolder)/transfers"
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(names.count == 1)
        var about = stat()
        #expect(stat("\(folder)/\(names[0])", &about) == 0 && about.st_mode & 0o777 == 0o600)
    }

    @Test("What is unfinished at the receiver is listed, and removed only while nobody continues it")
    func removed() throws {
        let waiting = try interrupt(SIGINT)
        let listed = try #require(try list(receiver, into: inbox.path).first)
        #expect(listed["direction"] as? String == "incoming" && listed["names"] as? [String] == ["big"])
        #expect(listed["done_bytes"] as? Int ?? 0 > 0, "\(listed)")
        let id = try #require(listed["id"] as? String)
        let sending = try sender.start(
            ["send", waiting.address, path("big")] + Self.transportOptions + Self.endlessly)
        try waiting.child.line(with: "\"start\"", occurrence: 2)
        let refused = try receiver.run("transfers", "remove", id, "--into", inbox.path)
        #expect(refused.status == 1 && refused.errors.joined().contains("is in use"), "\(refused)")
        sending.send(SIGINT)
        _ = try NighCall(finishing: sending)
        try waiting.child.line(with: "\"failure\"", occurrence: 2)
        let call = try receiver.run("transfers", "remove", id, "--into", inbox.path, "--json")
        #expect(call.status == 0, "\(call)")
        try call.expectSchema("transfers")
        #expect(try names() == [])
    }

    @Test("The record of a send is removed on request, but not while the files are sent")
    func forgotten() throws {
        try file("big", bytes: 4_000_000)
        let waiting = try receive()
        let sending = try sender.start(
            ["send", waiting.address, path("big")] + Self.transportOptions + Self.endlessly)
        try waitForBytes(waiting.child)
        let id = try #require(try list(sender).first?["id"] as? String)
        let refused = try sender.run("transfers", "remove", id)
        #expect(refused.status == 1 && refused.errors.joined().contains("is in use"), "\(refused)")
        sending.send(SIGINT)
        _ = try NighCall(finishing: sending)
        #expect(try sender.run("transfers", "remove", id).status == 0)
        #expect(try list(sender).isEmpty)
    }

    @Test("A send that was declined or cannot be repeated leaves no record")
    func unrecorded() throws {
        try file("a", bytes: 2_000)
        let small = try receive("--max-size", "1K")
        #expect(try send(path("a"), to: small).status == 1)
        let piping = try sender.start(["send", small.address, "-"] + Self.transportOptions, reads: true)
        piping.type("something")
        try small.child.line(with: "\"start\"")
        piping.send(SIGINT)
        #expect(try NighCall(finishing: piping).status == 1)
        #expect(try list(sender).isEmpty)
    }

    @Test("In a folder that cannot be written to, what is sent is listed, unless the folder is named")
    func unwritableFolder() throws {
        func status(_ options: String) throws -> Int32 {
            let child = try Child(
                "/bin/sh", ["-c", "cd /sys && exec \(BuiltPrograms.path(of: "nigh")) transfers \(options)"],
                environment: sender.environment)
            return try child.end().status
        }
        #expect(try status("") == 0)
        if access("/sys", W_OK) != 0 { #expect(try status("--into /sys") == 1) }
    }

    @Test("An ID that does not exist is reported in one sentence", arguments: ["resume", "remove"])
    func unknown(_ verb: String) throws {
        let call = try sender.run("transfers", verb, "ffff")
        #expect(call.status == 1 && call.errors.count == 1, "\(call)")
    }
}
