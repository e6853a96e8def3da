import NighCore
import Testing

@testable import NighFiles

/// Tests the text of the note that says what is left of a transfer.
@Suite struct NoteContentTests {
    private let sender = Identity.ephemeral().peerID
    private let hash = [UInt8](0..<32)

    private func parsed(_ text: String) -> NoteContent? { NoteContent(Array(text.utf8)[...]) }

    private func header(_ name: String) -> NoteContent.Header {
        NoteContent.Header(sender: sender, name: name, final: name)
    }

    @Test(arguments: [
        "f", "", " a  b ", "a\nb", "a\r\nb", "\\x0a", "\u{0}\u{1B}[2J", "\u{202E}\u{85}\u{2028}",
        "naïve ☃",
        "x\nsender y\nname z\nkept 0 00 00 00",
    ])
    func `Names come back as they were, and none makes a line of its own`(_ name: String) throws {
        let kept = NoteContent.Kept(size: 3, hash: hash, path: name)
        let text =
            NoteContent.text(header(name)) + NoteContent.text(.kept(key: "k", kept))
            + NoteContent.text(.folder(key: "d", path: name))
            + NoteContent.text(.moving(key: "m", file: .max, path: name))
        #expect(text.utf8.filter { $0 == 10 }.count == 7)
        let content = try #require(parsed(text))
        #expect(content.header == header(name))
        #expect(content.header.name.unicodeScalars.elementsEqual(name.unicodeScalars))
        #expect(content.kept == ["k": kept])
        #expect(content.folder("d") == name)
        #expect(content.moving["m"]?.file == .max && content.moving["m"]?.path == name)
    }

    @Test func `A later line takes the place of an earlier one with the same key`() throws {
        let content = try #require(
            parsed(
                NoteContent.text(header("f")) + NoteContent.text(.folder(key: "d", path: "a"))
                    + NoteContent.text(.folder(key: "d", path: "b"))))
        #expect(content.folder("d") == "b")
    }

    @Test(arguments: [
        "kept", "kept 3 00 k f", "kept -1 \([UInt8](0..<32).hexadecimal) k f", "moving x k f", "folder d",
        "folder d \\", "folder d \\x", "folder d \\xg0", "folder d \\xff", "other", "\0\0\0",
    ])
    func `A damaged line is ignored`(_ line: String) throws {
        let content = try #require(parsed(NoteContent.text(header("f")) + line + "\n"))
        #expect(content.kept.isEmpty && content.folders.isEmpty && content.moving.isEmpty)
    }

    @Test func `Only a whole header is one`() {
        let lines = NoteContent.text(header("f")).split(separator: "\n")
        for left in lines.indices {
            var rest = lines
            rest.remove(at: left)
            #expect(parsed(rest.map { "\($0)\n" }.joined()) == nil)
        }
    }
}
