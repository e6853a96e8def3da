import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests transfers that are cut, stopped or have to wait, and continue.
@Suite(.callsPrograms) struct InterruptedTransferTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    @Test("A receiver that is killed and restarted resumes the transfer")
    func killedReceiver() throws {
        let data = try file("big", bytes: 4_000_000)
        let first = try receive()
        let sending = try sender.start(
            ["send", first.address, path("big"), "--json-lines"] + Self.transportOptions + Self.endlessly)
        try waitForBytes(first.child)
        first.child.send(SIGKILL)
        #expect(try NighCall(finishing: first.child).status == -SIGKILL)
        #expect(try names() == ["big.part"])
        let second = try receive("--once", port: first.port)
        let sent = try NighCall(finishing: sending)
        #expect(sent.status == 0, "\(sent)")
        try sent.expectSchema("send", lines: true)
        let summary = try #require(try sent.objects().last)
        #expect(summary["conversations"] as? Int == 2 && summary["stored_bytes"] as? Int == 4_000_000)
        let resumed = try #require(summary["resumed_bytes"] as? Int)
        let again = try #require(summary["sent_bytes"] as? Int) - (4_000_000 - resumed)
        // What was under way when the receiver was killed went twice, and the rest once.
        #expect(resumed > 0 && again < 4_000_000, "\(summary)")
        #expect(try NighCall(finishing: second.child).status == 0)
        #expect(try content(received("big")) == data)
        #expect(try names() == ["big"])
    }

    @Test(
        "A sender that is killed and restarted resumes where the receiver stands, also beside other programs of its user",
        arguments: [false, true])
    func killedSender(isBesideOthers: Bool) throws {
        // Then each call of the command has a key of its own.
        let other = isBesideOthers ? try HostInTests(of: sender) : nil
        defer { withExtendedLifetime(other) {} }
        let data = try file("big", bytes: 4_000_000)
        let waiting = try receive("--once")
        let sending = try sender.start(
            ["send", waiting.address, path("big")] + Self.transportOptions + Self.endlessly)
        try waitForBytes(waiting.child)
        sending.send(SIGKILL)
        #expect(try NighCall(finishing: sending).status == -SIGKILL)
        let sent = try send(path("big"), to: waiting)
        #expect(sent.status == 0, "\(sent)")
        let resumed = try #require(try sent.object()["resumed_bytes"] as? Int)
        #expect(resumed > 0, "\(sent)")
        #expect(try sent.object()["sent_bytes"] as? Int == 4_000_000 - resumed, "\(sent)")
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try content(received("big")) == data)
    }

    @Test("A sender gives up after --give-up, also if the receiver has accepted and then does nothing")
    func silentReceiver() throws {
        try file("big", bytes: 4_000_000)
        let waiting = try receive("--once")
        let sending = try sender.start(
            ["send", waiting.address, path("big"), "--give-up", "2s"] + Self.transportOptions + Self.endlessly
        )
        try waitForBytes(waiting.child)
        // Too short for the link to be taken for lost.
        waiting.child.send(SIGSTOP)
        let sent = try NighCall(finishing: sending)
        waiting.child.send(SIGCONT)
        #expect(sent.status == 1 && sent.errors.joined().contains("nothing has moved for 2 s"), "\(sent)")
        try waiting.child.line(with: "\"failure\"")
        waiting.child.send(SIGINT)
        _ = try NighCall(finishing: waiting.child)
    }

    @Test("A file that arrived before its transfer was interrupted is not sent again")
    func interruptedAfterOne() throws {
        try file("a", bytes: 1_000_000)
        let data = try file("b", bytes: 4_000_000)
        let waiting = try receive()
        let first = try sender.start(
            ["send", waiting.address, path("a"), path("b")] + Self.transportOptions + Self.slowly)
        try waiting.child.line(with: "\"file\"", "\"a\"")
        first.send(SIGKILL)
        _ = try NighCall(finishing: first)
        try waiting.child.line(with: "\"failure\"")
        #expect(try names() == ["a", "a.part", "b.part"] || names() == ["a", "a.part"])
        let sent = try send(path("a"), to: waiting, path("b"))
        #expect(sent.status == 0, "\(sent)")
        #expect(try sent.object()["sent_bytes"] as? Int ?? .max <= 4_000_000, "\(sent)")
        // The receiver remembers what it has until it knows that the sender knows it.
        try waiting.child.line(with: "\"transfer\"")
        #expect(try names() == ["a", "b"])
        #expect(try content(received("b")) == data)
        waiting.child.send(SIGINT)
        _ = try NighCall(finishing: waiting.child)
    }

    @Test("Ctrl-C on either side ends both cleanly, reports the partial file, and a resume continues it")
    func interrupted() throws {
        let data = try file("big", bytes: 4_000_000)
        let waiting = try receive()
        let first = try sender.start(
            ["send", waiting.address, path("big"), "--json"] + Self.transportOptions + Self.endlessly)
        try waitForBytes(waiting.child)
        first.send(SIGINT)
        let ended = try NighCall(finishing: first)
        #expect(ended.status == 1 && ended.errors.joined().contains("interrupted"), "\(ended)")
        try ended.expectSchema("send")
        let failure = try object(waiting.child.line(with: "\"failure\""))
        #expect(failure["part"] as? String == received("big.part"))

        let second = try sender.start(
            ["send", waiting.address, path("big"), "--json"] + Self.transportOptions + Self.endlessly)
        try waiting.child.line(with: "\"start\"", occurrence: 2)
        waiting.child.send(SIGINT)
        let got = try NighCall(finishing: waiting.child)
        #expect(got.status == 1, "\(got)")
        try got.expectSchema("receive", lines: true)
        let reported = try NighCall(finishing: second)
        #expect(
            reported.status == 1 && reported.errors.joined().contains("Puma ended the transfer"),
            "\(reported)")

        let again = try receive("--once")
        let sent = try send(path("big"), to: again)
        #expect(try sent.object()["resumed_bytes"] as? Int ?? 0 > 0, "\(sent)")
        #expect(try NighCall(finishing: again.child).status == 0)
        #expect(try content(received("big")) == data)
    }

    @Test("A receiver of one transfer that is interrupted after a part of it came ends with an error")
    func interruptedOnce() throws {
        try file("a", bytes: 1_000)
        try file("big", bytes: 4_000_000)
        let waiting = try receive("--once")
        let sending = try sender.start(
            ["send", waiting.address, path("a"), path("big")] + Self.transportOptions + Self.endlessly)
        try waiting.child.line(with: "\"file\"")
        sending.send(SIGKILL)
        _ = try NighCall(finishing: sending)
        try waiting.child.line(with: "\"failure\"")
        waiting.child.send(SIGINT)
        #expect(try NighCall(finishing: waiting.child).status == 1)
        #expect(try names().contains("a"))
    }

    @Test("Where an incomplete file differs from the one that is sent, it is sent again")
    func anotherFile() throws {
        try file("big", bytes: 4_000_000)
        let waiting = try receive("--once")
        let sending = try sender.start(
            ["send", waiting.address, path("big")] + Self.transportOptions + Self.endlessly)
        try waitForBytes(waiting.child)
        sending.send(SIGKILL)
        _ = try NighCall(finishing: sending)
        var data = try content(path("big"))
        data[0] ^= 1
        try data.write(to: URL(fileURLWithPath: path("big")))
        let sent = try send(path("big"), to: waiting)
        #expect(sent.status == 0, "\(sent)")
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try content(received("big")) == data)
    }

    @Test("A sender that meets a busy receiver of one file gets an error, and retries automatically")
    func busy() throws {
        let data = try file("a", bytes: 1_000)
        let waiting = try receive("--once")
        let first = try sender.start(["send", waiting.address, "-"] + Self.transportOptions, reads: true)
        first.type("something")
        try waiting.child.line(with: "\"start\"")
        let other = NighUser()
        let second = try other.start(["send", waiting.address, path("a"), "-v"] + Self.transportOptions)
        try second.error(with: "busy with another file")
        first.send(SIGINT)
        #expect(try NighCall(finishing: first).status == 1)
        let sent = try NighCall(finishing: second)
        #expect(sent.status == 0, "\(sent)")
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try content(received("a")) == data)
    }

    @Test("Data from a pipe cannot be resumed: nothing of it stays, and the next transfer is another")
    func interruptedPipe() throws {
        let waiting = try receive()
        let sending = try sender.start(
            ["send", waiting.address, "-", "--json"] + Self.transportOptions, reads: true)
        sending.type(String(repeating: "x", count: 100_000))
        try waiting.child.line(with: "\"start\"")
        sending.send(SIGINT)
        #expect(try NighCall(finishing: sending).status == 1)
        let failure = try object(waiting.child.line(with: "\"failure\""))
        #expect(failure["part"] is NSNull)
        let again = try sender.start(["send", waiting.address] + Self.transportOptions, reads: true)
        again.type("whole")
        again.closeInput()
        #expect(try NighCall(finishing: again).status == 0)
        try waiting.child.line(with: "\"transfer\"")
        waiting.child.send(SIGINT)
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try names() == ["stdin"])
        #expect(try content(received("stdin")) == Data("whole\n".utf8))
    }

    @Test(
        "A file that changes while it is sent is reported as such and does not arrive; sent again, it continues"
    )
    func changing() throws {
        try file("big", bytes: 4_000_000)
        let waiting = try receive()
        let sending = try sender.start(
            ["send", waiting.address, path("big"), "--json"] + Self.transportOptions + Self.endlessly)
        try waitForBytes(waiting.child)
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path("big")))
        try handle.write(contentsOf: Data([1, 2, 3]))
        try handle.close()
        let sent = try NighCall(finishing: sending)
        #expect(sent.status == 1 && sent.errors.joined().contains("changed while it was sent"), "\(sent)")
        try sent.expectSchema("send")
        try waiting.child.line(with: "\"failure\"", "changed while it was sent")
        #expect(try names() == ["big.part"])
        let again = try send(path("big"), to: waiting)
        #expect(try again.object()["resumed_bytes"] as? Int ?? 0 > 0, "\(again)")
        try waiting.child.line(with: "\"transfer\"")
        waiting.child.send(SIGINT)
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try content(received("big")) == content(path("big")))
    }

    @Test(
        "If there is no room at the receiver, both sides say why nothing moves, and it goes on once there is")
    func fullDisk() throws {
        let data = try file("big", bytes: 3_000_000)
        let nigh = BuiltPrograms.path(of: "nigh")
        let command =
            "ulimit -S -f 1000; echo pid $$ >&2; exec \(nigh) receive --json-lines --accept any --once --into \(inbox.path) -n Puma -t \(Self.transportOptions[1])"
        let child = try Child(
            "/bin/bash", ["-c", command], environment: ["XDG_DATA_HOME": receiver.folder.path])
        let process = try #require(try child.error(with: "pid ").split(separator: " ").last)
        let ready = try object(child.line(with: "\"ready\""))
        let address = try #require((ready["addresses"] as? [String])?.first)
        let sending = try sender.start(
            ["send", address, path("big"), "-v"] + Self.transportOptions + Self.slowly)
        try sending.error(with: "Puma has paused: files may not grow that large there")
        try child.line(with: "\"progress\"", "File too large")
        let raise = try Child("/usr/bin/prlimit", ["--pid=\(process)", "--fsize=unlimited:"])
        #expect(try raise.end().status == 0)
        try sending.error(with: "Puma goes on")
        let sent = try NighCall(finishing: sending)
        #expect(sent.status == 0, "\(sent)")
        let got = try NighCall(finishing: child)
        #expect(got.status == 0, "\(got)")
        try got.expectSchema("receive", lines: true)
        #expect(try content(received("big")) == data)
        #expect(try names() == ["big"])
    }
}
