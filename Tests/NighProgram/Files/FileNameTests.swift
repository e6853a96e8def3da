import Glibc
import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests the file names that peers send, and the places where such files are stored.
@Suite(.callsPrograms) struct FileNameTests {
    @Test(
        "A name stays inside the folder, is visible, and is harmless",
        arguments: [
            ("holiday.mov", "holiday.mov"), ("../x", "x"), ("/etc/passwd", "passwd"), ("..", "unnamed"),
            (".", "unnamed"), ("/", "unnamed"), ("", "unnamed"), ("a/..", "unnamed"), (".bashrc", "bashrc"),
            ("...", "unnamed"), ("a\u{0}b", "a_b"), ("a\nb\u{1B}[2J", "a_b_[2J"),
            ("\u{202E}fdp.exe", "_fdp.exe"),
            ("a\\b", "a_b"), ("  x  ", "x"), (" .x", "x"), ("\u{0}", "unnamed"),
            ("naïve ☃.txt", "naïve ☃.txt"), ("a.part", "a.part_"), ("A.Part.NIGH", "A.Part.NIGH_"),
            ("a.parts", "a.parts"), (".part", "part"),
        ] as [(String, String)])
    func names(_ announced: String, _ name: String) {
        #expect(SafeFileName(announced).text == name)
    }

    @Test("A name that is too long keeps its extension, and leaves room for a suffix")
    func long() {
        let name = SafeFileName(String(repeating: "ä", count: 400) + ".tar").numbered(999)
        #expect(name.text.hasSuffix("ä (999).tar"))
        #expect(name.note.utf8.count <= 255)
        #expect(SafeFileName("a." + String(repeating: "x", count: 400)).note.utf8.count <= 255)
    }

    @Test("Numbers are placed before the extension")
    func numbers() {
        #expect(SafeFileName("a.txt").numbered(2).text == "a (2).txt")
        #expect(SafeFileName("a").numbered(3).text == "a (3)")
        #expect(SafeFileName("a").numbered(1).text == "a")
    }

    // MARK: In a folder

    private let temporary = TemporaryFolder()
    private let sender = Identity.ephemeral().peerID
    private let other = Identity.ephemeral().peerID

    private func path(_ name: String) -> String { "\(temporary.path)/\(name)" }

    private func folder() throws -> ReceivingFolder { try ReceivingFolder(temporary.path) }

    private func exists(_ name: String) -> Bool { access(path(name), F_OK) == 0 }

    private func make(_ name: String, _ text: String) {
        let descriptor = open(path(name), O_WRONLY | O_CREAT | O_EXCL, 0o600)
        let bytes = Array(text.utf8)
        _ = write(descriptor, bytes, bytes.count)
        close(descriptor)
    }

    private func text(_ name: String) -> String {
        let descriptor = open(path(name), O_RDONLY)
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = read(descriptor, &bytes, 100)
        return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }

    @Test("A partial file is resumed by the same sender only")
    func resumption() throws {
        let folder = try folder()
        var part: PartFile? = try folder.part(SafeFileName("f"), size: 6, from: sender, replacing: false)
        try part?.append(ByteSlice(Array("abc".utf8)))
        // While a part is being written, it belongs to one transfer only.
        let second = try folder.part(SafeFileName("f"), size: 6, from: sender, replacing: false)
        #expect(second.label == "f (2)")
        part = nil
        #expect(text("f.part") == "abc")

        let strangers = try folder.part(SafeFileName("f"), size: 6, from: other, replacing: false)
        #expect(strangers.label == "f (3)")
        let longer = try folder.part(SafeFileName("f"), size: 7, from: sender, replacing: false)
        #expect(longer.label == "f (4)")

        let again = try folder.part(SafeFileName("f"), size: 6, from: sender, replacing: false)
        while try again.readBack() {}
        #expect(again.label == "f" && again.count == 3)
        try again.resume(at: 3)
        try again.append(ByteSlice(Array("def".utf8)))
        #expect(try again.keep() == path("f"))
        #expect(text("f") == "abcdef" && !exists("f.part") && !exists("f.part.nigh"))
    }

    @Test("An existing file is never changed unless requested; then it is replaced whole")
    func existing() throws {
        make("f.txt", "old")
        let folder = try folder()
        let part = try folder.part(SafeFileName("f.txt"), size: 3, from: sender, replacing: false)
        try part.append(ByteSlice(Array("new".utf8)))
        #expect(try part.keep() == path("f (2).txt"))
        #expect(text("f.txt") == "old" && text("f (2).txt") == "new")

        let late = try folder.part(SafeFileName("g"), size: 3, from: sender, replacing: false)
        try late.append(ByteSlice(Array("new".utf8)))
        make("g", "came meanwhile")
        #expect(try late.keep() == path("g (2)"))
        #expect(text("g") == "came meanwhile")

        let replacing = try folder.part(SafeFileName("f.txt"), size: 4, from: sender, replacing: true)
        try replacing.append(ByteSlice(Array("more".utf8)))
        #expect(try replacing.keep() == path("f.txt"))
        #expect(text("f.txt") == "more")
    }

    @Test("Links that somebody put into the folder are not followed", arguments: [false, true])
    func links(_ replaces: Bool) throws {
        let elsewhere = TemporaryFolder()
        let target = "\(elsewhere.path)/target"
        for name in ["a", "b.part", "c.part.nigh"] { symlink(target, path(name)) }
        make("other", "other")
        link(path("other"), path("d.part"))
        mkfifo(path("e.part"), 0o600)
        let folder = try folder()
        for name in ["a", "b", "c", "d", "e"] {
            let part = try folder.part(SafeFileName(name), size: 1, from: sender, replacing: replaces)
            try part.append(ByteSlice([65]))
            let kept = try part.keep()
            #expect(kept == path(replaces && name == "a" ? "a" : "\(name) (2)"))
        }
        #expect(access(target, F_OK) != 0)
        #expect(text("other") == "other")
        // The link was replaced, not followed.
        if replaces { #expect(text("a") == "A") }
    }

    @Test(
        "Two partial files of one name become two files, each with its own bytes", arguments: [false, true])
    func twoOfOneName(_ replaces: Bool) throws {
        let folder = try folder()
        let first = try folder.part(SafeFileName("f"), size: nil, from: sender, replacing: replaces)
        let second = try folder.part(SafeFileName("f"), size: nil, from: other, replacing: replaces)
        try first.append(ByteSlice(Array("first".utf8)))
        try second.append(ByteSlice(Array("second".utf8)))
        let places = [try second.keep(), try first.keep()]
        #expect(places == [path("f (2)"), path("f")])
        #expect(text("f") == "first" && text("f (2)") == "second")
    }

    @Test("If another program replaced a partial file, its file keeps its name, and the transfer fails")
    func partReplaced() throws {
        let folder = try folder()
        for (name, replaces) in [("f", false), ("g", true)] {
            let part = try folder.part(SafeFileName(name), size: 1, from: sender, replacing: replaces)
            try part.append(ByteSlice([65]))
            unlink(path("\(name).part"))
            make("\(name).part", "of another program")
            #expect(part.remains == nil)
            #expect(throws: FileFailure.self) { try part.keep() }
            part.discard()
            #expect(text("\(name).part") == "of another program" && !exists(name))
        }
    }

    @Test("It is detected that another program had a partial file open, whatever it did")
    func opened() throws {
        let folder = try folder()
        for mode in [O_RDONLY, O_WRONLY] {
            let part = try folder.part(SafeFileName("f"), size: 1, from: sender, replacing: true)
            try part.append(ByteSlice([65]))
            #expect(part.isUntouched)
            // A non-blocking open of the leased file fails the first time, and succeeds when it is repeated.
            #expect(open(path("f.part"), mode | O_NONBLOCK) < 0 && errno == EWOULDBLOCK)
            #expect(!part.isUntouched)
            let descriptor = open(path("f.part"), mode | O_NONBLOCK)
            #expect(descriptor >= 0)
            close(descriptor)
            #expect(!part.isUntouched)
            part.rewind()
            while try part.readBack() {}
            #expect(part.hash == [UInt8(65)].withUnsafeBytes { SHA256.hash($0) })
            _ = try part.keep()
        }
    }

    @Test("Even with a matching note, no link and no second name of another file is opened")
    func plantedParts() throws {
        make("other", "other")
        for (name, plant) in [("x", link), ("y", symlink)] {
            make("\(name).part.nigh", PartNote(sender: sender, name: name, size: 1).text)
            _ = plant(path("other"), path("\(name).part"))
            let part = try folder().part(SafeFileName(name), size: 1, from: sender, replacing: false)
            #expect(part.label == "\(name) (2)")
            try part.append(ByteSlice([65]))
        }
        #expect(text("other") == "other")
    }

    @Test("A transfer given up before its first byte leaves no file; received files are not executable")
    func traces() throws {
        var part: PartFile? = try folder().part(SafeFileName("f"), size: 1, from: sender, replacing: false)
        #expect(exists("f.part"))
        var about = stat()
        #expect(stat(path("f.part"), &about) == 0 && about.st_mode & 0o111 == 0)
        withExtendedLifetime(part) {}
        part = nil
        #expect(!exists("f.part") && !exists("f.part.nigh"))
    }

    @Test(
        "Numbers of bytes have readable units",
        arguments: [
            (0, "0 bytes"), (1, "1 byte"), (1_023, "1023 bytes"), (1_024, "1.0 KiB"), (1_500_000, "1.4 MiB"),
            (1 << 30, "1.0 GiB"), ((1 << 30) - 1, "1.0 GiB"), (500 << 20, "500 MiB"),
        ] as [(Int, String)])
    func byteCounts(_ count: Int, _ words: String) { #expect(ByteCount(count).description == words) }
}
