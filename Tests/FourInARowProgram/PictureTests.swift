import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// Tests the pictures of terminals that the README and the docs show.
struct PictureTests {
    private static let folder = "\(BuiltPackages.root)/docs/guides/pictures"
    private static let columnWidth = 9
    private static let margin = 12

    /// A text in a picture: its first column, the number of columns it is stretched to, and its words.
    private struct Text: Equatable {
        let column: Int
        let columns: Int
        let words: String

        init(_ column: Int, _ columns: Int, _ words: String) {
            (self.column, self.columns, self.words) = (column, columns, words)
        }

        /// Returns all texts of a picture, with XML escapes decoded.
        static func all(of picture: String) -> [Text] {
            picture.matches(of: #/<text x="(\d+)"[^>]* textLength="(\d+)"[^>]*>([^<]*)</text>/#).map {
                let words = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&amp;", "&")]
                    .reduce(String($0.3)) { $0.replacing($1.0, with: $1.1) }
                return Text((Int($0.1)! - margin) / columnWidth, Int($0.2)! / columnWidth, words)
            }
        }
    }

    @Test func `A browser that drops spaces draws every word of the pictures at its own width`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder).filter {
            $0.hasSuffix(".svg")
        }
        #expect(names.count > 5)
        for name in names {
            let picture = try String(contentsOfFile: "\(Self.folder)/\(name)", encoding: .utf8)
            let texts = Text.all(of: picture)
            #expect(texts.count > 5 && texts.count == picture.components(separatedBy: "<text").count - 1)
            for text in texts {
                let shown = text.words.split(separator: " ").joined(separator: " ")
                #expect(text.columns == shown.unicodeScalars.count, "\(name): \"\(text.words)\"")
            }
        }
    }

    @Test func `A picture is outdated once no program says its words, and by no other change of the sources`()
        throws
    {
        let folder = TemporaryFolder()
        for name in ["Sources/Tools", "docs/guides/pictures"] {
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(name)", withIntermediateDirectories: true)
        }
        func write(_ text: String, _ path: String) throws {
            try text.write(toFile: "\(folder.path)/\(path)", atomically: true, encoding: .utf8)
        }
        /// Returns what the script says about these sources.
        func complaints(_ source: String) throws -> [String] {
            try write(source, "Sources/Tools/a.swift")
            let call = try Child("\(Self.folder)/outdated", ["--root", folder.path])
            #expect(try call.end().status == 0)
            return call.lines
        }
        try write("name = \"Puma\"\n", "docs/guides/pictures/record")
        let texts = [
            "$ nigh bogus now", "puma$ while sl", "Puma was back after 1.2 s, over tcp",
            "abcdefg2 &lt;was&gt; /tmp/x-y gone",
        ]
        let picture = texts.map { "<text x=\"0\">\($0)</text>\n" }.joined()
        try write("<svg>\(picture)</svg>\n", "docs/guides/pictures/one.svg")
        let source =
            #"enum Way { case tcp }; let a = "\(name) was \(b ? "back" : "gone") after \(time) s, over \(way)""#
        #expect(try complaints(source) == [])
        #expect(try complaints("// \"It says\" more.\nfunc f() {}\n" + source) == [])
        #expect(
            try complaints(source.replacing(" was ", with: " has come "))
                == [#"one.svg shows "Puma was""#])
    }

    @Test func `A word of a terminal stands at its column, however many spaces are around it`() throws {
        let folder = TemporaryFolder()
        let (capture, picture) = ("\(folder.path)/screen.txt", "\(folder.path)/screen.svg")
        try "   two words    <5>  \u{1B}[1m 5 \u{1B}[0m  end  \n\u{1B}[7m      \u{1B}[0m é  日本  x\n".write(
            toFile: capture, atomically: true, encoding: .utf8)
        let call = try Child("\(Self.folder)/render", [capture, picture])
        let (status, errors) = try call.end()
        #expect(status == 0, "\(errors)")
        #expect(
            try Text.all(of: String(contentsOfFile: picture, encoding: .utf8)) == [
                Text(3, 9, "two words"), Text(16, 3, "<5>"), Text(22, 1, "5"), Text(26, 3, "end"),
                Text(7, 1, "é"), Text(10, 2, "日"), Text(12, 2, "本"), Text(16, 1, "x"),
            ])
    }
}
