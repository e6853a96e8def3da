import NighTestKit
import Testing

@testable import NighCore

/// Tests the file with the display name that a user has chosen.
@Suite struct NameFileTests {
    private let folder = TemporaryFolder()

    @Test("A saved name is read again, and a new name replaces it")
    func kept() throws {
        let file = NameFile(path: "\(folder.path)/name")
        #expect(try file.read() == nil)
        for text in ["Puma", "Лось im Wald"] {
            let name = try #require(DisplayName(exactly: text))
            try file.save(name)
            #expect(try file.read() == name)
        }
        #expect(TemporaryFolder.mode(of: file.path) == 0o600)
    }

    @Test("The first line is the name, with or without a line end")
    func firstLine() throws {
        #expect(try NameFile(path: folder.file("a", "Puma")).read()?.description == "Puma")
        #expect(try NameFile(path: folder.file("b", "Puma\nor Lynx\n")).read()?.description == "Puma")
        #expect(try NameFile(path: folder.file("c", "Puma\r\nor Lynx\r\n")).read()?.description == "Puma")
    }

    @Test(
        "An invalid name is reported with advice",
        arguments: ["\n", " \u{200B}\n", "\u{7}\n", "\(String(repeating: "x", count: 64))\n"])
    func noName(_ text: String) throws {
        let error = #expect(throws: NighError.self) { try NameFile(path: folder.file("name", text)).read() }
        #expect(error?.advice?.contains("remove it") == true)
    }

    @Test("A file that other users may write is not trusted")
    func writableByOthers() throws {
        let error = #expect(throws: NighError.self) {
            try NameFile(path: folder.file("name", "Puma\n", mode: 0o666)).read()
        }
        #expect(error?.advice?.hasPrefix("`chmod 600") == true)
    }
}
