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
    private var records: String { "\(sender.dataFolder)/transfers" }

    /// Returns the transfers that `nigh transfers --json` lists.
    private func list(_ user: NighUser, into folder: String? = nil) throws -> [JSONValue] {
        try user.run("transfers --json --into \(folder ?? files.path)").json["transfers"].list
    }

    /// Sends `big` and ends the sender in the middle with `signal`. Returns the receiver, which goes on.
    private func interrupted(_ signal: Int32) throws -> Listener {
        let waiting = try receive()
        try interrupt(signal, to: waiting)
        try waiting.child.line(with: "\"failure\"")
        return waiting
    }

    @Test(arguments: [SIGINT, SIGKILL])
    func `An interrupted send is listed, and can be continued`(_ signal: Int32) throws {
        let waiting = try interrupted(signal)
        let listed = try #require(try list(sender).first)
        #expect(listed["direction"].string == "outgoing" && listed["peer_name"].string == "Puma")
        #expect(listed["names"].strings == ["big"] && listed["size_bytes"].int == 4_000_000)
        let id = try #require(listed["id"].string)
        #expect(
            TemporaryFolder.names(in: records).map { TemporaryFolder.mode(of: "\(records)/\($0)") } == [0o600]
        )
        let resumed = try sender.run("transfers resume \(id.prefix(4)) --json")
        #expect(resumed.json["resumed_bytes"].int ?? 0 > 0, "\(resumed)")
        #expect(try list(sender).isEmpty)
        #expect(try content(received("big")) == content(path("big")))
        try waiting.child.finish(after: SIGINT, status: nil)
    }

    @Test func `An interrupted send is not continued to another peer at the same address`() throws {
        let waiting = try interrupted(SIGKILL)
        try waiting.child.finish(after: SIGKILL, status: -SIGKILL)
        let other = try Listener("receive --accept any --into \(inbox.path)", port: waiting.port)
        let id = try #require(try list(sender).first?["id"].string)
        try sender.run("transfers resume \(id)", status: 1, says: "somebody else is there now")
        #expect(try list(sender).count == 1, "it can be continued when the right one is back")
        let got = try other.end()
        #expect(!got.lines.contains { $0.contains("big") }, "\(got)")
    }

    /// The command that a line of words means.
    private func command(_ line: [String]) throws -> SendCommand {
        guard case .action(let command) = try NighProgram.table.parse(line, width: 80) else {
            throw Child.Failure(description: "no command")
        }
        return try #require(command as? SendCommand)
    }

    @Test func `A record has every option by which the peer was found, and no plugin`() throws {
        let line = """
            send --to Hare --transport tcp --service films --name Puma --identity ephemeral --security paired \
            --relays everyone --through Lynx --wait 90s --as f -- /tmp/f
            """.split(separator: " ").map(String.init)
        var sending = try command(line)
        let hare = PeerChoice.named("Hare")
        #expect(sending.arguments(to: hare, ["/tmp/f"]) == line)
        let identity = Identity.ephemeral().peerID
        sending.identity = identity
        #expect(sending.called(hare) == .named("\(identity)"))
        #expect(sending.arguments(to: hare, ["/tmp/f"]) == line)
        let arguments = try command(["send", "Hare", "--plugin", "odd.so", "-t", "odd", "/tmp/f"])
            .arguments(to: hare, ["/tmp/f"])
        #expect(arguments.contains("odd") && !arguments.contains { $0.contains("plugin") }, "\(arguments)")
    }

    @Test func `A record that others could have written is refused, and none loads a plugin`() throws {
        let plugin = "\(files.path)/odd.so"
        try ForeignLibrary().build(to: plugin)
        let content = SavedTransfer.Content(
            names: ["f"], total: 1,
            arguments: ["send", "Hare", "--plugin", plugin, "-t", "odd", "--", path("f")])
        try file("f", bytes: 1)
        try FileManager.default.createDirectory(
            atPath: records, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let record = "\(records)/1234abcd"
        try Data(content.text.utf8).write(to: URL(fileURLWithPath: record))
        chmod(record, 0o666)
        try sender.fail(
            "transfers resume 1234", says: "others may write it (mode 666); `chmod 600 \(record)`")
        let listed = try sender.run("transfers --into \(files.path)")
        #expect(listed.errors.count == 1 && listed.lines == ["No transfer is unfinished."], "\(listed)")
        chmod(record, 0o600)
        let obeyed = try sender.run("transfers resume 1234", status: nil)
        #expect(obeyed.status != 0 && obeyed.error.contains("there is no transport \"odd\""), "\(obeyed)")
        #expect(!obeyed.errors.contains("its code has run"))
        chmod(record, 0o666)
        try sender.run("transfers remove 1234")
        #expect(access(record, F_OK) != 0)
    }

    @Test func `Records in a folder that others may write to are refused`() throws {
        let folder = TemporaryFolder()
        let content = SavedTransfer.Content(names: ["f"], total: 1, arguments: ["send", "Hare", "--", "/f"])
        _ = folder.file("1234abcd", content.text)
        #expect(try SavedTransfer.all(in: folder.path).map { try $0.content.get().names } == [["f"]])
        chmod(folder.path, 0o777)
        for record in SavedTransfer.all(in: folder.path) {
            #expect(throws: NighError.self) { try record.content.get() }
        }
    }

    @Test func `What is unfinished can be removed at either side while it does not move`() throws {
        let waiting = try interrupted(SIGINT)
        let incoming = try #require(try list(receiver, into: inbox.path).first)
        #expect(incoming["direction"].string == "incoming" && incoming["names"].strings == ["big"])
        #expect(incoming["done_bytes"].int ?? 0 > 0, "\(incoming)")
        let outgoing = try #require(try list(sender).first)
        let removals = [
            (receiver, try #require(incoming["id"].string), "--into \(inbox.path) --json"),
            (sender, try #require(outgoing["id"].string), "--json"),
        ]
        let sending = try startSending("big", to: waiting, Self.endlessly)
        try waiting.child.line(with: "\"start\"", occurrence: 2)
        for (user, id, options) in removals {
            try user.run("transfers remove \(id) \(options)", status: 1, says: "is in use")
        }
        try sending.finish(after: SIGINT, status: 1)
        try waiting.child.line(with: "\"failure\"", occurrence: 2)
        for (user, id, options) in removals { try user.run("transfers remove \(id) \(options)") }
        #expect(try names() == [] && list(sender).isEmpty)
    }

    @Test func `Sends are listed in a read-only folder, unless it is named`() throws {
        func transfers(_ options: String, status: Int32) throws {
            let nigh = BuiltPrograms.path(of: "nigh")
            try Child(
                "/bin/sh", ["-c", "cd /sys && exec \(nigh) transfers \(options)"],
                environment: sender.environment
            ).finish(status: status)
        }
        try transfers("", status: 0)
        if access("/sys", W_OK) != 0 { try transfers("--into /sys", status: 1) }
        for verb in ["resume", "remove"] { try sender.fail("transfers \(verb) ffff") }
    }
}
