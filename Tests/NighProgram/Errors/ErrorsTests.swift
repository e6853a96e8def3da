import Foundation
import Testing

@testable import nigh

/// Tests `nigh errors` and its guide to all errors.
@Suite(.callsPrograms) struct ErrorsTests {
    private let user = NighUser()

    @Test("Every cause that the session counts has its own explanation, once")
    func complete() throws {
        let labels = ErrorsCommand.causes.map(\.label)
        #expect(Set(labels).count == labels.count)
        for cause in ErrorsCommand.causes {
            #expect(!cause.meaning.isEmpty && !cause.help.isEmpty, "\(cause.label)")
        }
        // In Core's source, the first string after each case is its label.
        let here = "\(#filePath)".split(separator: "/").dropLast(4).reduce("") { "\($0)/\($1)" }
        for source in ["CauseFacts.swift", "SecurityFault.swift"] {
            let path = "\(here)/Sources/Core/Vocabulary/\(source)"
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let table = text.components(separatedBy: "var facts: CauseFacts {")[1]
                .components(separatedBy: "\n    }\n")[0]
            let cases = table.components(separatedBy: "        case .").dropFirst()
            #expect(cases.count > 10)
            for entry in cases where entry.contains("\"") {
                let label = entry.components(separatedBy: "\"")[1]
                #expect(labels.contains(label), "nothing is said about \(label)")
            }
        }
    }

    @Test("The list is available as text, as JSON, and in the help")
    func shown() throws {
        let words = try user.run("errors")
        #expect(words.status == 0)
        #expect(words.lines.contains("refused") && words.lines.contains("not paired"))
        try user.run("errors", "--json").expectSchema("errors")
        try user.run("errors", "--json-lines").expectSchema("errors", lines: true)
        let help = try user.run("help", "errors").lines.joined(separator: " ")
        for label in ErrorsCommand.causes.map(\.label) { #expect(help.contains("\(label):"), "\(label)") }
    }
}
