import Foundation
import NighCore
import Testing

@testable import nigh

/// `nigh errors` and the guide behind it.
@Suite(.callsPrograms) struct ErrorsTests {
    private let user = NighUser()

    @Test("Every cause that the session counts under has words of its own, once")
    func complete() throws {
        let labels = CauseGuide.all.map(\.label)
        #expect(Set(labels).count == labels.count)
        for guide in CauseGuide.all {
            #expect(!guide.meaning.isEmpty && !guide.advice.isEmpty, "\(guide.label)")
        }
        // Each label stands in Core's source once, as what its case is counted under.
        let here = "\(#filePath)".split(separator: "/").dropLast(4).reduce("") { "\($0)/\($1)" }
        let sources = ["Vocabulary/NighError+Label.swift", "Vocabulary/SecurityFault.swift"]
        for source in sources {
            let text = try String(contentsOfFile: "\(here)/Sources/Core/\(source)", encoding: .utf8)
            let lines = text.split(separator: "\n").drop { !$0.contains("var label: String") }.prefix {
                $0 != "    }"
            }
            let found = lines.compactMap { line -> String? in
                guard line.contains("case ."), let quote = line.firstIndex(of: "\"") else { return nil }
                return String(line[line.index(after: quote)...].prefix { $0 != "\"" })
            }
            #expect(found.count > 10)
            for label in found { #expect(labels.contains(label), "nothing is said about \(label)") }
        }
    }

    @Test("The list is there in words, as JSON, and in the help")
    func shown() throws {
        let words = try user.run("errors")
        #expect(words.status == 0)
        #expect(words.lines.contains("refused") && words.lines.contains("not paired"))
        try user.run("errors", "--json").expectSchema("errors")
        try user.run("errors", "--json-lines").expectSchema("errors", lines: true)
        let help = try user.run("help", "errors").lines.joined(separator: " ")
        for guide in CauseGuide.all { #expect(help.contains("\(guide.label):"), "\(guide.label)") }
    }
}
