import Glibc
import NighTestKit
import Testing

@testable import NighCore
@testable import NighSystem

@Suite struct TrustFileTests {
    let folder = TemporaryFolder()
    private var path: String { folder.path + "/peers" }

    private static let ada = PeerID(bytes: [UInt8](repeating: 1, count: 32))!
    private static let bob = PeerID(bytes: [UInt8](repeating: 2, count: 32))!
    private static let day = CalendarDay("2026-11-21")!

    private func store() throws -> TrustStore { try TrustStore(file: TrustFile(path: path)) { Self.day } }

    // MARK: The text

    @Test func `A trust file is readable text`() throws {
        let store = try store()
        store.remember(Self.bob, name: DisplayName(exactly: "Bob")!)
        store.pair(Self.ada, name: DisplayName(exactly: "Ada's den")!)
        try store.save()
        let text = TemporaryFolder.text(of: path)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.first == "nigh-peers 1")
        #expect(lines.dropFirst().prefix(3).allSatisfy { $0.hasPrefix("# ") })
        #expect(
            lines.dropFirst(4) == [
                "known \(Self.bob) 2026-11-21 2026-11-21 \"Bob\"",
                "paired \(Self.ada) 2026-11-21 2026-11-21 \"Ada's den\"", "",
            ])
    }

    @Test func `A blank name from an earlier version is read as the short PeerID`() throws {
        _ = folder.file("peers", "nigh-peers 1\npaired \(Self.ada) 2025-01-02 2026-03-04 \"  \"\n")
        #expect(try store().peers.map(\.name.description) == [Self.ada.short])
    }

    @Test func `Hand written lines and comments are kept`() throws {
        let text = """
            # my devices

            nigh-peers 1
            \tpaired   \(Self.ada) 2025-01-02 2026-03-04   "Ada" # hers
            # and others

            known \(Self.bob) 2026-02-28 2026-02-28 "Bob"
            """
        _ = folder.file("peers", text.replacing("\n", with: "\r\n"))
        let store = try store()
        #expect(store.peers.map(\.isPaired) == [true, false])
        #expect(
            store.peers.map { "\($0.name) \($0.since) \($0.lastSeen)" }
                == ["Ada 2025-01-02 2026-03-04", "Bob 2026-02-28 2026-02-28"])
        store.remember(Self.ada, name: DisplayName(exactly: "Ada L")!)
        store.forget(Self.bob)
        try store.save()
        #expect(
            TemporaryFolder.text(of: path) == """
                # my devices

                nigh-peers 1
                paired \(Self.ada) 2025-01-02 2026-11-21 "Ada L"  # hers
                # and others


                """)
    }

    @Test(arguments: [
        ("Puma", "\"Puma\""), ("Ada \"x\" \\ #2", "\"Ada \\\"x\\\" \\\\ #2\""),
        ("Küche 🐾", "\"Küche 🐾\""), ("a\u{202E}b", "\"a\\u{202e}b\""), ("a\u{2028}b", "\"a\\u{2028}b\""),
        ("a\u{A0}b", "\"a\\u{a0}b\""), ("\u{301}x", "\"\\u{301}x\""), ("#", "\"#\""),
        ("👩\u{200D}💻", "\"👩\\u{200d}💻\""), ("a\u{E0041}", "\"a\\u{e0041}\""),
    ])
    func `Any name is escaped and read back`(name: String, written: String) throws {
        let store = try store()
        store.pair(Self.ada, name: DisplayName(exactly: name)!)
        try store.save()
        let text = TemporaryFolder.text(of: path)
        #expect(text.hasSuffix(" \(written)\n"))
        #expect(try self.store().peers.map { Array($0.name.description.utf8) } == [Array(name.utf8)])
    }

    @Test func `A file from the far future is read like any other`() throws {
        let store = try store()
        store.pair(Self.ada, name: DisplayName(exactly: "Ada")!)
        try store.save()
        let future = timespec(tv_sec: 10_413_792_000, tv_nsec: 0)  // in the year 2300
        #expect(utimensat(AT_FDCWD, path, [future, future], 0) == 0)
        #expect(try self.store().isPaired(Self.ada))
    }

    @Test func `The largest store fits into the file`() throws {
        let store = try store()
        // The name with the longest written form: two bytes become seven characters, and one has to be seen.
        let name = DisplayName(exactly: String(repeating: "\u{61C}", count: 31) + "x")!
        for number in 0..<TrustBook.maximumCount { store.pair(.numbered(number), name: name) }
        try store.save()
        #expect(try self.store().peers.count == TrustBook.maximumCount)
    }

    // MARK: Refusals

    private static let days = "2026-11-21 2026-11-21"

    @Test(
        arguments: [
            ("trusted \(ada) \(days) \"Ada\"", "it does not begin with \"paired\""),
            ("nigh-peers 1", "it does not begin with \"paired\""),
            ("paired", "its second word is not a PeerID"),
            ("paired \(ada.short) \(days) \"Ada\"", "its second word is not a PeerID"),
            ("paired \(ada)a \(days) \"Ada\"", "its second word is not a PeerID"),
            ("paired \(ada) 2026-11-21 \"Ada\"", "its third and fourth words"),
            ("paired \(ada) 2026-02-29 2026-11-21 \"Ada\"", "its third and fourth words"),
            ("paired \(ada) \(days)", "its name is not a text"),
            ("paired \(ada) \(days) Ada", "its name is not a text"),
            ("paired \(ada) \(days) \"\"", "its name is not a text"),
            ("paired \(ada) \(days) \"Ada", "its name is not a text"),
            ("paired \(ada) \(days) \"Ada\\\"", "its name is not a text"),
            ("paired \(ada) \(days) \"A\\da\"", "its name is not a text"),
            ("paired \(ada) \(days) \"\\u{d800}\"", "its name is not a text"),
            ("paired \(ada) \(days) \"\\u{41\"", "its name is not a text"),
            ("paired \(ada) \(days) \"\\u{7}\"", "its name is not a text"),
            ("paired \(ada) \(days) \"\(String(repeating: "x", count: 64))\"", "its name is not"),
            ("paired \(ada) \(days) \"Ada\"x", "its name is not a text"),
            ("paired \(ada) \(days) \"Ada\" x", "there is more text after its name"),
            ("paired \(bob) \(days) \"Bob\"", "it is about the same peer as line 3"),
        ] as [(String, String)])
    func `A damaged line is reported and kept`(line: String, why: String) throws {
        let text = "nigh-peers 1\n\nknown \(Self.bob) 2026-02-28 2026-02-28 \"Bob\"\n\(line)\n"
        _ = folder.file("peers", text)
        let sentence = refusal(try store())
        #expect(sentence.contains("invalid peers file \(path): line 4 is damaged: \(why)"), "\(sentence)")
        #expect(sentence.contains("repair the line, or remove it"))
        #expect(TemporaryFolder.text(of: path) == text)
    }

    @Test func `Damage found while saving loses nothing`() throws {
        let store = try store()
        store.pair(Self.ada, name: DisplayName(exactly: "Ada")!)
        try store.save()
        let sound = TemporaryFolder.text(of: path)
        _ = folder.file("peers", sound + "paired nobody\n")
        store.pair(Self.bob, name: DisplayName(exactly: "Bob")!)
        #expect(refusal(try store.save()).contains("line 6 is damaged"))
        #expect(refusal(try store.reload()).contains("line 6 is damaged"))
        #expect(TemporaryFolder.text(of: path) == sound + "paired nobody\n")
        #expect(store.needsSaving)
        #expect(store.isPaired(Self.bob) && store.isPaired(Self.ada))
        _ = folder.file("peers", sound)
        try store.save()
        #expect(!store.needsSaving)
        #expect(try self.store().peers.count == 2)
    }

    @Test(arguments: [
        ("nigh-peers 2\n", "it has format 2, this program knows only format 1"),
        ("nigh-peers\n", "it does not begin with \"nigh-peers 1\""),
        ("known x\n", "it does not begin with \"nigh-peers 1\""),
        ("# nothing\n\n", "it does not begin with \"nigh-peers 1\""),
        ("", "it is empty"), ("nigh-peers 1\n#" + String(repeating: "x", count: 2 << 20), "it has more than"),
    ])
    func `Another format is refused and kept`(text: String, why: String) {
        _ = folder.file("peers", text)
        let sentence = refusal(try store())
        #expect(sentence.contains("looking after the trusted peers: invalid peers file \(path): \(why)"))
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_size == text.utf8.count)
    }

    @Test func `Invalid UTF 8 is refused`() {
        let descriptor = open(path, O_WRONLY | O_CREAT, 0o600)
        let bytes = Array("nigh-peers 1\n# ".utf8) + [0xFF]
        #expect(write(descriptor, bytes, bytes.count) == bytes.count)
        close(descriptor)
        #expect(refusal(try store()).contains("it is not UTF-8"))
    }

    @Test func `A file beyond the peer limit is refused`() {
        let lines = (0...TrustBook.maximumCount).map {
            "known \(PeerID.numbered($0)) 2026-02-28 2026-02-28 \"x\""
        }
        _ = folder.file("peers", (["nigh-peers 1"] + lines).joined(separator: "\n"))
        #expect(
            refusal(try store()).contains(
                "line 4098 is damaged: it is one peer more than the limit of 4096"))
    }

    @Test func `The peers file is a protected file that others may read`() throws {
        for (mode, isRefused) in [(0o620, true), (0o602, true), (0o644, false)] as [(mode_t, Bool)] {
            _ = folder.file("peers", "nigh-peers 1\n", mode: mode)
            if isRefused {
                #expect(refusal(try store()).contains("others may write it"))
            } else {
                try store().save()
            }
        }
        unlink(path)
        #expect(symlink(folder.file("elsewhere", "nigh-peers 1\n"), path) == 0)
        #expect(refusal(try store()).contains("it is a symbolic link"))
    }

    /// The sentence of the error. Checks the error's stage.
    private func refusal(_ body: @autoclosure () throws -> some Any) -> String {
        let error = #expect(throws: NighError.self) { try body() }
        #expect(error?.stage == .trusting)
        return error.map { "\($0)" } ?? ""
    }
}
