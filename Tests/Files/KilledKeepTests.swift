import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighFiles

/// Tests that a program that is killed while it gives a whole file its name leaves neither two files nor none.
///
/// Each test puts the folder into the state between two steps, and then continues with a new store.
@Suite struct KilledKeepTests: ReceivesFiles {
    let outer = TemporaryFolder()
    let sender = Identity.ephemeral().peerID

    private var data: String { path("f.part/\(key("f"))") }

    private func expectOne(_ store: FolderStore, _ name: String = "f", _ index: Int = 0) throws {
        let kept = try #require(try store.kept(index))
        #expect(kept.path == path(name) && kept.hash == hash("abc"))
        #expect(text(name) == "abc" && status(name)?.st_nlink == 1)
        store.finish()
    }

    @Test("Before the file has its name, the part is continued")
    func before() throws {
        try store("f").part().write("abc")
        let store = try store("f")
        #expect(try store.receive("") == path("f"))
        store.finish()
        #expect(text("f") == "abc" && names == ["f"])
    }

    @Test("Between the name and the note, the file is kept", arguments: ["f", "f (2)", "f (17)"])
    func named(_ name: String) throws {
        try store("f").part().write("abc")
        try #require(link(data, path(name)) == 0)
        try expectOne(try store("f"), name)
        #expect(names == [name])
    }

    @Test("Between the name and the note, a file in a folder is kept")
    func namedInFolder() throws {
        do {
            let store = try store("d/", "d/f")
            _ = try store.open(0)
            try store.part(1).write("abc")
        }
        try #require(link(path("d.part/\(key("d/f"))"), path("d/f")) == 0)
        let store = try store("d/", "d/f")
        _ = try store.open(0)
        try expectOne(store, "d/f", 1)
        #expect(names == ["d"] && names("d") == ["f"])
    }

    @Test("With half a line in the note, the file is kept, and the note can be continued")
    func halfLine() throws {
        try store("f").part().write("abc")
        try #require(link(data, path("f")) == 0)
        append("kept 3 \(hash("abc").hexadecimal.prefix(20))", to: "f.part/note")
        #expect(try store("f").kept()?.hash == hash("abc"))
        try expectOne(try store("f"))
        #expect(names == ["f"])
    }

    @Test("Between the note and the removal of the data, the file is kept")
    func noted() throws {
        try store("f").receive("abc")
        try #require(link(path("f"), data) == 0)
        try expectOne(try store("f"))
        #expect(names == ["f"])
    }

    @Test("A file that is about to replace another is continued")
    func replacing() throws {
        make("f", "old")
        try store("f", replacing: true).part().write("abc")
        try #require(link(data, data + ".new") == 0)
        let store = try store("f", replacing: true)
        #expect(try store.receive("") == path("f"))
        store.finish()
        #expect(text("f") == "abc" && names == ["f"])
    }

    @Test("A file that has replaced another is kept")
    func replaced() throws {
        make("f", "old")
        try store("f", replacing: true).part().write("abc")
        try #require(link(data, data + ".new") == 0 && rename(data + ".new", path("f")) == 0)
        try expectOne(try store("f", replacing: true))
        #expect(names == ["f"])
    }

    @Test("A file that was moved because the file system has no links is kept")
    func moved() throws {
        try store("f").part().write("abc")
        do {
            let place = PartFolder.Place(
                destination: try OpenFolder(inbox), base: SafeFileName("f"), number: 1)
            let part = try #require(try PartFolder.open(place, sender: sender, name: "f"))
            let final = try part.finalFolder([])
            let outer = PartFolder.Final(folder: final.folder, path: "f")
            try part.move(try part.openData(key("f")), key("f"), to: "f", in: outer)
        }
        #expect(!exists("f.part/\(key("f"))"))
        try expectOne(try store("f"))
        #expect(names == ["f"])
    }

    @Test("Before a file is moved, the part is continued, whatever has its name by then")
    func notMoved() throws {
        try store("f").part().write("abc")
        append(NoteContent.text(.moving(key: key("f"), file: 1, path: "f")), to: "f.part/note")
        make("f", "other")
        let part = try store("f").part()
        #expect(try part.text == "abc")
        #expect(try part.keep("abc") == path("f (2)"))
    }

    @Test("A file that took the place of a moved one is not taken for it")
    func movedAndReplaced() throws {
        try store("f").part().write("abc")
        append(NoteContent.text(.moving(key: key("f"), file: 1, path: "f")), to: "f.part/note")
        unlink(data)
        make("f", "other")
        #expect(try store("f").kept() == nil)
    }

    @Test("A file that the user gave another name since is not written to")
    func renamed() throws {
        try store("f").part().write("abc")
        try #require(link(data, path("mine")) == 0)
        let part = try store("f").part()
        #expect(part.count == 0)
        try part.write("xyz")
        #expect(text("mine") == "abc")
    }

    @Test("A file that was sent anew is kept under its new name")
    func anew() throws {
        try store("f").receive("old")
        try store("f").openAnew(0).write("abc")
        try #require(link(data, path("f (2)")) == 0)
        try expectOne(try store("f"), "f (2)")
        #expect(names == ["f", "f (2)"] && text("f") == "old")
    }

    @Test("A folder that was noted and not made is made")
    func folderNotMade() throws {
        try store("d/f").part().write("abc")
        append(NoteContent.text(.folder(key: key("d"), path: "d")), to: "d.part/note")
        #expect(try store("d/f").receive("") == path("d/f"))
        #expect(names == ["d", "d.part"])
    }

    @Test("A folder with an unfinished note and nothing else is used", arguments: ["", "What is"])
    func unfinishedNote(_ text: String) throws {
        mkdir(path("f.part"), 0o700)
        make("f.part/note", text)
        let store = try store("f")
        #expect(try store.receive("abc") == path("f"))
        store.finish()
        #expect(names == ["f"])
    }

    @Test(
        "A folder of somebody else that is named like a part stays",
        arguments: [[], ["mine"], ["mine", "note"]])
    func foreign(_ content: [String]) throws {
        mkdir(path("f.part"), 0o700)
        for name in content { make("f.part/\(name)", "") }
        let store = try store("f")
        #expect(try store.receive("abc") == path("f (2)"))
        store.finish()
        #expect(names == ["f (2)", "f.part"] && names("f.part") == content)
    }
}
