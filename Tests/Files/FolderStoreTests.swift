import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighFiles

/// Tests where received files and folders go, and what stays of them.
@Suite struct FolderStoreTests: ReceivesFiles {
    let outer = TemporaryFolder()
    let sender = Identity.ephemeral().peerID

    // MARK: Whole files

    @Test(arguments: [1_000_000_007, -1])
    func `A whole file has its name, its time and few rights`(modified: Int) throws {
        let store = try store([FileItem(path: "f", size: 3, modified: modified)])
        let part = try store.part()
        try part.write("abc")
        chmod(path("f.part/\(key("f"))"), 0o4777)
        #expect(try part.keep("abc") == path("f"))
        let file = try #require(status("f"))
        #expect(text("f") == "abc" && file.modified == modified)
        #expect(file.st_mode & 0o7777 == 0o644 && file.st_nlink == 1)
        store.finish()
        #expect(names == ["f"])
    }

    @Test func `Folders arrive with their content, empty ones as well`() throws {
        let places = try receive(["d/": "", "d/e/": "", "d/e/f": "one", "d/empty/": "", "g": "two"])
        #expect(places == [path("d/e/f"), path("g")])
        #expect(names == ["d", "g"] && names("d") == ["e", "empty"] && names("d/e") == ["f"])
        #expect(text("d/e/f") == "one" && text("g") == "two")
    }

    @Test func `What can be written anywhere in a part is there, and what is cut off is not`() throws {
        let part = try store("f").part()
        try part.write("abcdef")
        try part.write("X", at: 1)
        #expect(part.count == 6)
        #expect(try part.text == "aXcdef")
        try part.truncate(to: 3)
        #expect(part.count == 3)
        #expect(try part.text == "aXc")
    }

    // MARK: Names

    @Test(arguments: [
        ("../x", "unnamed/x"), ("/etc/x", "etc/x"), ("a/../../b", "a/unnamed/unnamed/b"),
        ("..", "unnamed"),
        ("", "unnamed"), ("/", "unnamed"), (".ssh/.keys", "ssh/.keys"), ("a/...", "a/unnamed"),
        ("a\n/b\u{1B}", "a_/b_"),
        ("/\u{301}tmp/x", "\u{301}tmp/x"), ("x.part", "x.part_"), ("note", "note"),
    ])
    func `A path stays inside the folder`(_ offered: String, _ place: String) throws {
        let store = try store([FileItem(path: offered, size: 3)])
        #expect(try store.receive("abc") == path(place))
        store.finish()
        #expect(text(place) == "abc")
        #expect(names.count == 1 && TemporaryFolder.names(in: outer.path) == ["inbox"])
    }

    @Test(
        arguments: [
            (["a\u{1}", "a\u{2}", "d/b\u{1}", "d/b\u{2}"], ["a_", "a_ (2)", "d/b_", "d/b_ (2)"]),
            (
                ["d/a\u{1}/f", "d/a\u{2}/f", "e\u{1}/f", "e\u{2}/f"],
                ["d/a_/f", "d/a_ (2)/f", "e_/f", "e_ (2)/f"]
            ),
            (["a/b", "a"], ["a/b", "a (2)"]),
        ], [false, true])
    func `Different offered names that become one name get different places`(
        offer: (paths: [String], places: [String]), replaces: Bool
    ) throws {
        let store = try store(offer.paths.map { FileItem(path: $0, size: 4) }, replacing: replaces)
        for (index, place) in offer.places.enumerated() {
            #expect(try store.receive("abc\(index)", index) == path(place))
        }
        store.finish()
        for (index, place) in offer.places.enumerated() { #expect(text(place) == "abc\(index)") }
    }

    @Test func `A path with too many names is refused`() throws {
        let deepest = Array(repeating: "a", count: FileItem.mostComponents).joined(separator: "/")
        #expect(throws: Never.self) { try store(deepest).receive("abc") }
        #expect(throws: FileFailure.self) { try store("b/\(deepest)").receive("abc") }
        #expect(!exists("b.part"))
    }

    // MARK: What exists

    @Test func `An existing file stays, whether it was there before or came meanwhile`() throws {
        make("f.txt", "old")
        #expect(try store("f.txt").receive("new") == path("f (2).txt"))
        let part = try store("g").part()
        try part.write("new")
        make("g", "came meanwhile")
        #expect(try part.keep("new") == path("g (2)"))
        #expect(text("f.txt") == "old" && text("g") == "came meanwhile")
    }

    @Test func `A file is replaced as a whole if the user wants that`() throws {
        make("f", "old")
        let store = try store("f", replacing: true)
        let part = try store.part()
        try part.write("new")
        #expect(text("f") == "old")
        #expect(try part.keep("new") == path("f"))
        store.finish()
        #expect(text("f") == "new" && names == ["f"])
    }

    @Test(arguments: [true, false])
    func `A pipe or a folder is never replaced`(_ isEarly: Bool) throws {
        let parts =
            isEarly
            ? [] : [try store("pipe", replacing: true).part(), try store("d", replacing: true).part()]
        try #require(mkfifo(path("pipe"), 0o600) == 0 && mkdir(path("d"), 0o700) == 0)
        for (index, name) in ["pipe", "d"].enumerated() {
            let part = isEarly ? try store(name, replacing: true).part() : parts[index]
            try part.write("abc")
            #expect(try part.keep("abc") == path("\(name) (2)"))
        }
        #expect(status("pipe")?.kind == S_IFIFO && status("d")?.kind == S_IFDIR)
    }

    @Test(arguments: [true, false])
    func `Nothing is added to an existing folder`(_ replaces: Bool) throws {
        mkdir(path("d"), 0o700)
        make("d/f", "old")
        #expect(try receive(["d/": "", "d/f": "new"], replacing: replaces) == [path("d (2)/f")])
        #expect(text("d/f") == "old" && names("d") == ["f"])
    }

    @Test func `A single file gets the name that the user chose`() throws {
        let name = try #require(SafeFileName(ofPath: "mine"))
        #expect(try receive(["theirs": "abc"], as: name) == [path("mine")])
        #expect(names == ["mine"])
    }

    // MARK: Links

    @Test(arguments: [false, true])
    func `Links that somebody put into the folder are not followed`(_ replaces: Bool) throws {
        let elsewhere = "\(outer.path)/elsewhere"
        mkdir(elsewhere, 0o700)
        for name in ["a", "b.part", "d"] { symlink(elsewhere, path(name)) }
        for name in ["a", "b", "d/f"] {
            let store = try store(name, replacing: replaces)
            let place = replaces && name == "a" ? "a" : name == "d/f" ? "d (2)/f" : "\(name) (2)"
            #expect(try store.receive("abc") == path(place))
        }
        #expect(TemporaryFolder.names(in: elsewhere) == [])
        // The link was replaced, not followed.
        if replaces { #expect(status("a")?.kind == S_IFREG) }
    }

    @Test func `A link in the place of a received folder is not followed`() throws {
        let elsewhere = "\(outer.path)/elsewhere"
        mkdir(elsewhere, 0o700)
        let store = try store("d/e/", "d/e/f")
        _ = try store.open(0)
        rename(path("d/e"), path("d/before"))
        symlink(elsewhere, path("d/e"))
        #expect(try store.receive("abc", 1) == path("d/e (2)/f"))
        #expect(TemporaryFolder.names(in: elsewhere) == [])
    }

    @Test(arguments: [true, false])
    func `No link and no second name of another file is written to`(_ isSymbolic: Bool) throws {
        let precious = make("precious", "precious")
        try left("f", "ab")
        unlink(path("f.part/\(key("f"))"))
        try #require((isSymbolic ? symlink : link)(precious, path("f.part/\(key("f"))")) == 0)
        let part = try store("f").part()
        #expect(part.count == 0)
        try part.write("abc")
        #expect(text("precious") == "precious")
    }

    @Test(arguments: [true, false])
    func `A note that is a link or has another name is not trusted`(_ isSymbolic: Bool) throws {
        try left("f", "ab")
        rename(path("f.part/note"), path("elsewhere"))
        try #require((isSymbolic ? symlink : link)(path("elsewhere"), path("f.part/note")) == 0)
        let part = try store("f").part()
        #expect(part.count == 0 && exists("f (2).part"))
    }

    // MARK: Space

    @Test func `A file takes no space on the disk before its bytes come`() throws {
        let pair = SidePair(MemoryFiles([("f", content(10_000_000))]), on: MemoryDisk())
        let store = try store([FileItem(path: "f", size: 10_000_000)])
        #expect(try #require(store.room) > 0)
        pair.answer = { $0.incoming.accept(into: store) }
        pair.run(turns: 10)
        var isWaiting = false
        while !isWaiting { if case .wait = pair.incoming.work() { isWaiting = true } }
        let data = try #require(status("f.part/\(key("f"))"))
        #expect(data.st_size < 1_000_000 && data.st_blocks < 4_000_000 / 512)
    }

    @Test
    func `Space that an earlier version reserved is freed when the part is opened`() throws {
        try left("f", "abc")
        let data = path("f.part/\(key("f"))")
        // As that version did: the size of the file stays.
        let command = popen("fallocate --keep-size --length 10000000 '\(data)'", "r")
        try #require(pclose(command) == 0 && status("f.part/\(key("f"))")?.st_blocks ?? 0 > 10_000_000 / 512)
        let store = try store([FileItem(path: "f", size: 10_000_000)])
        #expect(try store.present == 10_000_000)
        let part = try store.part()
        #expect(try part.text == "abc" && store.present < 1_000_000)
        #expect(try #require(status("f.part/\(key("f"))")).st_blocks < 1_000)
    }

    @Test(
        arguments: [
            [:], ["mine": ""], ["mine": "", "note": ""], ["note": "call Ann"], ["note/": ""],
        ] as [[String: String]])
    func `A folder of the user's that is named like a part stays as it is`(content: [String: String]) throws {
        mkdir(path("f.part"), 0o700)
        for (name, text) in content {
            if name == "note/" { mkdir(path("f.part/note"), 0o700) } else { make("f.part/\(name)", text) }
        }
        let before = names("f.part")
        #expect(try receive(["f": "abc"]) == [path("f (2)")])
        #expect(names == ["f (2)", "f.part"] && names("f.part") == before)
        for (name, content) in content where name != "note/" { #expect(text("f.part/\(name)") == content) }
    }
}
