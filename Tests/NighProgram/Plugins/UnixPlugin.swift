import ChildPrograms
import Glibc
import NighTestKit

/// A plugin with the transport `unix`, and a folder in which its users meet.
struct UnixPlugin {
    /// The path of the library.
    let path: String
    let meetingPlace = TemporaryFolder()
    var spec: String { "unix:folder=\(meetingPlace.path)" }

    /// Builds the plugin of Examples/UnixTransport.
    init() throws { path = try BuiltPackages.build("Examples/UnixTransport") + "/libUnixTransport.so" }

    /// Returns the folder with the plugin that breaks rules, the plugin with its own copy of Nigh, and a
    /// program that does not export its Nigh.
    static func ruleBreakers() throws -> String {
        let example = ["Folder", "Presence", "UnixSocket", "UnixTransport"]
            .map { "Examples/UnixTransport/Sources/UnixTransport/\($0).swift" }
        return try BuiltPackages.assemble(
            "RuleBreaker", with: example + ["Tests/Core/TransportChecks/RuleBreaker.swift"])
    }

    /// The arguments with which a command uses the plugin.
    var arguments: [String] { ["--plugin", path, "-t", spec] }

    /// Starts a `nigh host` that can be found in the folder.
    func host() throws -> Child {
        let host = try NighUser().start(
            ["host", "--name", "Puma", "--identity", "ephemeral", "--json-lines"] + arguments)
        try host.line(with: "\"listening\"")
        return host
    }

    /// Copies the plugin to `path`.
    func install(to path: String) throws {
        let copy = try Child("/bin/cp", [self.path, path])
        guard try copy.end().status == 0, chmod(path, 0o755) == 0 else {
            throw Child.Failure(description: "\(path) cannot be written")
        }
    }
}
