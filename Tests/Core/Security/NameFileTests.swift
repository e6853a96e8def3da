import NighTestKit
import Testing

@testable import NighCore

/// Tests the file with the display name that a user has chosen.
@Suite struct NameFileTests {
    private let folder = TemporaryFolder()

    @Test("What was kept is read again, and another name takes its place")
    func kept() throws {
        let file = NameFile(path: "\(folder.path)/name")
        #expect(try file.read() == nil)
        for text in ["Puma", "Лось im Wald"] {
            let name = try #require(DisplayName(exactly: text))
            try file.keep(name)
            #expect(try file.read() == name)
        }
        #expect(TemporaryFolder.mode(of: file.path) == 0o600)
    }

    @Test("The first line counts, as a person may have written it")
    func firstLine() throws {
        #expect(try NameFile(path: folder.file("a", "Puma")).read()?.description == "Puma")
        #expect(try NameFile(path: folder.file("b", "Puma\nor Lynx\n")).read()?.description == "Puma")
    }

    @Test(
        "What is no name is reported with what helps",
        arguments: ["\n", "\u{7}\n", "\(String(repeating: "x", count: 64))\n"])
    func noName(_ text: String) throws {
        let error = #expect(throws: NighError.self) { try NameFile(path: folder.file("name", text)).read() }
        #expect(error?.advice?.contains("remove it") == true)
    }

    @Test("A file that others may write is not believed")
    func writableByOthers() throws {
        let error = #expect(throws: NighError.self) {
            try NameFile(path: folder.file("name", "Puma\n", mode: 0o666)).read()
        }
        #expect(error?.advice?.hasPrefix("`chmod 600") == true)
    }
}
