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

    /// Expects that a new store finds the file kept, whole and once.
    private func expectKept(
        _ store: FolderStore, as name: String = "f", _ index: Int = 0, text content: String = "abc"
    ) throws {
        let kept = try #require(try store.kept(index))
        #expect(kept.path == path(name) && kept.hash == hash(content))
        #expect(text(name) == content && status(name)?.st_nlink == 1)
        store.finish()
    }

    @Test func `Before the file has its name, the part is continued`() throws {
        try left("f", "abc")
        #expect(try receive(["f": ""]) == [path("f")])
        #expect(text("f") == "abc" && names == ["f"])
    }

    @Test(arguments: ["f", "f (2)", "f (17)"], [false, true])
    func `Between the name and the note, the file is kept`(name: String, isHalfNoted: Bool) throws {
        try left("f", "abc")
        try #require(link(data, path(name)) == 0)
        if isHalfNoted { append("kept 3 \(hash("abc").hexadecimal.prefix(20))", to: "f.part/note") }
        // The note can be continued.
        #expect(try store("f").kept()?.hash == hash("abc"))
        try expectKept(try store("f"), as: name)
        #expect(names == [name])
    }

    @Test func `Between the name and the note, a file in a folder is kept`() throws {
        do {
            let store = try store("d/", "d/f")
            _ = try store.open(0)
            try store.part(1).write("abc")
        }
        try #require(link(path("d.part/\(key("d/f"))"), path("d/f")) == 0)
        let store = try store("d/", "d/f")
        _ = try store.open(0)
        try expectKept(store, as: "d/f", 1)
        #expect(names == ["d"] && names("d") == ["f"])
    }

    @Test func `Between the note and the removal of the data, the file is kept`() throws {
        try store("f").receive("abc")
        try #require(link(path("f"), data) == 0)
        try expectKept(try store("f"))
        #expect(names == ["f"])
    }

    @Test func `A file that is about to replace another is continued, and one that has is kept`() throws {
        for hasReplaced in [false, true] {
            make("f", "old")
            try store("f", replacing: true).part().write("abc")
            try #require(link(data, data + ".new") == 0)
            if hasReplaced { try #require(rename(data + ".new", path("f")) == 0) }
            let store = try store("f", replacing: true)
            if hasReplaced {
                try expectKept(store)
            } else {
                #expect(try store.receive("") == path("f"))
                store.finish()
            }
            #expect(text("f") == "abc" && names == ["f"])
            unlink(path("f"))
        }
    }

    @Test func `A file that was moved because the file system has no links is kept`() throws {
        try left("f", "abc")
        do {
            let location = PartFolder.Location(
                destination: try OpenFolder(inbox), base: SafeFileName("f"), number: 1)
            let part = try #require(try PartFolder.open(location, sender: sender, name: "f"))
            let final = try part.finalFolder([])
            let outer = PartFolder.Final(folder: final.folder, path: "f")
            try part.move(try part.openData(key("f")), key("f"), to: "f", in: outer)
        }
        #expect(!exists("f.part/\(key("f"))"))
        try expectKept(try store("f"))
        #expect(names == ["f"])
    }

    @Test func `Before a file is moved, the part is continued, whatever has its name by then`() throws {
        try left("f", "abc")
        append(NoteContent.text(.moving(key: key("f"), file: 1, path: "f")), to: "f.part/note")
        make("f", "other")
        let part = try store("f").part()
        #expect(try part.text == "abc")
        #expect(try part.keep("abc") == path("f (2)"))
    }

    @Test func `A file that took the place of a moved one is not taken for it`() throws {
        try left("f", "abc")
        append(NoteContent.text(.moving(key: key("f"), file: 1, path: "f")), to: "f.part/note")
        unlink(data)
        make("f", "other")
        #expect(try store("f").kept() == nil)
    }

    @Test func `A file that the user gave another name since is not written to`() throws {
        try left("f", "abc")
        try #require(link(data, path("mine")) == 0)
        let part = try store("f").part()
        #expect(part.count == 0)
        try part.write("xyz")
        #expect(text("mine") == "abc")
    }

    @Test func `A file that was sent anew is kept under its new name`() throws {
        try store("f").receive("old")
        try store("f").openAnew(0).write("abc")
        try #require(link(data, path("f (2)")) == 0)
        try expectKept(try store("f"), as: "f (2)")
        #expect(names == ["f", "f (2)"] && text("f") == "old")
    }

    @Test func `A folder that was noted and not made is made`() throws {
        try store("d/f").part().write("abc")
        append(NoteContent.text(.folder(key: key("d"), path: "d")), to: "d.part/note")
        #expect(try store("d/f").receive("") == path("d/f"))
        #expect(names == ["d", "d.part"])
    }

    @Test(arguments: ["", "What is"])
    func `A folder with an unfinished note and nothing else is used`(_ text: String) throws {
        mkdir(path("f.part"), 0o700)
        make("f.part/note", text)
        #expect(try receive(["f": "abc"]) == [path("f")])
        #expect(names == ["f"])
    }
}
