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

    @Test func `A receiver that is killed and restarted resumes the transfer`() throws {
        let data = try file("big", bytes: 4_000_000)
        let first = try receive()
        let sending = try startSending("big", to: first, "--json-lines \(Self.endlessly)")
        try waitForBytes(first)
        try first.child.finish(after: SIGKILL, status: -SIGKILL)
        #expect(try names() == ["big.part"])
        let second = try receive("--once", port: first.port)
        let summary = try sending.finish().summary
        #expect(summary["conversations"].int == 2 && summary["stored_bytes"].int == 4_000_000)
        let resumed = try #require(summary["resumed_bytes"].int)
        let again = try #require(summary["sent_bytes"].int) - (4_000_000 - resumed)
        // The bytes that were under way when the receiver was killed went twice, and the rest once.
        #expect(resumed > 0 && again < 4_000_000, "\(summary)")
        try second.child.finish()
        #expect(try content(received("big")) == data)
        #expect(try names() == ["big"])
    }

    @Test(arguments: [false, true])
    func `A killed sender resumes, also beside others of its user`(_ isBeside: Bool) throws {
        // Then each call of the command has a key of its own.
        let other = isBeside ? try Listener("host", of: sender) : nil
        defer { withExtendedLifetime(other) {} }
        let waiting = try receive("--once")
        try interrupt(SIGKILL, to: waiting)
        let sent = try send("big", to: waiting).json
        let resumed = try #require(sent["resumed_bytes"].int)
        #expect(resumed > 0 && sent["sent_bytes"].int == 4_000_000 - resumed, "\(sent)")
        try waiting.child.finish()
        #expect(try content(received("big")) == content(path("big")))
    }

    @Test func `A sender gives up in time if the receiver has accepted and then does nothing`() throws {
        try file("big", bytes: 4_000_000)
        let waiting = try receive("--once")
        let sending = try startSending("big", to: waiting, "--give-up 2s \(Self.endlessly)")
        try waitForBytes(waiting)
        // Too short for the link to be taken for lost.
        waiting.child.send(SIGSTOP)
        try sending.finish(status: 1, says: "nothing has moved for 2 s")
        waiting.child.send(SIGCONT)
        try waiting.child.line(with: "\"failure\"")
    }

    @Test func `Ctrl-C on either side ends both cleanly, and the next send resumes`() throws {
        let waiting = try receive()
        #expect(try interrupt(SIGINT, to: waiting, "--json").error.contains("interrupted"))
        #expect(try waiting.child.json(with: "\"failure\"")["part"].string == received("big.part"))
        let second = try startSending("big", to: waiting, "--json \(Self.endlessly)")
        try waiting.child.line(with: "\"start\"", occurrence: 2)
        try waiting.child.finish(after: SIGINT, status: 1)
        try second.finish(status: 1, says: "Puma ended the transfer")
        let again = try receive("--once")
        #expect(try send("big", to: again).json["resumed_bytes"].int ?? 0 > 0)
        try again.child.finish()
        #expect(try content(received("big")) == content(path("big")))
    }

    @Test func `A receiver that has only a part of its one transfer ends with an error`() throws {
        try file("a", bytes: 1_000)
        try file("big", bytes: 4_000_000)
        let waiting = try receive("--once")
        let sending = try startSending("a big", to: waiting, Self.endlessly)
        try waiting.child.line(with: "\"file\"")
        try sending.finish(after: SIGKILL, status: -SIGKILL)
        try waiting.child.line(with: "\"failure\"")
        try waiting.child.finish(after: SIGINT, status: 1)
        #expect(try names().contains("a"))
    }

    @Test func `A sender that meets a busy receiver says so, and tries again`() throws {
        let data = try file("a", bytes: 1_000)
        let waiting = try receive("--once")
        let first = try startSending("-", to: waiting)
        first.type("something")
        try waiting.child.line(with: "\"start\"")
        let second = try startSending("a", to: waiting, "-v", by: NighUser())
        try second.error(with: "busy with another file")
        try first.finish(after: SIGINT, status: 1)
        try second.finish()
        try waiting.child.finish()
        #expect(try content(received("a")) == data)
    }

    @Test func `Data from a pipe cannot be resumed, and nothing of it stays`() throws {
        let waiting = try receive()
        let sending = try startSending("-", to: waiting, "--json")
        sending.type(String(repeating: "x", count: 100_000))
        try waiting.child.line(with: "\"start\"")
        try sending.finish(after: SIGINT, status: 1)
        #expect(try waiting.child.json(with: "\"failure\"")["part"].isNull)
        #expect(try sender.run("transfers --json --into \(files.path)").json["count"].int == 0)
        let again = try startSending("-", to: waiting)
        again.type("whole")
        again.closeInput()
        try again.finish()
        try waiting.child.line(with: "\"transfer\"")
        try waiting.end()
        #expect(try names() == ["stdin"])
        #expect(try content(received("stdin")) == Data("whole\n".utf8))
    }

    @Test
    func
        `If there is no room at the receiver, both sides say why nothing moves, and it goes on once there is`()
        throws
    {
        let data = try file("big", bytes: 3_000_000)
        let waiting = try receive("--once")
        // A soft limit of fewer bytes than the file has.
        try waiting.child.limit("fsize=1000000:")
        let sending = try startSending("big", to: waiting, "-v --inject rate=500k")
        try sending.error(with: "Puma has paused: files may not grow that large there")
        try waiting.child.line(with: "\"progress\"", "File too large")
        try waiting.child.limit("fsize=unlimited:")
        try sending.error(with: "Puma goes on")
        try sending.finish()
        try waiting.child.finish()
        #expect(try content(received("big")) == data)
        #expect(try names() == ["big"])
    }
}
