import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests sending from sources that are not plain files on a disk.
@Suite(.callsPrograms) struct FileSourceTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    @Test(
        "A kernel file with a wrong size, or none, is sent with its real content",
        arguments: ["/proc/version", "/sys/class/net/lo/mtu"])
    func kernelFile(_ source: String) throws {
        let waiting = try receive("--once")
        let sent = try send(source, to: waiting, "--as", "it")
        #expect(sent.status == 0, "\(sent)")
        try sent.expectSchema("send")
        #expect(try NighCall(finishing: waiting.child).status == 0)
        let data = try content(received("it"))
        #expect(try !data.isEmpty && data == content(source))
    }

    @Test("The wait for a writer of a pipe lasts as long as --give-up allows")
    func nobodyWrites() throws {
        try #require(mkfifo(path("pipe"), 0o600) == 0)
        let waiting = try receive()
        let sent = try send(path("pipe"), to: waiting, "--give-up", "10s")
        #expect(sent.status == 1 && sent.errors.joined().contains("nobody has written"), "\(sent)")
        try sent.expectSchema("send")
        try waiting.child.line(with: "\"transfer\"")
        #expect(try names() == [])
    }

    @Test("Ctrl-C ends the wait for a writer of a pipe")
    func interrupted() throws {
        try #require(mkfifo(path("pipe"), 0o600) == 0)
        let waiting = try receive()
        let sending = try sender.start(["send", waiting.address, path("pipe"), "-v"] + Self.transportOptions)
        try waiting.child.line(with: "\"start\"")
        sending.send(SIGINT)
        let sent = try NighCall(finishing: sending)
        #expect(sent.status == 1 && sent.errors.joined().contains("interrupted"), "\(sent)")
    }

    @Test("Bytes written to a pipe, late and in pieces, arrive completely")
    func written() throws {
        try #require(mkfifo(path("pipe"), 0o600) == 0)
        let waiting = try receive("--once")
        let sending = try sender.start(["send", waiting.address, path("pipe")] + Self.transportOptions)
        try waiting.child.line(with: "\"start\"")
        let writer = try Child("/bin/sh", ["-c", "{ echo first; head -1; } > \(path("pipe"))"], reads: true)
        try waiting.child.line(with: "\"progress\"")
        writer.type("second")
        #expect(try writer.end().status == 0)
        let sent = try NighCall(finishing: sending)
        #expect(sent.status == 0, "\(sent)")
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try content(received("pipe")) == Data("first\nsecond\n".utf8))
    }

    @Test("Ctrl-C ends the wait for a record from a pipe without a writer")
    func traced() throws {
        try #require(mkfifo(path("pipe"), 0o600) == 0)
        let child = try sender.start("trace", path("pipe"), "--follow")
        child.send(SIGINT)
        // It ended by the signal, not because the wait for it timed out.
        #expect(try child.end().status != -SIGKILL)
    }
}
