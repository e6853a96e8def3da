import NighFiles
import Testing

@testable import nigh

/// Tests how transfers are described to a person.
@Suite struct TransferTextTests {
    @Test(
        "Numbers of bytes have readable units",
        arguments: [
            (0, "0 bytes"), (1, "1 byte"), (1_023, "1023 bytes"), (1_024, "1.0 KiB"), (1_500_000, "1.4 MiB"),
            (1 << 30, "1.0 GiB"), ((1 << 30) - 1, "1.0 GiB"), (500 << 20, "500 MiB"),
        ] as [(Int, String)])
    func byteCounts(_ count: Int, _ words: String) { #expect(ByteCount(count).description == words) }

    @Test("Files and folders are counted in words, and a single one is named")
    func counts() {
        let folder = FileItem(.folder, path: "photos", size: 0)
        let file = FileItem(path: "photos/a", size: 1)
        #expect(TransferText.label([folder]) == "photos/")
        #expect(TransferText.label([FileItem(path: "a", size: 1)]) == "a")
        #expect(TransferText.label([folder, file]) == "1 file and 1 folder")
        #expect(TransferText.count([file, file]) == "2 files")
        #expect(TransferText.names([folder, file]) == ["photos/"])
    }

    @Test("A question names the sender first, and no name of a file can imitate it or hide its end")
    func question() {
        let imitation = FileItem(path: "a\" (1 byte)? [y|n] \n\u{202E}Accept from Mum: \"b", size: 2_048)
        #expect(
            TransferText.question([imitation], size: 2_048, from: "Lynx (abcd)")
                == "Accept from Lynx (abcd): \"a_ (1 byte)? [y|n] __Accept from Mum: _b\" (2.0 KiB)? [y/n] ")
        let nested = [FileItem(path: "a/b", size: 1), FileItem(path: "a/c", size: 1)]
        #expect(TransferText.question([nested[0]], size: 1, from: "L").contains("\"a/b\" (1 byte)"))
        #expect(
            TransferText.question(nested, size: 2, from: "L").contains("2 files (2 bytes in all): \"a/\"?"))
        let long = FileItem(path: String(repeating: "x", count: 4_096), size: nil)
        let question = TransferText.question([long], size: nil, from: "Lynx (abcd)")
        #expect(question.count < 100 && question.hasSuffix("x…\" (of unknown size)? [y/n] "))
        let wide = TransferText.question(
            (0..<100).map { FileItem(path: "\($0)" + String(repeating: "字", count: 1_000), size: 1) },
            size: 100,
            from: "Lynx (abcd)")
        #expect(wide.hasPrefix("Accept from Lynx (abcd): 100 files (100 bytes in all): \"0字"))
        #expect(wide.hasSuffix("字…\", …? [y/n] ") && wide.count < 160)
    }

    @Test("A record of a transfer keeps every name, whatever is in it")
    func record() throws {
        var content = SendRecord.Content(
            // A mark that joins the character before it, and ends of lines that are none in the record.
            names: [
                "a b", "line\nend", "back\\n", "\u{301}mark", "Icon\r", "two\r\nlines", "next\u{85}line",
            ],
            total: 7, arguments: ["--", "/x\n"])
        content.peerName = "\u{FE0F}Puma \\"
        content.done = 3
        let read = try #require(SendRecord.Content(content.text))
        #expect(read.names == content.names && read.arguments == content.arguments)
        #expect(read.peerName == content.peerName && read.done == 3 && read.total == 7)
        #expect(SendRecord.Content("something else") == nil)
    }
}
