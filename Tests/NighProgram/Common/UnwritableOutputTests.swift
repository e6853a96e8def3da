import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// A command that cannot write its results reports that and does not succeed.
@Suite(.callsPrograms) struct UnwritableOutputTests {
    private let user = NighUser()

    private func run(_ arguments: String, into output: String) throws -> NighCall {
        let command = "exec \(BuiltPrograms.path(of: "nigh")) \(arguments) \(output)"
        return try NighCall(
            finishing: Child("/bin/sh", ["-c", command], environment: ["XDG_DATA_HOME": user.folder.path]))
    }

    @Test(
        "If the disk is full, every command reports it and ends with 1",
        arguments: [
            "--help", "help", "send --help", "help errors", "errors", "errors --json", "errors --json-lines",
            "peers", "peers --json", "identity", "identity export", "transports", "transports --json",
            "completion bash", "manual", "conformance --list tcp",
            "discover --once --timeout 1s -t tcp:interface=lo,mdns=off --json",
        ])
    func fullDisk(_ arguments: String) throws {
        #expect(try user.run("identity").status == 0)
        let call = try run(arguments, into: ">/dev/full")
        #expect(call.status == 1, "\(call)")
        let reported = call.errors.filter { $0.contains("standard output") }
        #expect(reported.count == 1 && reported[0].contains("No space left on device"), "\(call)")
    }

    @Test("A closed standard output is also reported", arguments: ["--help", "errors", "identity"])
    func closed(_ arguments: String) throws {
        let call = try run(arguments, into: ">&-")
        #expect(call.status == 1, "\(call)")
        #expect(call.errors.contains { $0.contains("standard output") }, "\(call)")
    }

    @Test(
        "A reader that has gone does not change the status",
        arguments: ["manual", "completion bash", "errors"])
    func withoutReader(_ arguments: String) throws {
        let child = try user.start(arguments.split(separator: " ").map(String.init))
        child.stopListening()
        let call = try NighCall(finishing: child)
        #expect(call.status == 0 && call.errors.isEmpty, "\(call)")
    }

    @Test("A reader that closes the output early is not a failure", arguments: ["--help", "errors"])
    func closedByTheReader(_ arguments: String) throws {
        let call = try run(arguments, into: "| head -c 1")
        #expect(call.errors.isEmpty, "\(call)")
    }
}
