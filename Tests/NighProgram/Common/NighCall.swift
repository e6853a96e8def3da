import ChildPrograms
import Foundation
import NighTestKit
import Synchronization
import Testing

/// A user of `nigh` in these tests, with a data folder of their own, so that no real identity or peers are touched.
final class NighUser {
    let folder = TemporaryFolder()
    /// The folder with the user's identity and peers.
    var dataFolder: String { "\(folder.path)/nigh" }

    var environment: [String: String] {
        ["XDG_DATA_HOME": folder.path, "XDG_CONFIG_HOME": folder.path, "NO_COLOR": ""]
    }

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
        let problems = try SchemaCheck.problems(
            of: lines, by: "\(BuiltPackages.root)/docs/reference/schemas/nigh-\(command).json",
            form: isLines ? "lines" : "object")
        #expect(problems == "[]", "\(lines)")
    }
}

/// The program `check-json`, which runs once for all tests.
private enum SchemaCheck {
    private struct Question: Encodable {
        let schema: String
        let form: String
        let lines: [String]
    }

    private struct Running {
        let program: Child
        var answered = 0

        mutating func ask(_ question: String) throws -> String {
            program.type(question)
            answered += 1
            return try program.line(with: "", occurrence: answered)
        }
    }

    private static let running = Mutex<Running?>(nil)

    /// Returns a JSON list of what is wrong with lines.
    static func problems(of lines: [String], by schema: String, form: String) throws -> String {
        let question = try JSONEncoder().encode(Question(schema: schema, form: form, lines: lines))
        return try running.withLock { running in
            let path = "\(BuiltPackages.root)/Tests/NighProgram/Common/check-json"
            var asked = try running ?? Running(program: Child(path, [], reads: true))
            defer { running = asked }
            return try asked.ask(String(decoding: question, as: UTF8.self))
        }
    }
}
