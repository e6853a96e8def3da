import Testing

@testable import NighFiles

/// Tests the names of files that peers send.
@Suite struct SafeFileNameTests {
    @Test(
        arguments: [
            ("holiday.mov", "holiday.mov"), ("../x", "x"), ("/etc/passwd", "passwd"), ("..", "unnamed"),
            (".", "unnamed"), ("/", "unnamed"), ("", "unnamed"), ("a/..", "unnamed"), (".bashrc", "bashrc"),
            ("...", "unnamed"), ("a\u{0}b", "a_b"), ("a\nb\u{1B}[2J", "a_b_[2J"),
            ("\u{202E}fdp.exe", "_fdp.exe"),
            ("a\\b", "a_b"), ("  x  ", "x"), (" .x", "x"), ("\u{0}", "unnamed"),
            ("naïve ☃.txt", "naïve ☃.txt"), ("a.part", "a.part_"), ("A.Part.NIGH", "A.Part.NIGH_"),
            ("a.parts", "a.parts"), (".part", "part"),
            // A combining character joins what is before it to one character of Swift.
            ("../\u{301}x", "\u{301}x"), ("/\u{301}/\u{301}x", "\u{301}x"), (".\u{301}x", "\u{301}x"),
        ] as [(String, String)])
    func `A name stays inside the folder, is visible, and is harmless`(_ announced: String, _ name: String) {
        #expect(SafeFileName(announced).text.unicodeScalars.elementsEqual(name.unicodeScalars))
    }

    @Test func `A name that is too long keeps its extension, and leaves room for a suffix`() {
        let name = SafeFileName(String(repeating: "ä", count: 400) + ".tar").numbered(999)
        #expect(name.text.hasSuffix("ä (999).tar"))
        #expect(name.part.utf8.count <= 255)
        #expect(SafeFileName("a." + String(repeating: "x", count: 400)).part.utf8.count <= 255)
    }

    @Test func `A name that is one long character is cut, and does not vanish`() {
        let name = SafeFileName("a" + String(repeating: "\u{301}", count: 300) + ".tar").text
        #expect(name.unicodeScalars.first == "a")
        #expect(name.hasSuffix(".tar") && name.utf8.count <= 200)
    }

    @Test func `Numbers are placed before the extension`() {
        #expect(SafeFileName("a.txt").numbered(2).text == "a (2).txt")
        #expect(SafeFileName("a").numbered(3).text == "a (3)")
        #expect(SafeFileName("a").numbered(1).text == "a")
    }

    @Test(
        arguments: [
            ("a (2).txt", "a.txt", 2), ("a (12)", "a", 12), ("a (1)", nil, 0), ("a (02)", nil, 0),
            ("a (1000)", nil, 0), ("a(2)", nil, 0), ("a (2) b", nil, 0), (")", nil, 0),
        ] as [(String, String?, Int)])
    func `Only a number that numbering can have added is removed`(_ text: String, base: String?, number: Int)
    {
        let found = SafeFileName.unnumbered(text)
        #expect(found?.base == base && found?.number ?? 0 == number)
    }
}
