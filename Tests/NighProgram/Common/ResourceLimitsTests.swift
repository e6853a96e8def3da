import ChildPrograms
import Glibc
import NighTestKit
import ProgramSupport
import Testing

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

    @Test("With too few descriptors a program reports it and ends with 3; with enough it runs normally")
    func descriptors() throws {
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

    @Test("If no thread can be started, a program reports it and ends with 3")
    func threads() throws {
        // With this limit, no address space has room for the stack of a second thread.
        for call in Self.calls {
            let end = try start(call, "-s 1099511627776").end()
            #expect(end.status == 3, "\(call): \(end)")
            #expect(end.errors.count == 1 && end.errors[0].contains("threads"), "\(end)")
        }
    }

    @Test(
        "Help needs no thread",
        arguments: [["nigh", "ping", "--help"], ["fourinarow", "host", "--help"]])
    func help(_ call: [String]) throws {
        #expect(try start(call, "-s 1099511627776").end().status == 0)
    }

    @Test("When descriptors run out later, guests stay, and new ones are accepted once there are some again")
    func later() throws {
        let (host, other) = (try HostInTests(), NighUser())
        let ping = ["ping", host.address, "-t", HostInTests.transport]
        let guest = try user.start(ping + ["--json-lines"])
        try guest.line(with: "\"reply\"")
        try host.child.limitDescriptors(to: 3)
        let late = try other.start(ping + ["--until"])
        try host.child.error(with: "raise `ulimit -n`")
        guest.send(SIGINT)
        #expect(try NighCall(finishing: guest).status == 0)
        try host.child.line(with: "\"left\"", "peer left")
        try host.child.limitDescriptors(to: 200)
        try host.child.line(with: "\"listening\"", host.address, occurrence: 2)
        #expect(try NighCall(finishing: late).status == 0)
        #expect(try host.end().status == 0)
    }

    @Test("A shortage is reported as JSON if requested")
    func json() throws {
        let child = try start(["nigh", "discover", "--json"], "-n 8")
        let call = try NighCall(finishing: child)
        #expect(call.status == 3)
        #expect((try call.object()["error"] as? [String: Any])?["stage"] as? String == "starting")
        try call.expectSchema("discover")
    }
}
