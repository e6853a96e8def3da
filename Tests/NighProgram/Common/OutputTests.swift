import ChildPrograms
import Foundation
import NighTestKit
import ProgramSupport
import Testing

@testable import nigh

/// Tests where the output of commands goes, and their input comes from, and what happens if it does not.
@Suite(.callsPrograms) struct OutputTests {
    private let user = NighUser()

    private func run(_ arguments: String, into output: String, status: Int32? = 1) throws -> NighCall {
        let command = "exec \(BuiltPrograms.path(of: "nigh")) \(arguments) \(output)"
        return try Child("/bin/sh", ["-c", command], environment: ["XDG_DATA_HOME": user.folder.path]).finish(
            status: status)
    }

    @Test(
        arguments: [
            "--help", "help", "send --help", "help errors", "errors", "errors --json", "errors --json-lines",
            "peers", "peers --json", "identity", "identity export", "transports", "transports --json",
            "completion bash", "manual", "conformance --list tcp",
            "discover --once --timeout 1s -t tcp:interface=lo,mdns=off --json",
        ])
    func `If the disk is full, every command reports it and ends with 1`(_ arguments: String) throws {
        try user.run("identity")
        let call = try run(arguments, into: ">/dev/full")
        let reported = call.errors.filter { $0.contains("standard output") }
        #expect(reported.count == 1 && reported[0].contains("No space left on device"), "\(call)")
    }

    @Test(arguments: ["--help", "errors", "identity"])
    func `A closed standard output is also reported`(_ arguments: String) throws {
        let call = try run(arguments, into: ">&-")
        #expect(call.error.contains("standard output"), "\(call)")
    }

    @Test(arguments: ["--help", "manual", "completion bash", "errors"])
    func `A reader that has gone, or goes early, is not a failure`(_ arguments: String) throws {
        let child = try user.start(arguments)
        child.stopListening()
        // The pipe may break at its first word.
        #expect(try child.finish(status: nil).errors.isEmpty)
        #expect(try run(arguments, into: "| head -c 1", status: nil).errors.isEmpty)
    }

    @Test func `A command that would continue ends cleanly when nobody reads its output`() throws {
        let host = try Listener("host")
        host.child.stopListening()
        // Makes the host write something.
        let guest = try user.start("ping \(host.address) \(byAddress)")
        #expect(try host.child.finish().errors.isEmpty)
        withExtendedLifetime(guest) {}
    }

    @Test func `A stranger's text cannot control the terminal; text in any script stays unchanged`() {
        #expect(LineOutput.sanitized("a\u{1B}[2Jb\nc\u{202E}d") == "a\u{FFFD}[2Jb\u{FFFD}c\u{FFFD}d")
        #expect(LineOutput.sanitized("Grüße, 猫 👋") == "Grüße, 猫 👋")
    }

    @Test func `Writing a page to a pipe that nobody reads fails, and does not block`() throws {
        let path = "\(user.folder.path)/pipe"
        try #require(mkfifo(path, 0o600) == 0)
        #expect(throws: ReportFile.Failure.self) {
            try ReportFile(path, option: "--report", overwrites: true).write("a page")
        }
    }

    @Test func `An answer from a pipe is followed by a line of its own`() throws {
        try user.run("identity")
        let child = try user.start("identity new", reads: true)
        child.type("n")
        let call = try child.finish(status: 1)
        #expect(call.errors.count == 2 && call.errors[0].hasSuffix("[y/N] "), "\(call)")
    }

    /// Otherwise a test of a program that writes much would wait forever.
    @Test(arguments: ["seq 100000 >&2; echo done; exit 3", "seq 100000; echo done >&2; exit 3"])
    func `A child of a test may write more than a socket holds to either output`(_ script: String) throws {
        let child = try Child("/bin/sh", ["-c", script], patience: 20)
        let (status, errors) = try child.end()
        #expect(status == 3 && [errors.count, child.lines.count].sorted() == [1, 100_000])
    }
}

/// Tests programs when the system is short of descriptors or threads.
@Suite(.callsPrograms) struct ShortageTests {
    private let user = NighUser()

    private static let calls = [
        ["nigh", "host"], ["nigh", "discover"], ["nigh", "ping", "Nobody", "--wait", "1s"],
        ["nigh", "chat", "-v"],
        ["fourinarow", "host", "--plain"],
    ]

    /// Starts a program of this package under a limit that the shell's `ulimit` sets.
    private func start(_ call: [String], _ limit: String) throws -> Child {
        let program = BuiltPrograms.path(of: call[0])
        let words = [program] + call.dropFirst() + ["-t", "tcp:interface=lo"]
        return try Child(
            "/bin/sh", ["-c", "ulimit -c 0; ulimit \(limit); exec \(words.joined(separator: " "))"],
            environment: ["XDG_DATA_HOME": user.folder.path, "NO_COLOR": ""], reads: true)
    }

    @Test func `With too few descriptors a program reports it and ends with 3; with enough it runs normally`()
        throws
    {
        // With 3, even the dynamic linker cannot load a library.
        for count in [4, 5, 8, 13, 16, 18, 21, 25, 32, 256] {
            for call in Self.calls {
                let child = try start(call, "-n \(count)")
                if count < SystemRequirements.descriptors {
                    let end = try child.end()
                    #expect(end.status == 3, "\(count) \(call): \(end)")
                    #expect(end.errors.count == 1 && end.errors[0].contains("raise `ulimit -n`"), "\(end)")
                } else if call[1] == "ping" {
                    #expect(try child.end().status == 1)
                } else if call[1] != "discover" {
                    // It runs once it has printed its name or its address.
                    if call[1] == "chat" {
                        try child.error(with: "listens at")
                    } else {
                        try child.line(with: " ")
                    }
                    child.send(SIGINT)
                    #expect(try child.end().status == 0, "\(count) \(call)")
                }
            }
        }
    }

    @Test func `If no thread can be started, a program reports it and ends with 3`() throws {
        // With this limit, no address space has room for the stack of a second thread.
        for call in Self.calls {
            let end = try start(call, "-s 1099511627776").end()
            #expect(end.status == 3, "\(call): \(end)")
            #expect(end.errors.count == 1 && end.errors[0].contains("threads"), "\(end)")
        }
    }

    @Test(arguments: [["nigh", "ping", "--help"], ["fourinarow", "host", "--help"]])
    func `Help needs no thread`(_ call: [String]) throws {
        try start(call, "-s 1099511627776").finish()
    }

    @Test func `When descriptors run out, guests stay, and new ones come once there are some`() throws {
        let (host, other) = (try Listener("host"), NighUser())
        let ping = "ping \(host.address) \(byAddress)"
        let guest = try user.start("\(ping) --json-lines")
        try guest.line(with: "\"reply\"")
        try host.child.limit("nofile=3:")
        let late = try other.start("\(ping) --until")
        try host.child.error(with: "raise `ulimit -n`")
        try guest.finish(after: SIGINT)
        try host.child.line(with: "\"left\"", "peer left")
        try host.child.limit("nofile=200:")
        try host.child.line(with: "\"listening\"", host.address, occurrence: 2)
        try late.finish()
        try host.end()
    }

    @Test func `A shortage is reported as JSON if requested`() throws {
        let call = try start(["nigh", "discover", "--json"], "-n 8").finish(status: 3)
        #expect(call.json["error"]["stage"].string == "starting")
    }
}
