import ChildPrograms
import Foundation
import Synchronization
import Testing

/// The exit status and the output of a finished call of `nigh`.
struct NighCall {
    let status: Int32
    let lines: [String]
    let errors: [String]

    /// Waits until the program ends. Expects that its output as JSON, if that was asked for, is what
    /// `docs/reference/schemas/nigh-COMMAND.json` promises: this holds for every call in these tests.
    init(finishing child: Child) throws {
        (status, errors) = try child.end()
        lines = child.lines
        guard child.call[0] == "nigh", let form = child.call.first(where: { $0.hasPrefix("--json") }) else {
            return
        }
        // A program that is killed has no summary, and a wrong command line no result.
        guard status >= 0, !(status == 2 && lines.isEmpty) else { return }
        let command = summary["nigh"].string ?? child.call[1]
        let problems = try SchemaCheck.problems(
            of: lines, by: "\(BuiltPackages.root)/docs/reference/schemas/nigh-\(command).json",
            form: form == "--json" ? "object" : "lines")
        #expect(problems == "[]", "\(child.call): \(lines)")
    }

    /// All words on its standard error.
    var error: String { errors.joined(separator: "\n") }
    /// The single object that `--json` prints.
    var json: JSONValue { JSONValue(lines.first ?? "") }
    /// The objects that `--json-lines` prints.
    var objects: [JSONValue] { lines.map { JSONValue($0) } }
    /// The last one of them.
    var summary: JSONValue { JSONValue(lines.last ?? "") }

    /// The objects of a type.
    func objects(_ type: String) -> [JSONValue] { objects.filter { $0["type"].string == type } }
}

/// A value in the JSON of a program. Whatever is not there has only nil in it.
struct JSONValue: CustomStringConvertible {
    private let value: Any?

    private init(value: Any?) { self.value = value }

    /// Reads a line; a text that is no JSON becomes a value with nothing in it.
    init(_ line: String) { value = try? JSONSerialization.jsonObject(with: Data(line.utf8)) }

    subscript(name: String) -> JSONValue { JSONValue(value: (value as? [String: Any])?[name]) }
    subscript(index: Int) -> JSONValue { index < list.count ? list[index] : JSONValue(value: nil) }

    var string: String? { value as? String }
    var int: Int? { value as? Int }
    var double: Double? { value as? Double }
    var bool: Bool? { value as? Bool }
    var isNull: Bool { value is NSNull }
    var isObject: Bool { value is [String: Any] }
    /// The values of an array; empty if it is none.
    var list: [JSONValue] { (value as? [Any] ?? []).map { JSONValue(value: $0) } }
    var strings: [String] { list.compactMap(\.string) }
    var description: String { value.map { "\($0)" } ?? "nothing" }
}

/// The program `check-json`, which runs once for all tests and is independent of Nigh.
private enum SchemaCheck {
    private struct Question: Encodable {
        let schema: String
        let form: String
        let lines: [String]
    }

    private static let running = Mutex<(program: Child, asked: Int)?>(nil)

    /// Returns a JSON list of what is wrong with lines.
    static func problems(of lines: [String], by schema: String, form: String) throws -> String {
        let question = try JSONEncoder().encode(Question(schema: schema, form: form, lines: lines))
        return try running.withLock { running in
            let path = "\(BuiltPackages.root)/Tests/NighProgram/Common/check-json"
            let program = try running?.program ?? Child(path, [], reads: true)
            let asked = (running?.asked ?? 0) + 1
            running = (program, asked)
            program.type(String(decoding: question, as: UTF8.self))
            return try program.line(occurrence: asked) { _ in true }
        }
    }
}
