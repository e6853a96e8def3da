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
        #expect(try reported["sha256"] as? String == (files(in: sent)[0]["sha256"] as? String))
        #expect(reported["path"] as? String == received("holiday.mov"))
        #expect(try sent.object()["stored_bytes"] as? Int == 3_000_000)
    }

    @Test("Files and folders go in one transfer, with their structure; links are named and not sent")
    func several() throws {
        let data = try file("holiday.mov", bytes: 1_000_000)
        try makeFolder("photos")
        let waiting = try receive("--once")
        let sent = try send(path("holiday.mov"), to: waiting, path("photos"))
        #expect(sent.status == 0, "\(sent)")
        try sent.expectSchema("send")
        #expect(sent.errors == ["nigh: \(path("photos/link")) is not sent: it is a symbolic link"])
        let got = try NighCall(finishing: waiting.child)
        #expect(got.status == 0, "\(got)")
        try got.expectSchema("receive", lines: true)
        #expect(try names() == ["holiday.mov", "photos"])
        #expect(try content(received("holiday.mov")) == data)
        for name in ["photos/one", "photos/deep/two", "photos/deep/nothing"] {
            #expect(try content(received(name)) == content(path(name)))
        }
        var about = stat()
        #expect(stat(received("photos/deep/empty"), &about) == 0 && about.st_mode & S_IFMT == S_IFDIR)
        #expect(lstat(received("photos/link"), &about) != 0)
        let paths = try files(in: sent).map { $0["path"] as? String }
        #expect(paths == ["holiday.mov", "photos/deep/nothing", "photos/deep/two", "photos/one"])
        let transfer = try #require(try got.objects().first { $0["type"] as? String == "transfer" })
        #expect(transfer["items"] as? Int == 7 && transfer["received_bytes"] as? Int == 2_570_000)
    }

    @Test("An empty folder is a transfer, too: a receiver of one ends well after it")
    func emptyFolder() throws {
        try FileManager.default.createDirectory(atPath: path("empty"), withIntermediateDirectories: true)
        let waiting = try receive("--once")
        #expect(try send(path("empty"), to: waiting).status == 0)
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try names() == ["empty"])
    }

    @Test("Two senders send at the same time, and each file arrives as it was sent")
    func twoSenders() throws {
        let second = try file("second", bytes: 2_100_000)
        let waiting = try receive()
        let sending = try sender.start(
            ["send", waiting.address, "-", "--as", "first"] + Self.transportOptions, reads: true)
        sending.type("begun")
        try waiting.child.line(with: "\"start\"", "first")
        // The second need not wait for the end of the first.
        let other = try NighUser().run(["send", waiting.address, path("second")] + Self.transportOptions)
        #expect(other.status == 0, "\(other)")
        sending.type("ended")
        sending.closeInput()
        #expect(try NighCall(finishing: sending).status == 0)
        try waiting.child.line(with: "\"transfer\"", occurrence: 2)
        waiting.child.send(SIGINT)
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try content(received("first")) == Data("begun\nended\n".utf8))
        #expect(try content(received("second")) == second)
    }

    @Test("Without --json a sender prints one line; a receiver without a file ends with status 0")
    func words() throws {
        try file("a.txt", bytes: 10)
        let child = try receiver.start(
            ["receive", "--accept", "any", "--into", inbox.path, "-n", "Puma", "--json", "-v"]
                + Self.transportOptions)
        try child.error(with: "listens at")
        let other = try receive("--once")
        let sent = try sender.run(["send", other.address, path("a.txt")] + Self.transportOptions)
        #expect(sent.status == 0, "\(sent)")
        #expect(
            sent.lines.count == 1 && sent.lines[0].hasPrefix("sent a.txt to Puma: 10 bytes in ")
                && !sent.lines[0].contains("sha256"),
            "\(sent)")
        child.send(SIGINT)
        let idle = try NighCall(finishing: child)
        #expect(idle.status == 0, "\(idle)")
        try idle.expectSchema("receive")
        #expect(try NighCall(finishing: other.child).status == 0)
    }

    @Test("A receiver that cannot listen says why")
    func portInUse() throws {
        let listener = try PlainListener()
        let child = try receiver.start([
            "receive", "--accept", "any", "--into", inbox.path,
            "-t", "tcp:interface=lo,mdns=off,port=\(listener.port)",
        ])
        _ = try child.error(with: "port \(listener.port) is in use")
        child.send(SIGINT)
        #expect(try NighCall(finishing: child).status == 0)
    }

    /// A sender that reads its standard input, and a receiver that writes to its standard output.
    private func pipe() throws -> (sender: Child, receiver: Child) {
        let child = try receiver.start(
            ["receive", "--accept", "any", "-o", "-", "-n", "Puma"]
                + ["-t", "tcp:interface=lo,mdns=off"], reads: false)
        let waiting = try address(ofWords: child)
        let sending = try sender.start(
            "send", waiting, "-", "-t", Self.transportOptions[1], "--as", "notes", reads: true)
        return (sending, child)
    }

    @Test("Bytes written to one program come out of another")
    func pipes() throws {
        let (sending, child) = try pipe()
        for number in 0..<1_000 { sending.type("line \(number)") }
        sending.closeInput()
        let sent = try NighCall(finishing: sending)
        #expect(sent.status == 0, "\(sent)")
        let got = try NighCall(finishing: child)
        #expect(got.status == 0 && got.lines == (0..<1_000).map { "line \($0)" }, "\(got.errors)")
    }

    @Test("The standard input may be a file whose size the system does not tell")
    func generatedInput() throws {
        let waiting = try receive("--once")
        let call =
            [BuiltPrograms.path(of: "nigh"), "send", waiting.address, "-", "--as", "version", "--json"]
            + Self.transportOptions
        let script = "exec \(call.joined(separator: " ")) </proc/version"
        let sending = try Child("/bin/sh", ["-c", script], environment: sender.environment)
        let sent = try NighCall(finishing: sending)
        #expect(sent.status == 0, "\(sent)")
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try content(received("version")) == content("/proc/version"))
    }

    @Test("A receiver that writes to another program ends with an error if the sender is killed half way")
    func killedHalfWay() throws {
        let (sending, child) = try pipe()
        sending.type("first line")
        _ = try child.line(with: "first line")
        sending.send(SIGKILL)
        #expect(try NighCall(finishing: sending).status == -SIGKILL)
        let got = try NighCall(finishing: child)
        #expect(got.status == 1 && got.lines == ["first line"], "\(got)")
        #expect(got.errors.contains { $0.contains("cannot be taken back") }, "\(got)")
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
        for name in ["a\nb\u{1B}[2J", ".profile", String(repeating: "x", count: 900)] {
            let sent = try send(path("a"), to: waiting, "--as", name)
            #expect(sent.status == 0, "\(sent)")
        }
        try waiting.child.line(with: "\"transfer\"", occurrence: 3)
        waiting.child.send(SIGINT)
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try names() == ["a_b_[2J", "profile", String(repeating: "x", count: 200)])
        for name in ["../evil", "/tmp/evil", ".."] {
            let sent = try sender.run(
                ["send", "tcp://127.0.0.1:9", path("a"), "--as", name] + Self.transportOptions)
            #expect(
                sent.status == 1 && sent.errors.joined().contains("cannot be sent under the name"), "\(sent)")
        }
    }

    @Test("A folder that is sent again does not become a second one, and both sides count alike")
    func sentAgain() throws {
        try makeFolder("photos")
        let waiting = try receive()
        for number in 1...2 {
            let sent = try sender.run(["send", waiting.address, path("photos")] + Self.transportOptions)
            #expect(
                sent.status == 0 && sent.lines[0].hasPrefix("sent 3 files and 3 folders to Puma: "), "\(sent)"
            )
            try waiting.child.line(with: "\"transfer\"", "\"items\":6", occurrence: number)
        }
        waiting.child.send(SIGINT)
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try names() == ["photos"])
    }

    // MARK: Transfers that are refused

    @Test("An unwanted file is refused with a reason")
    func refused() throws {
        try file("a", bytes: 2_000)
        let small = try receive("--max-size", "1K")
        let tooLarge = try send(path("a"), to: small)
        #expect(
            tooLarge.status == 1 && tooLarge.errors.joined().contains("does not accept the files"),
            "\(tooLarge)")
        try tooLarge.expectSchema("send")
        try small.child.line(with: "\"failure\"")
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
        try windows.wait("w", shows: "\"a\" (2.0 KiB)?")
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
        let call = try sender.run(["send", "tcp://127.0.0.1:9", path("nowhere")] + Self.transportOptions)
        #expect(call.status == 1 && call.errors.count == 1, "\(call)")
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
            ["send"], ["send", "puma", "--give-up", "0s"], ["send", "puma", "a", "b", "--as", "c"],
            ["send", "puma", "a", "-"], ["transfers", "resume"], ["transfers", "remove"],
            ["receive", "--accept", "some"],
            ["receive"], ["receive", "--into", "a", "-o", "b"],
            ["receive", "-o", "-", "--json", "--accept", "any"],
            ["receive", "--max-size", "many"],
        ])
    func misuse(_ arguments: [String]) throws {
        let call = try sender.run(arguments)
        #expect(call.status == 2 && call.errors.count == 1, "\(call)")
    }

    @Test("The help explains the command", arguments: ["send", "receive", "transfers"])
    func help(_ command: String) throws {
        let call = try sender.run(command, "--help")
        #expect(call.status == 0)
        #expect(call.lines.contains { $0.contains("nigh \(command)") })
    }
}
