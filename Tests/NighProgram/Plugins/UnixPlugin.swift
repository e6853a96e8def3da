import ChildPrograms
import Glibc
import NighTestKit

/// A plugin with the transport `unix`, and a folder in which its users meet.
struct UnixPlugin {
    /// The plugin.
    let path: String
    let meetingPlace = TemporaryFolder()
    var spec: String { "unix:folder=\(meetingPlace.path)" }

    /// That of Examples/UnixTransport.
    init() throws { path = try BuiltPackages.build("Examples/UnixTransport") + "/libUnixTransport.so" }

    /// Where the plugins lie that break rules and have a Nigh of their own, and a program that keeps its Nigh to itself.
    static func ruleBreakers() throws -> String {
        let example = ["Folder", "Presence", "UnixSocket", "UnixTransport"]
            .map { "Examples/UnixTransport/Sources/UnixTransport/\($0).swift" }
        return try BuiltPackages.assemble(
            "RuleBreaker", with: example + ["Tests/Core/TransportChecks/RuleBreaker.swift"])
    }

    /// The arguments with which a command uses it.
    var arguments: [String] { ["--plugin", path, "-t", spec] }

    /// A `nigh host` that is found there.
    func host() throws -> Child {
        let host = try NighUser().start(
            ["host", "--name", "Puma", "--identity", "ephemeral", "--json-lines"] + arguments)
        try host.line(with: "\"listening\"")
        return host
    }

    /// Puts a copy where it may be found.
    func install(to path: String) throws {
        let copy = try Child("/bin/cp", [self.path, path])
        guard try copy.end().status == 0, chmod(path, 0o755) == 0 else {
            throw Child.Failure(description: "\(path) cannot be written")
        }
    }
}
