import ChildPrograms
import Foundation
import NighCore
import Testing

@testable import nigh

/// Tests `nigh errors`, and that it explains every cause.
@Suite(.callsPrograms) struct ErrorsTests {
    @Test func `Every kind of cause has an explanation, and no explanation is for another label`() {
        let labels = NighError.Cause.kinds.map(\.label)
        #expect(Set(labels).count == labels.count)
        let explained = Set(CauseExplanation.byLabel.keys)
        #expect(Set(labels).subtracting(explained).sorted() == [], "without an explanation")
        #expect(explained.subtracting(labels).sorted() == [], "no label of a cause")
        #expect(ErrorsCommand.causes.map(\.label) == labels)
    }

    @Test func `An explanation says what the cause means, and what helps, in whole sentences`() {
        for (label, explanation) in CauseExplanation.byLabel {
            for text in [explanation.meaning, explanation.help] {
                #expect(text.hasSuffix(".") && !text.contains("  ") && !text.contains("\n"), "\(label)")
            }
        }
    }

    @Test func `Every cause that the session counts is listed`() throws {
        let labels = ErrorsCommand.causes.map(\.label)
        // In Core's source, the first string after each case is its label.
        for source in ["CauseFacts.swift", "SecurityFault.swift"] {
            let table = try String(
                contentsOfFile: "\(BuiltPackages.root)/Sources/Core/Vocabulary/\(source)", encoding: .utf8
            )
            .components(separatedBy: "var facts: CauseFacts {")[1].components(separatedBy: "\n    }\n")[0]
            let cases = table.components(separatedBy: "        case .").dropFirst()
            #expect(cases.count > 10)
            for entry in cases where entry.contains("\"") {
                let label = entry.components(separatedBy: "\"")[1]
                #expect(labels.contains(label), "nothing is said about \(label)")
            }
        }
    }

    @Test func `The list of errors is available as text and as JSON`() throws {
        let user = NighUser()
        let words = try user.run("errors").lines
        #expect(
            words.contains("refused") && words.contains("not paired") && words.contains("  nigh help N56"))
        try user.run("errors --json")
        try user.run("errors --json-lines")
    }
}
