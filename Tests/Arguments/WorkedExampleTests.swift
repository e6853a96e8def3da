import NighTestKit
import Testing

@testable import Arguments

@Suite("The worked example")
struct WorkedExampleTests {
    @Test func `The module's comment contains the code that is compiled and tested here, word for word`() {
        func lines(of path: String) -> [Substring] { RepositoryFile.text(of: path).split(separator: "\n") }
        let shown = lines(of: "Sources/Tools/Arguments/Program.swift").filter { $0.hasPrefix("///") }
            .map { $0.dropFirst(3) }.split { $0 == " ```" }
        let compiled = lines(of: "Tests/Arguments/WorkedExample.swift").dropFirst(2)
        #expect(shown[1].filter { !$0.isEmpty }.map { $0.dropFirst() } == Array(compiled))
    }

    @Test func `It does what the comment says`() {
        #expect(game.problems == [])
        #expect(answer(["host", "--columns", "9", "-nPuma"]) == "Puma hosts, 9 wide")
        #expect(answer(["host"]) == "? hosts, 7 wide")
        #expect(answer(["join", "--transport=memory", "Lynx"]) == "joins Lynx")
        #expect(answer(["--version"]) == "connect 1.0\n")
        #expect(answer(["host", "--help"]).hasPrefix("usage: connect host [--name NAME]"))
        #expect(
            answer(["host", "--colums", "9"])
                == "connect: there is no option --colums: did you mean --columns? (see connect host --help)")
    }
}
