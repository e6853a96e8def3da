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

    @Test("A whole file has its name, its time, and no more rights than it needs; nothing else is left")
    func whole() throws {
        let item = FileItem(path: "f", size: 3, modified: 1_000_000_007)
        let store = try store([item])
        let part = try store.part()
        try part.write("abc")
        chmod(path("f.part/\(key("f"))"), 0o4777)
        #expect(try part.keep("abc") == path("f"))
        #expect(text("f") == "abc")
        let file = try #require(status("f"))
        #expect(file.modified == item.modified && file.st_mode & 0o7777 == 0o644 && file.st_nlink == 1)
        store.finish()
        #expect(names == ["f"])
    }

    @Test("A time before 1970 is kept")
    func early() throws {
        let store = try store([FileItem(path: "f", size: 3, modified: -1)])
        try store.receive("abc")
        #expect(status("f")?.modified == -1)
    }

    @Test("Folders arrive with their content, empty ones as well")
    func tree() throws {
        let store = try store("d/", "d/e/", "d/e/f", "d/empty/", "g")
        for index in [0, 1, 3] { #expect(throws: Never.self) { _ = try store.open(index) } }
        #expect(try store.receive("one", 2) == path("d/e/f"))
        #expect(try store.receive("two", 4) == path("g"))
        store.finish()
        #expect(names == ["d", "g"] && names("d") == ["e", "empty"] && names("d/e") == ["f"])
        #expect(text("d/e/f") == "one" && text("g") == "two")
    }

    @Test("What can be written anywhere in a part is there, and what is cut off is not")
    func writing() throws {
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

    @Test(
        "A path stays inside the folder",
        arguments: [
            ("../x", "unnamed/x"), ("/etc/x", "etc/x"), ("a/../../b", "a/unnamed/unnamed/b"),
            ("..", "unnamed"),
            ("", "unnamed"), ("/", "unnamed"), (".ssh/.keys", "ssh/.keys"), ("a/...", "a/unnamed"),
            ("a\n/b\u{1B}", "a_/b_"),
            ("/\u{301}tmp/x", "\u{301}tmp/x"), ("x.part", "x.part_"), ("note", "note"),
        ])
    func paths(_ offered: String, _ place: String) throws {
        let store = try store([FileItem(path: offered, size: 3)])
        #expect(try store.receive("abc") == path(place))
        store.finish()
        #expect(text(place) == "abc")
        #expect(names.count == 1 && TemporaryFolder.names(in: outer.path) == ["inbox"])
    }

    @Test("Different offered names that become one name become different files")
    func collidingFiles() throws {
        let store = try store("a\u{1}", "a\u{2}", "d/", "d/b\u{1}", "d/b\u{2}", replacing: true)
        for index in [0, 1, 3, 4] { try store.receive("abc\(index)", index) }
        store.finish()
        #expect(names == ["a_", "a_ (2)", "d"] && names("d") == ["b_", "b_ (2)"])
        #expect(text("a_") == "abc0" && text("d/b_") == "abc3")
    }

    @Test("Different offered folders that become one name become different folders")
    func collidingFolders() throws {
        let store = try store("d/a\u{1}/f", "d/a\u{2}/f", "e\u{1}/f", "e\u{2}/f")
        for index in 0..<4 { try store.receive("abc", index) }
        store.finish()
        #expect(names == ["d", "e_", "e_ (2)"] && names("d") == ["a_", "a_ (2)"])
    }

    @Test("A file and a folder that are offered under one name get two")
    func fileAndFolder() throws {
        let store = try store("a/b", "a")
        try store.receive("abc", 0)
        #expect(try store.receive("def", 1) == path("a (2)"))
        #expect(text("a/b") == "abc")
    }

    @Test("A path with too many names is refused")
    func depth() throws {
        let deepest = Array(repeating: "a", count: FileItem.mostComponents).joined(separator: "/")
        #expect(throws: Never.self) { try store(deepest).receive("abc") }
        #expect(throws: FileFailure.self) { try store("b/\(deepest)").receive("abc") }
        #expect(!exists("b.part"))
    }

    // MARK: What exists

    @Test("An existing file stays, whether it was there before or came meanwhile")
    func existing() throws {
        make("f.txt", "old")
        #expect(try store("f.txt").receive("new") == path("f (2).txt"))
        let part = try store("g").part()
        try part.write("new")
        make("g", "came meanwhile")
        #expect(try part.keep("new") == path("g (2)"))
        #expect(text("f.txt") == "old" && text("g") == "came meanwhile")
    }

    @Test("A file is replaced as a whole if the user wants that")
    func replacing() throws {
        make("f", "old")
        let store = try store("f", replacing: true)
        let part = try store.part()
        try part.write("new")
        #expect(text("f") == "old")
        #expect(try part.keep("new") == path("f"))
        store.finish()
        #expect(text("f") == "new" && names == ["f"])
    }

    @Test("A pipe or a folder is never replaced", arguments: [true, false])
    func notReplaced(_ isEarly: Bool) throws {
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

    @Test("Nothing is added to an existing folder", arguments: [true, false])
    func existingFolder(_ replaces: Bool) throws {
        mkdir(path("d"), 0o700)
        make("d/f", "old")
        let store = try store("d/", "d/f", replacing: replaces)
        _ = try store.open(0)
        #expect(try store.receive("new", 1) == path("d (2)/f"))
        #expect(text("d/f") == "old" && names("d") == ["f"])
    }

    @Test("A single file gets the name that the user chose")
    func chosenName() throws {
        let name = try #require(SafeFileName(ofPath: "mine"))
        let store = try store("theirs", as: name)
        #expect(try store.receive("abc") == path("mine"))
        store.finish()
        #expect(names == ["mine"])
    }

    // MARK: Links

    @Test("Links that somebody put into the folder are not followed", arguments: [false, true])
    func links(_ replaces: Bool) throws {
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

    @Test("A link in the place of a received folder is not followed")
    func linkMeanwhile() throws {
        let elsewhere = "\(outer.path)/elsewhere"
        mkdir(elsewhere, 0o700)
        let store = try store("d/e/", "d/e/f")
        _ = try store.open(0)
        rename(path("d/e"), path("d/before"))
        symlink(elsewhere, path("d/e"))
        #expect(try store.receive("abc", 1) == path("d/e (2)/f"))
        #expect(TemporaryFolder.names(in: elsewhere) == [])
    }

    @Test("No link and no second name of another file is written to", arguments: [true, false])
    func plantedData(_ isSymbolic: Bool) throws {
        let precious = make("precious", "precious")
        try left("f", "ab")
        unlink(path("f.part/\(key("f"))"))
        try #require((isSymbolic ? symlink : link)(precious, path("f.part/\(key("f"))")) == 0)
        let part = try store("f").part()
        #expect(part.count == 0)
        try part.write("abc")
        #expect(text("precious") == "precious")
    }

    @Test("A note that is a link or has another name is not trusted", arguments: [true, false])
    func plantedNote(_ isSymbolic: Bool) throws {
        try left("f", "ab")
        rename(path("f.part/note"), path("elsewhere"))
        try #require((isSymbolic ? symlink : link)(path("elsewhere"), path("f.part/note")) == 0)
        let part = try store("f").part()
        #expect(part.count == 0 && exists("f (2).part"))
    }

    // MARK: Space

    @Test("A file takes no space on the disk before its bytes come")
    func noSpaceBefore() throws {
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

    @Test(
        "Space that an earlier version left reserved counts as there, and is given back when the part is opened"
    )
    func reservedBefore() throws {
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

    @Test("A folder of the user's that is named like a part stays as it is", arguments: [false, true])
    func foreignNote(_ isFolder: Bool) throws {
        mkdir(path("f.part"), 0o700)
        if isFolder { mkdir(path("f.part/note"), 0o700) } else { make("f.part/note", "call Ann") }
        let store = try store("f")
        #expect(try store.receive("abc") == path("f (2)"))
        store.finish()
        #expect(names == ["f (2)", "f.part"] && (isFolder || text("f.part/note") == "call Ann"))
    }
}
