import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// A user of `nigh` in these tests, with a data folder of their own, so that no real identity or peers are touched.
final class NighUser {
    let folder = TemporaryFolder()
    /// The folder with the user's identity and peers.
    var dataFolder: String { "\(folder.path)/nigh" }

    var environment: [String: String] { ["XDG_DATA_HOME": folder.path, "NO_COLOR": ""] }

    func start(_ arguments: String..., reads: Bool = false) throws -> Child {
        try Child("nigh", arguments, environment: environment, reads: reads)
    }

    /// Runs `nigh` with these arguments until it ends.
    func run(_ arguments: String...) throws -> NighCall { try run(arguments) }

    func run(_ arguments: [String]) throws -> NighCall { try NighCall(finishing: start(arguments)) }

    func start(_ arguments: [String], reads: Bool = false, patience: Int = 60) throws -> Child {
        try Child("nigh", arguments, environment: environment, reads: reads, patience: patience)
    }
}

/// The exit status and the output of a finished call of `nigh`.
struct NighCall {
    let status: Int32
    let lines: [String]
    let errors: [String]

    /// Waits until the program ends.
    init(finishing child: Child) throws {
        let (status, errors) = try child.end()
        self.status = status
        self.errors = errors
        lines = child.lines
    }

    /// The single object that `--json` prints.
    func object() throws -> [String: Any] { try #require(try Self.object(lines.first ?? "")) }

    /// The objects that `--json-lines` prints.
    func objects() throws -> [[String: Any]] {
        try lines.map { try #require(try Self.object($0), "\($0)") }
    }

    private static func object(_ line: String) throws -> [String: Any]? {
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    }

    /// Expects that the output is valid by `docs/reference/schemas/nigh-COMMAND.json`. An independent program checks
    /// it.
    func expectSchema(_ command: String, lines isLines: Bool = false) throws {
        let here = "\(#filePath)".split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
        let schema = "\(BuiltPackages.root)/docs/reference/schemas/nigh-\(command).json"
        let check = try Child(
            "\(here)/check-json", [schema, isLines ? "lines" : "object"], reads: true)
        for line in lines { check.type(line) }
        check.closeInput()
        let (status, errors) = try check.end()
        #expect(status == 0, "\(check.lines.joined(separator: "\n"))\n\(errors)\n\(lines)")
    }
}
