import ChildPrograms
import Glibc
import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh identity`.
@Suite(.callsPrograms) struct IdentityCommandTests {
    private let user = NighUser()

    @Test("The same identity is shown twice, and the output matches the schema")
    func show() throws {
        let first = try user.run("identity", "--json")
        #expect(first.status == 0)
        try first.expectSchema("identity")
        try user.run("identity", "--json-lines").expectSchema("identity", lines: true)
        let id = try #require(try first.object()["id"] as? String)
        #expect(try user.run("identity").lines.contains("PeerID  \(id)"))
        #expect(try first.object()["file"] as? String == "\(user.dataFolder)/identity.pem")
        #expect(try first.object()["in_use"] as? Bool == false)
    }

    @Test("A chosen name is saved, and an invalid name is refused")
    func rename() throws {
        let call = try user.run("identity", "rename", "Puma in the kitchen", "--json")
        #expect(call.status == 0)
        try call.expectSchema("identity")
        #expect(try user.run("identity", "--json").object()["name"] as? String == "Puma in the kitchen")
        #expect(try user.run("identity", "rename", String(repeating: "x", count: 64)).status == 2)
        let blank = try user.run("identity", "rename", " \u{200B}")
        #expect(blank.status == 2 && blank.errors.joined().contains("something to see"), "\(blank)")
        #expect(TemporaryFolder.mode(of: "\(user.dataFolder)/name") == 0o600)
    }

    @Test(
        "A path that is not a plain file is neither read as an identity nor moved away",
        arguments: ["new", "export"])
    func pipe(_ subcommand: String) throws {
        let path = "\(user.folder.path)/pipe"
        try #require(mkfifo(path, 0o600) == 0)
        let call = try user.run(
            ["identity", subcommand, "--identity", path] + (subcommand == "new" ? ["--yes"] : []))
        #expect(call.status == 1 && call.errors.joined().contains("not a regular file"), "\(call)")
        var about = stat()
        #expect(lstat(path, &about) == 0 && about.st_mode & S_IFMT == S_IFIFO)
    }

    @Test("A new identity is another peer; the old one is kept, and a confirmation is required")
    func new() throws {
        let old = try #require(try user.run("identity", "--json").object()["id"] as? String)
        let asked = try user.run("identity", "new")
        #expect(asked.status == 1)
        #expect(try user.run("identity", "--json").object()["id"] as? String == old)
        let call = try user.run("identity", "new", "--yes", "--json")
        #expect(call.status == 0)
        try call.expectSchema("identity")
        let new = try #require(try call.object()["id"] as? String)
        #expect(new != old)
        let kept = try #require(try call.object()["old_file"] as? String)
        #expect(try user.run("identity", "--identity", kept, "--json").object()["id"] as? String == old)
        let again = try user.run("identity", "new", "--yes", "--json")
        #expect(try again.object()["old_file"] as? String != kept)
    }

    @Test("Another program computes the same PeerID from the exported key")
    func export() throws {
        let id = try #require(try user.run("identity", "--json").object()["id"] as? String)
        let call = try user.run("identity", "export")
        #expect(call.status == 0)
        let file = user.folder.file("key.pem", call.lines.joined(separator: "\n") + "\n")
        let digest = try Child("/bin/sh", ["-c", "openssl pkey -pubin -in \(file) -outform DER | sha256sum"])
        #expect(try digest.end().status == 0)
        let sum = try #require(digest.lines.first).prefix(64)
        let bytes = stride(from: 0, to: 64, by: 2).compactMap {
            UInt8(sum.dropFirst($0).prefix(2), radix: 16)
        }
        #expect(PeerID(bytes: bytes)?.description == id)
        try user.run("identity", "export", "--json").expectSchema("identity")
        let nobody = NighUser()
        let none = try nobody.run("identity", "export")
        #expect(none.status == 1 && none.errors.count == 1, "nothing is made by asking")
    }

    @Test("A file that others may read is refused, with advice")
    func exposed() throws {
        #expect(try user.run("identity").status == 0)
        #expect(chmod("\(user.dataFolder)/identity.pem", 0o644) == 0)
        let call = try user.run("identity", "--json")
        #expect(call.status == 1)
        try call.expectSchema("identity")
        #expect(call.errors.first?.contains("chmod 600") == true, "\(call)")
    }

    @Test("Ctrl-C at the question of `nigh identity new` ends it, and the identity stays")
    func interrupted() throws {
        let id = try #require(try user.run("identity", "--json").object()["id"] as? String)
        let windows = try TerminalWindows(of: "nigh")
        try windows.open(
            "w", "identity new", environment: "LANG=C.UTF-8 XDG_DATA_HOME=\(user.folder.path)")
        try windows.wait("w", shows: "Create a new identity? [y/N]")
        try windows.press("w", "C-c")
        try windows.wait("w", shows: "ended with 1")
        #expect(try user.run("identity", "--json").object()["id"] as? String == id)
    }

    @Test("While a program uses an identity file that was named, it is reported and not replaced")
    func namedInUse() throws {
        let file = "\(user.folder.path)/other.pem"
        let host = try HostInTests(of: user, "--identity", file)
        #expect(try user.run("identity", "--identity", file, "--json").object()["in_use"] as? Bool == true)
        let call = try user.run("identity", "new", "--identity", file, "--yes")
        #expect(call.status == 1 && call.errors.first?.contains("end it first") == true, "\(call)")
        #expect(try host.end().status == 0)
        #expect(try user.run("identity", "--identity", file, "--json").object()["in_use"] as? Bool == false)
    }

    @Test("While a program uses the identity, the command reports it and does not replace it")
    func inUse() throws {
        let waiting = try user.start("pair", "-t", "tcp:interface=lo,mdns=off", "-v", reads: true)
        // It claims the identity before it listens. Until then, the check of `nigh identity` could make the claim fail.
        try waiting.error(with: "listens at")
        #expect(try user.run("identity", "--json").object()["in_use"] as? Bool == true)
        let call = try user.run("identity", "new", "--yes")
        #expect(call.status == 1)
        #expect(call.errors.first?.contains("end it first") == true, "\(call)")
        waiting.send(SIGINT)
        #expect(try waiting.end().status == 1)
    }
}
