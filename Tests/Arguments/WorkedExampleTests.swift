import Glibc
import Testing

@testable import Arguments

@Suite("The worked example")
struct WorkedExampleTests {
    @Test("The module's comment contains the code that is compiled and tested here, word for word")
    func isTrue() throws {
        let here = #filePath
        let root = here.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
        let comment = try contents(of: "\(root)/Sources/Tools/Arguments/Program.swift")
        let shown = comment.split(separator: "\n").filter { $0.hasPrefix("///") }.map { $0.dropFirst(3) }
            .split { $0 == " ```" }
        let compiled = try contents(of: "\(root)/Tests/Arguments/WorkedExample.swift").split(separator: "\n")
            .dropFirst(2)
        #expect(shown[1].filter { !$0.isEmpty }.map { String($0.dropFirst()) } == compiled.map(String.init))
    }

    @Test("It does what the comment says")
    func works() {
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

    private func contents(of path: String) throws -> String {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 100_000)
        let count = fread(&buffer, 1, buffer.count, file)
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }
}
