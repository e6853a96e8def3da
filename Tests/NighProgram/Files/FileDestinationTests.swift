import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests where `nigh receive` writes, and what it refuses to replace.
@Suite(.callsPrograms) struct FileDestinationTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    private func kind(_ path: String) -> mode_t {
        var about = stat()
        return lstat(path, &about) == 0 ? about.st_mode & S_IFMT : 0
    }

    @Test(
        "A destination that is not a plain file is never replaced, and its kind is reported",
        arguments: ["--force", "-v"])
    func noPlainFile(_ option: String) throws {
        try #require(mkfifo(received("pipe"), 0o600) == 0)
        try #require(mkdir(received("folder"), 0o700) == 0)
        try #require(symlink("/dev/null", received("device")) == 0)
        try Data("old".utf8).write(to: URL(fileURLWithPath: path("file")))
        try #require(symlink(path("file"), received("link")) == 0)
        for (name, words) in [
            ("pipe", "is a pipe"), ("folder", "is a directory"), ("device", "is a device"),
            ("link", "is a symbolic link"),
        ] {
            let before = kind(received(name))
            let call = try receiver.run(
                ["receive", "--accept", "any", option, "-o", received(name), "--json"] + Self.transportOptions
            )
            #expect(call.status == 1 && call.errors.count == 1, "\(call)")
            #expect(call.errors.joined().contains(words), "\(call)")
            try call.expectSchema("receive")
            #expect(kind(received(name)) == before)
        }
        #expect(try names() == ["device", "folder", "link", "pipe"])
    }

    @Test("A pipe with a file's name in the folder stays a pipe, even if files are replaced")
    func pipeInTheFolder() throws {
        let data = try file("name", bytes: 100)
        try #require(mkfifo(received("name"), 0o600) == 0)
        let waiting = try receive("--once", "--force")
        #expect(try send(path("name"), to: waiting).status == 0)
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(kind(received("name")) == S_IFIFO)
        #expect(try content(received("name (2)")) == data)
    }

    @Test("A pipe that appears during a transfer is not replaced either")
    func pipeMeanwhile() throws {
        let data = try file("name", bytes: 3_000_000)
        let waiting = try receive("--once", "--force")
        let sending = try sender.start(
            ["send", waiting.address, path("name")] + Self.transportOptions + Self.endlessly)
        try waiting.child.line(with: "\"start\"")
        try #require(mkfifo(received("name"), 0o600) == 0)
        #expect(try NighCall(finishing: sending).status == 0)
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(kind(received("name")) == S_IFIFO)
        #expect(try content(received("name (2)")) == data)
    }

    @Test("A record overwrites only a plain file")
    func record() throws {
        try #require(mkfifo(received("pipe"), 0o600) == 0)
        let call = try receiver.run(
            ["receive", "--accept", "any", "--into", files.path, "--record", received("pipe")]
                + ["--record-overwrite"] + Self.transportOptions)
        #expect(call.status == 1 && call.errors.joined().contains("not a plain file"), "\(call)")
        #expect(kind(received("pipe")) == S_IFIFO)
    }
}
