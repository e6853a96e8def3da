import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh send` and `nigh receive` as two users run them. FilesTests tests the transfers themselves.
@Suite(.callsPrograms) struct SendingTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    // MARK: Transfers that succeed

    @Test func `Files and folders go in one transfer; links are named and not sent`() throws {
        let data = try file("holiday.mov", bytes: 1_000_000)
        try makeFolder("photos")
        let waiting = try receive("--once")
        let sent = try send("holiday.mov photos", to: waiting)
        #expect(sent.errors == ["nigh: \(path("photos/link")) is not sent: it is a symbolic link"])
        let got = try waiting.child.finish()
        #expect(try names() == ["holiday.mov", "photos"])
        #expect(try content(received("holiday.mov")) == data)
        for name in ["photos/one", "photos/deep/two", "photos/deep/nothing"] {
            #expect(try content(received(name)) == content(path(name)))
        }
        var about = stat()
        #expect(stat(received("photos/deep/empty"), &about) == 0 && about.st_mode & S_IFMT == S_IFDIR)
        #expect(lstat(received("photos/link"), &about) != 0)
        let paths = sent.json["files"].list.map { $0["path"].string }
        #expect(paths == ["holiday.mov", "photos/deep/nothing", "photos/deep/two", "photos/one"])
        let transfer = try #require(got.objects("transfer").first)
        #expect(transfer["items"].int == 7 && transfer["received_bytes"].int == 2_570_000)
        #expect(sent.json["stored_bytes"].int == 2_570_000)
        let file = try #require(got.objects("file").first { $0["path"].string == received("holiday.mov") })
        #expect(file["sha256"].string == sent.json["files"][0]["sha256"].string)
    }

    @Test func `Two senders send at the same time, and each file arrives as it was sent`() throws {
        let second = try file("second", bytes: 2_100_000)
        let waiting = try receive()
        let sending = try startSending("-", to: waiting, "--as first")
        sending.type("begun")
        try waiting.child.line(with: "\"start\"", "first")
        // The second need not wait for the end of the first.
        try startSending("second", to: waiting, by: NighUser()).finish()
        sending.type("ended")
        sending.closeInput()
        try sending.finish()
        try waiting.child.line(with: "\"transfer\"", occurrence: 2)
        try waiting.end()
        #expect(try content(received("first")) == Data("begun\nended\n".utf8))
        #expect(try content(received("second")) == second)
    }

    @Test func `A sender prints one line; a receiver without a file ends with status 0`() throws {
        try file("a.txt", bytes: 10)
        let idle = try receiver.start(
            "receive --accept any --into \(inbox.path) -n Puma --json -v \(byAddress)")
        try idle.error(with: "listens at")
        let waiting = try receive("--once")
        let sent = try startSending("a.txt", to: waiting).finish()
        #expect(
            sent.lines.count == 1 && sent.lines[0].hasPrefix("sent a.txt to Puma: 10 bytes in ")
                && !sent.lines[0].contains("sha256"), "\(sent)")
        try idle.finish(after: SIGINT)
        try waiting.child.finish()
    }

    @Test func `The duration of small files is reported, without a rate that cannot be known`() throws {
        try file("small", bytes: 14_000)
        let waiting = try receive()
        for _ in 0..<4 { #expect(try send("small", to: waiting).json["duration_ms"].double ?? 0 > 0) }
        try waiting.child.line(with: "\"transfer\"", occurrence: 4)
        for transfer in try waiting.end().objects("transfer") {
            let time = try #require(transfer["duration_ms"].double)
            // The rate follows from the size and the time. It is absent if the time is less than 1 ms.
            let rate = transfer["bytes_per_second"].double
            #expect(time > 0 && (time < 1 ? rate == nil : rate ?? 0 < 14_000_001), "\(transfer)")
        }
    }

    /// A sender that reads its standard input, and a receiver that writes to its standard output.
    private func pipe() throws -> (sender: Child, receiver: Child) {
        let child = try receiver.start("receive --accept any -o - -n Puma \(byAddress)")
        let line = try child.error(with: "waiting for files")
        let address = try #require(line.split(separator: " ").first { $0.hasPrefix("tcp://127") })
        return (try sender.start("send \(address) - \(byAddress) --as notes", reads: true), child)
    }

    @Test func `Bytes written to one program come out of another`() throws {
        let (sending, child) = try pipe()
        for number in 0..<1_000 { sending.type("line \(number)") }
        sending.closeInput()
        try sending.finish()
        #expect(try child.finish().lines == (0..<1_000).map { "line \($0)" })
    }

    @Test func `A receiver into a pipe ends with an error if the sender is killed half way`() throws {
        let (sending, child) = try pipe()
        sending.type("first line")
        try child.line(with: "first line")
        try sending.finish(after: SIGKILL, status: -SIGKILL)
        #expect(try child.finish(status: 1, says: "cannot be taken back").lines == ["first line"])
    }

    @Test func `The standard input may be a file whose size the system does not tell`() throws {
        let waiting = try receive("--once")
        let nigh = BuiltPrograms.path(of: "nigh")
        let script = "exec \(nigh) send \(waiting.address) - --as version \(byAddress) </proc/version"
        try Child("/bin/sh", ["-c", script], environment: sender.environment).finish()
        try waiting.child.finish()
        #expect(try content(received("version")) == content("/proc/version"))
    }

    @Test func `Empty files and folders are sent, and one file gets the name one chooses`() throws {
        try FileManager.default.createDirectory(atPath: path("empty"), withIntermediateDirectories: true)
        let waiting = try receive("--once")
        try send("empty", to: waiting)
        try waiting.child.finish()
        #expect(try names() == ["empty"])
        try file("nothing", bytes: 0)
        let named = try Listener("receive --accept any -o \(received("mine"))", of: receiver)
        try send("nothing", to: named)
        try named.child.finish()
        #expect(try content(received("mine")).isEmpty)
    }

    @Test func `Existing files stay, unless they are to be replaced`() throws {
        let data = try file("a.txt", bytes: 100)
        _ = inbox.file("a.txt", "old")
        for (option, name) in [("", "a (2).txt"), ("--force", "a.txt")] {
            let waiting = try receive("--once \(option)")
            try send("a.txt", to: waiting)
            try waiting.child.finish()
            #expect(try content(received(name)) == data)
        }
    }

    // MARK: Transfers that are refused

    @Test(arguments: [("any", "does not accept the files"), ("paired", "paired devices only")])
    func `An unwanted file is refused, and leaves no record`(_ policy: String, _ words: String) throws {
        try file("a", bytes: 2_000)
        let waiting = try receive("--max-size 1K", accepting: policy)
        try send("a", to: waiting, status: 1, says: words)
        try waiting.end()
        #expect(try names() == [])
        #expect(try sender.run("transfers --json --into \(files.path)").json["count"].int == 0)
    }

    @Test func `A file, a peer or a port that is not there is reported in one sentence`() throws {
        try file("a", bytes: 1)
        let nobody = "tcp://127.0.0.1:9 \(byAddress)"
        try sender.fail("send \(path("nowhere")) --to \(nobody)")
        try sender.fail("send \(path("a")) --give-up 1s --json --to \(nobody)")
        let listener = try BoundSocket().listens()
        let child = try receiver.start(
            "receive --accept any --into \(inbox.path) \(byAddress),port=\(listener.port)")
        try child.error(with: "port \(listener.port) is in use")
        try child.finish(after: SIGINT)
    }

    @Test func `Ctrl-C ends the wait for a program that writes into a pipe`() throws {
        try #require(mkfifo(path("pipe"), 0o600) == 0)
        let waiting = try receive()
        let sending = try startSending("pipe", to: waiting, "-v")
        try waiting.child.line(with: "\"start\"")
        try sending.finish(after: SIGINT, status: 1, says: "interrupted")
        // It ended by the signal, not because the wait for it timed out.
        let tracing = try sender.start("trace \(path("pipe")) --follow")
        #expect(try tracing.finish(after: SIGINT, status: nil).status != -SIGKILL)
    }

    @Test func `One command sends to several devices at once, and says who did not get everything`() throws {
        let data = try file("photo.jpg", bytes: 500_000)
        let waiting = try receive("--once")
        let closed = try BoundSocket()
        let sent = try sender.run(
            """
            send --json --to \(waiting.address) --to tcp://127.0.0.1:\(closed.port) \(path("photo.jpg")) \
            --wait 2s \(byAddress)
            """, status: 1)
        let failed = sent.json["recipients"].list.map { $0["error"].isObject }
        #expect(failed == [false, true], "\(sent)")
        try waiting.child.finish()
        #expect(try content(received("photo.jpg")) == data)
    }
}
