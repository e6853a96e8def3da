import ChildPrograms
import Foundation
import Glibc
import NighCore
import NighTestKit
import Testing

/// Tests which files are refused as plugins, and how `nigh` reports it.
@Suite("A plugin is refused", .callsPrograms) struct PluginRefusalTests {
    private let user = NighUser()
    private let folder = TemporaryFolder()
    private var path: String { "\(folder.path)/odd.so" }

    /// Returns the error of `nigh` about the file at `path`. Expects one sentence, and the status of a wrong call.
    private func refusal(of path: String? = nil) throws -> String {
        let path = path ?? self.path
        let call = try user.run("transports", "--plugin", path)
        #expect(call.status == 2 && call.lines.isEmpty)
        let errors = call.errors.filter { $0 != "its code has run" }
        #expect(errors.count == 1, "\(errors)")
        let words = errors.first ?? ""
        #expect(words.contains(path) && words.contains("loading a plugin: "), "\(words)")
        return words
    }

    struct Wrong: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let library: ForeignLibrary
        let words: [String]

        init(_ what: String, _ defines: [String: String], hasEntry: Bool = true, says words: String...) {
            testDescription = what
            library = ForeignLibrary(defines: defines, hasEntry: hasEntry)
            self.words = words
        }
    }

    static let wrong = [
        Wrong(
            "of another version of the plugin interface", ["INTERFACE": "2"],
            says: "version 2 of the plugin interface", "this program version 1", "rebuild"),
        Wrong(
            "built by another toolchain", ["TOOLCHAIN": "\"Clang 1.0\""],
            says: "another Swift toolchain (Clang 1.0)",
            "rebuild"),
        Wrong(
            "built for another Nigh", ["FINGERPRINT": "\"1234567812345678\""],
            says: "another Nigh (version 0.2.0, interface 1234567812345678)", "rebuild"),
        Wrong(
            "that has a Nigh of its own", ["OTHER_MARK": "1"], says: "its own copy of Nigh", "NighShared"
        ),
        Wrong(
            "whose entry is missing", [:], hasEntry: false, says: "does not export nigh_transport_plugin"),
        Wrong("that describes nothing", ["NOTHING": "1"], says: "does not describe itself"),
        Wrong("that offers nothing", [:], says: "provides no transport"),
        Wrong("with impossible times", ["LATENCY": "__builtin_nan(\"\")"], says: "the times that it states"),
        Wrong(
            "that needs more than there is", ["NEEDS": "nigh_of_tomorrow"],
            says: "needs nigh_of_tomorrow, which this program does not have", "rebuild"),
    ]

    @Test("that is an unusable library", arguments: wrong)
    func library(_ wrong: Wrong) throws {
        try wrong.library.build(to: path)
        let words = try refusal()
        for expected in wrong.words { #expect(words.contains(expected), "\(words)") }
    }

    @Test("that is not a library")
    func noLibrary() throws {
        for content in ["", "a text of some length, which nobody will take for a library, whatever its name"]
        {
            try write(content)
            #expect(try refusal().contains("it is not a library"))
        }
        unlink(path)
        #expect(try refusal().contains("No such file"))
        mkdir(path, 0o700)
        #expect(try refusal().contains("it is not a regular file"))
        #expect(try refusal(of: BuiltPrograms.path(of: "nigh")).contains("it cannot be loaded: "))
    }

    @Test("that is cut off anywhere, and none of it runs")
    func cutOff() throws {
        try ForeignLibrary().build(to: path)
        #expect(try refusal().contains("provides no transport"))
        let whole = try bytes()
        let sizes = Array(stride(from: 0, to: whole.count, by: whole.count / 40)) + [63, 64, whole.count - 1]
        for size in sizes {
            try write(whole[..<size])
            let call = try user.run("transports", "--plugin", path)
            #expect(
                call.status == 2 && call.errors.count == 1, "\(size) bytes: \(call.status) \(call.errors)")
            let words = call.errors.first ?? ""
            #expect(words.contains(size < 64 ? "it is not a library" : "cut off"), "\(size) bytes: \(words)")
        }
    }

    /// A damaged header can crash the loader and the program with it, so each is tried in a process of its own.
    @Test("whose headers are damaged, unless that has no effect", arguments: 1...4)
    func damagedHeaders(seed: Int) throws {
        try ForeignLibrary().build(to: path)
        let whole = try bytes()
        let places = headers(of: whole)
        var generator = SeededGenerator(seed: UInt64(seed))
        for _ in 0..<30 {
            var damaged = whole
            let place = places.randomElement(using: &generator) ?? 0
            damaged[place] ^= UInt8.random(in: 1...255, using: &generator)
            try write(damaged[...])
            let words = try refusal()
            #expect(words.contains("is refused: "), "byte \(place) as \(damaged[place]): \(words)")
        }
    }

    /// The positions of the header, the program and section headers, and the dynamic section.
    private func headers(of library: [UInt8]) -> [Int] {
        func number(_ offset: Int, _ count: Int) -> Int {
            (0..<count).reduce(0) { $0 | Int(library[offset + $1]) << (8 * $1) }
        }
        let programs = (0..<number(56, 2)).map { number(32, 8) + 56 * $0 }
        let sections = number(40, 8)..<(number(40, 8) + 64 * number(60, 2))
        let dynamic = programs.filter { number($0, 4) == 2 }.flatMap { program in
            number(program + 8, 8)..<(number(program + 8, 8) + number(program + 32, 8))
        }
        return Array(0..<64) + programs.flatMap { $0..<($0 + 56) } + Array(sections) + dynamic
    }

    private func bytes() throws -> [UInt8] { try [UInt8](Data(contentsOf: URL(filePath: path))) }

    private func write(_ bytes: ArraySlice<UInt8>) throws { try Data(bytes).write(to: URL(filePath: path)) }

    @Test("that other users may write, and none of it runs")
    func writableByOthers() throws {
        try ForeignLibrary().build(to: path)
        for mode: mode_t in [0o722, 0o720, 0o702] {
            chmod(path, mode)
            let call = try user.run("transports", "--plugin", path)
            #expect(call.errors.count == 1, "\(call.errors)")
            #expect(
                call.errors.first?.contains(
                    "others may write it (mode \(String(mode, radix: 8))); `chmod go-w \(path)`")
                    == true, "\(call.errors)")
        }
        chmod(path, 0o755)
        chmod(folder.path, 0o777)
        #expect(try refusal().contains("others may write its folder (mode 777)"))
        // A link in another folder does not help either.
        let elsewhere = TemporaryFolder()
        symlink(path, "\(elsewhere.path)/odd.so")
        #expect(
            try refusal(of: "\(elsewhere.path)/odd.so").contains("others may write its folder (mode 777)"))
        // A user who can rename the folder of the plugin can replace the plugin.
        let inner = "\(folder.path)/inner"
        mkdir(inner, 0o700)
        try #require(rename(path, "\(inner)/odd.so") == 0)
        #expect(
            try refusal(of: "\(inner)/odd.so").contains(
                "others may write \(folder.path), where it is (mode 777)"))
        chmod(folder.path, 0o1777)
        #expect(try refusal(of: "\(inner)/odd.so").contains("provides no transport"))
    }

    @Test("that belongs to another user")
    func foreignOwner() throws {
        try ForeignLibrary().build(to: path)
        // Only root can give a file away. Other users are as content with a file of root's as with their own.
        try #require(chown(path, 65_534, 65_534) == 0 || geteuid() != 0)
        let words = try refusal()
        #expect(words.contains(geteuid() == 0 ? "it belongs to user 65534" : "provides no transport"))
        // The owner of a folder can replace what is in it, even if the mode keeps all others from doing so.
        chown(path, 0, 0)
        chmod(folder.path, 0o1777)
        try #require(chown(folder.path, 65_534, 65_534) == 0 || geteuid() != 0)
        let folderWords = try refusal()
        #expect(
            folderWords.contains(
                geteuid() == 0
                    ? "\(folder.path), where it is, belongs to user 65534" : "provides no transport"))
    }

    private func write(_ content: String) throws {
        let file = try #require(fopen(path, "w"))
        fputs(content, file)
        fclose(file)
    }
}
