import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh send` and `nigh receive` as two users run them.
@Suite(.callsPrograms) struct FilesTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    // MARK: Transfers that succeed

    @Test("A file is sent and received, and both sides report it as their schemas define")
    func transfer() throws {
        let data = try file("holiday.mov", bytes: 3_000_000)
        let waiting = try receive("--once")
        let sent = try send(path("holiday.mov"), to: waiting)
        #expect(sent.status == 0, "\(sent)")
        try sent.expectSchema("send")
        let got = try NighCall(finishing: waiting.child)
        #expect(got.status == 0, "\(got)")
        try got.expectSchema("receive", lines: true)
        #expect(try content(received("holiday.mov")) == data)
        #expect(try names() == ["holiday.mov"])
        let reported = try #require(try got.objects().first { $0["type"] as? String == "file" })
        #expect(reported["sha256"] as? String == (try sent.object()["sha256"] as? String))
        #expect(reported["path"] as? String == received("holiday.mov"))
        #expect(try sent.object()["stored_bytes"] as? Int == 3_000_000)
    }

    @Test("Without --json a sender prints one line; a receiver without a file ends with status 0")
    func words() throws {
        try file("a.txt", bytes: 10)
        let child = try receiver.start(
            ["receive", "--accept", "any", "--into", inbox.path, "-n", "Puma", "--json"]
                + Self.transportOptions)
        let other = try receive("--once")
        let sent = try sender.run(["send", other.address, path("a.txt")] + Self.transportOptions)
        #expect(sent.status == 0, "\(sent)")
        #expect(
            sent.lines.count == 1 && sent.lines[0].hasPrefix("sent \(path("a.txt")) to Puma: 10 bytes in "),
            "\(sent)")
        child.send(SIGINT)
        let idle = try NighCall(finishing: child)
        #expect(idle.status == 0, "\(idle)")
        try idle.expectSchema("receive")
        #expect(try NighCall(finishing: other.child).status == 0)
    }

    @Test("Bytes written to one program come out of another")
    func pipes() throws {
        let child = try receiver.start(
            ["receive", "--accept", "any", "-o", "-", "-n", "Puma"]
                + ["-t", "tcp:interface=lo,mdns=off"], reads: false)
        let waiting = try address(ofWords: child)
        let sending = try sender.start(
            "send", waiting, "-", "-t", Self.transportOptions[1], "--as", "notes", reads: true)
        for number in 0..<1_000 { sending.type("line \(number)") }
        sending.closeInput()
        let sent = try NighCall(finishing: sending)
        #expect(sent.status == 0, "\(sent)")
        let got = try NighCall(finishing: child)
        #expect(got.status == 0 && got.lines == (0..<1_000).map { "line \($0)" }, "\(got.errors)")
    }

    /// The address that a receiver prints when its output is not JSON.
    private func address(ofWords child: Child) throws -> String {
        let line = try child.error(with: "waiting for files")
        return String(try #require(line.split(separator: " ").first { $0.hasPrefix("tcp://127") }))
    }

    @Test("An empty file is a file, and the receiver can choose the name of one file")
    func empty() throws {
        try file("nothing", bytes: 0)
        let child = try receiver.start(
            ["receive", "--json-lines", "--accept", "any", "-o", received("mine")] + Self.transportOptions)
        let ready = try object(child.line(with: "\"ready\""))
        let address = try #require((ready["addresses"] as? [String])?.first)
        let sent = try sender.run(["send", address, path("nothing")] + Self.transportOptions)
        #expect(sent.status == 0, "\(sent)")
        #expect(try NighCall(finishing: child).status == 0)
        #expect(try names() == ["mine"])
        #expect(try content(received("mine")).isEmpty)
    }

    @Test("Existing files stay, unless they are to be replaced")
    func existing() throws {
        let data = try file("a.txt", bytes: 100)
        let old = Data("old".utf8)
        try old.write(to: URL(fileURLWithPath: received("a.txt")))
        let numbering = try receive("--once")
        #expect(try send(path("a.txt"), to: numbering).status == 0)
        #expect(try NighCall(finishing: numbering.child).status == 0)
        #expect(try content(received("a.txt")) == old)
        #expect(try content(received("a (2).txt")) == data)

        let refused = try receiver.run(
            ["receive", "--accept", "any", "-o", received("a.txt"), "--json"] + Self.transportOptions)
        #expect(refused.status == 1 && refused.errors.count == 1)
        try refused.expectSchema("receive")

        let replacing = try receive("--once", "--force")
        #expect(try send(path("a.txt"), to: replacing).status == 0)
        #expect(try NighCall(finishing: replacing.child).status == 0)
        #expect(try content(received("a.txt")) == data)
    }

    @Test("A file is stored in the folder and nowhere else, whatever its name")
    func hostileNames() throws {
        try file("a", bytes: 5)
        let waiting = try receive()
        for name in [
            "../../evil", "/tmp/evil", "..", "a\nb\u{1B}[2J", ".profile", String(repeating: "x", count: 900),
        ] {
            let sent = try send(path("a"), to: waiting, "--as", name)
            #expect(sent.status == 0, "\(sent)")
        }
        waiting.child.send(SIGINT)
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(
            try names()
                == ["a_b_[2J", "evil", "evil (2)", "profile", "unnamed", String(repeating: "x", count: 200)]
                .sorted())
    }

    // MARK: Transfers that are interrupted

    @Test("A receiver that is killed and restarted resumes the transfer")
    func killedReceiver() throws {
        let data = try file("big", bytes: 4_000_000)
        let first = try receive()
        let sending = try sender.start(
            ["send", first.address, path("big"), "--json-lines"] + Self.transportOptions + Self.slowly)
        try first.child.line(with: "\"progress\"")
        first.child.send(SIGKILL)
        #expect(try NighCall(finishing: first.child).status == -SIGKILL)
        #expect(try names() == ["big.part", "big.part.nigh"])
        let second = try receive("--once", port: first.port)
        let sent = try NighCall(finishing: sending)
        #expect(sent.status == 0, "\(sent)")
        try sent.expectSchema("send", lines: true)
        let starts = try sent.objects().filter { $0["type"] as? String == "start" }
        #expect(starts.count == 2 && starts.last?["offset_bytes"] as? Int ?? 0 > 0, "\(sent)")
        #expect(try NighCall(finishing: second.child).status == 0)
        #expect(try content(received("big")) == data)
        #expect(try names() == ["big"])
    }

    @Test("A sender that is killed and restarted resumes where the receiver stands")
    func killedSender() throws {
        let data = try file("big", bytes: 4_000_000)
        let waiting = try receive("--once")
        let sending = try sender.start(
            ["send", waiting.address, path("big")] + Self.transportOptions + Self.slowly)
        try waiting.child.line(with: "\"progress\"")
        sending.send(SIGKILL)
        #expect(try NighCall(finishing: sending).status == -SIGKILL)
        let sent = try send(path("big"), to: waiting)
        #expect(sent.status == 0, "\(sent)")
        #expect(try sent.object()["resumed_at_bytes"] as? Int ?? 0 > 0, "\(sent)")
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try content(received("big")) == data)
    }

    @Test("Ctrl-C on either side ends both cleanly, reports the partial file, and a resume continues it")
    func interrupted() throws {
        let data = try file("big", bytes: 4_000_000)
        let waiting = try receive()
        let first = try sender.start(
            ["send", waiting.address, path("big"), "--json"] + Self.transportOptions + Self.slowly)
        try waiting.child.line(with: "\"progress\"")
        first.send(SIGINT)
        let ended = try NighCall(finishing: first)
        #expect(ended.status == 1 && ended.errors.joined().contains("interrupted"), "\(ended)")
        try ended.expectSchema("send")
        let failure = try object(waiting.child.line(with: "\"failure\""))
        #expect(failure["part"] as? String == received("big.part"))

        let second = try sender.start(
            ["send", waiting.address, path("big"), "--json"] + Self.transportOptions + Self.slowly)
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
        #expect(try sent.object()["resumed_at_bytes"] as? Int ?? 0 > 0, "\(sent)")
        #expect(try NighCall(finishing: again.child).status == 0)
        #expect(try content(received("big")) == data)
    }

    @Test("A partial file that differs from the file's beginning is replaced")
    func anotherFile() throws {
        try file("big", bytes: 4_000_000)
        let waiting = try receive("--once")
        let sending = try sender.start(
            ["send", waiting.address, path("big")] + Self.transportOptions + Self.slowly)
        try waiting.child.line(with: "\"progress\"")
        sending.send(SIGKILL)
        _ = try NighCall(finishing: sending)
        var data = try content(path("big"))
        data[0] ^= 1
        try data.write(to: URL(fileURLWithPath: path("big")))
        let sent = try send(path("big"), to: waiting)
        #expect(try sent.object()["resumed_at_bytes"] as? Int == 0, "\(sent)")
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
        let second = try NighUser().start(["send", waiting.address, path("a"), "-v"] + Self.transportOptions)
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
        waiting.child.send(SIGINT)
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try names() == ["stdin"])
        #expect(try content(received("stdin")) == Data("whole\n".utf8))
    }

    @Test("A file that changes while it is sent is reported as such, and does not arrive")
    func changing() throws {
        try file("big", bytes: 3_000_000)
        let waiting = try receive()
        let sending = try sender.start(
            ["send", waiting.address, path("big"), "--json"] + Self.transportOptions + Self.slowly)
        try waiting.child.line(with: "\"start\"")
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path("big")))
        try handle.write(contentsOf: Data([1, 2, 3]))
        try handle.close()
        let sent = try NighCall(finishing: sending)
        #expect(sent.status == 1 && sent.errors.joined().contains("changed while it was sent"), "\(sent)")
        try waiting.child.line(with: "\"failure\"", "changed while it was sent")
        waiting.child.send(SIGINT)
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try names() == [])
    }

    @Test("A full disk is reported on both sides, and existing data stays")
    func fullDisk() throws {
        try file("big", bytes: 3_000_000)
        let nigh = BuiltPrograms.path(of: "nigh")
        let command =
            "ulimit -f 1000; exec \(nigh) receive --json-lines --accept any --once --into \(inbox.path) -n Puma -t \(Self.transportOptions[1])"
        let child = try Child(
            "/bin/bash", ["-c", command], environment: ["XDG_DATA_HOME": receiver.folder.path])
        let ready = try object(child.line(with: "\"ready\""))
        let address = try #require((ready["addresses"] as? [String])?.first)
        let sent = try sender.run(["send", address, path("big"), "--json"] + Self.transportOptions)
        #expect(
            sent.status == 1 && sent.errors.joined().contains("Puma has no space for the file"), "\(sent)")
        try sent.expectSchema("send")
        let got = try NighCall(finishing: child)
        #expect(got.status == 1 && got.lines.joined().contains("File too large"), "\(got)")
        try got.expectSchema("receive", lines: true)
        #expect(try names() == ["big.part", "big.part.nigh"])
    }

    // MARK: Transfers that are refused

    @Test("An unwanted file is refused with a reason")
    func refused() throws {
        try file("a", bytes: 2_000)
        let small = try receive("--max-size", "1K")
        let tooLarge = try send(path("a"), to: small)
        #expect(
            tooLarge.status == 1 && tooLarge.errors.joined().contains("does not accept the file"),
            "\(tooLarge)")
        try tooLarge.expectSchema("send")
        small.child.send(SIGINT)
        #expect(try NighCall(finishing: small.child).status == 0)

        let paired = try receive(accepting: "paired")
        let stranger = try send(path("a"), to: paired)
        #expect(
            stranger.status == 1 && stranger.errors.joined().contains("paired devices only"), "\(stranger)")
        try stranger.expectSchema("send")
        paired.child.send(SIGTERM)
        #expect(try NighCall(finishing: paired.child).status == 0)
        #expect(try names() == [])
    }

    @Test("A person at a terminal is asked", arguments: [true, false])
    func asked(_ isWanted: Bool) throws {
        try file("a", bytes: 2_000)
        let windows = try TerminalWindows(of: "nigh")
        let options = "-t tcp:interface=lo,mdns=embedded -s f\(UInt32.random(in: .min ... .max))"
        try windows.open(
            "w", "receive --once --into \(inbox.path) -n Puma \(options)",
            environment: "XDG_DATA_HOME=\(receiver.folder.path)")
        let sending = try sender.start(
            ["send", "Puma", path("a")] + options.split(separator: " ").map(String.init))
        try windows.wait("w", shows: "(2.0 KiB) from ")
        // Any other answer repeats the question.
        try windows.press("w", "what", "Enter")
        try windows.press("w", isWanted ? "y" : "n", "Enter")
        let sent = try NighCall(finishing: sending)
        #expect(sent.status == (isWanted ? 0 : 1), "\(sent)")
        if !isWanted {
            #expect(sent.errors.joined().contains("the receiver's user declined it"), "\(sent)")
            try windows.press("w", "C-c")
        }
        try windows.wait("w", shows: "ended with \(isWanted ? 0 : 1)")
        #expect(try names() == (isWanted ? ["a"] : []))
    }

    @Test("A file that cannot be sent is reported in one sentence")
    func unreadable() throws {
        for what in [files.path, path("nowhere")] {
            let call = try sender.run(["send", "tcp://127.0.0.1:9", what] + Self.transportOptions)
            #expect(call.status == 1 && call.errors.count == 1, "\(call)")
        }
        let call = try sender.run(["send", "tcp://127.0.0.1:9", files.path] + Self.transportOptions)
        #expect(call.errors.joined().contains("is a directory: tar -c"))
    }

    @Test("A sender waits for a missing receiver, but not for ever")
    func nobody() throws {
        try file("a", bytes: 1)
        let call = try sender.run(
            ["send", "tcp://127.0.0.1:9", path("a"), "--give-up", "1s", "--json"] + Self.transportOptions)
        #expect(call.status == 1 && call.errors.count == 1, "\(call)")
        try call.expectSchema("send")
    }

    @Test("If no transport works, the status is 3")
    func unavailable() throws {
        try file("a", bytes: 1)
        let options = ["-t", "bluetooth:adapter=hci60000"]
        #expect(try sender.run(["send", "puma", path("a")] + options).status == 3)
        let got = try receiver.run(["receive", "--accept", "any", "--json"] + options)
        #expect(got.status == 3)
        try got.expectSchema("receive")
    }

    @Test(
        "A wrong command line ends with status 2 and one sentence",
        arguments: [
            ["send"], ["send", "puma", "--give-up", "0s"], ["send", "puma", "a", "b"],
            ["receive", "--accept", "some"],
            ["receive"], ["receive", "--into", "a", "-o", "b"],
            ["receive", "-o", "-", "--json", "--accept", "any"],
            ["receive", "--max-size", "many"],
        ])
    func misuse(_ arguments: [String]) throws {
        let call = try sender.run(arguments)
        #expect(call.status == 2 && call.errors.count == 1, "\(call)")
    }

    @Test("The help explains the command", arguments: ["send", "receive"])
    func help(_ command: String) throws {
        let call = try sender.run(command, "--help")
        #expect(call.status == 0)
        #expect(call.lines.contains { $0.contains("nigh \(command)") })
    }
}
