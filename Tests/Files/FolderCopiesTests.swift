import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighFiles

/// Tests what becomes of files that are there already.
@Suite struct FolderCopiesTests: ReceivesFiles {
    let outer = TemporaryFolder()
    let sender = Identity.ephemeral().peerID

    private static let tree = ["d/", "d/e/", "d/e/f", "d/g", "d/empty/"]

    /// Receives the tree with these texts for `d/e/f` and `d/g`. Returns where they are.
    private func receiveTree(_ texts: [String], extra: [String] = []) throws -> [String?] {
        let items = (Self.tree + extra).map { path in
            path.utf8.last == UInt8(ascii: "/")
                ? FileItem(.folder, path: String(path.dropLast()), size: 0) : FileItem(path: path, size: 3)
        }
        let store = try store(items, skipsCopies: true)
        var texts = texts
        let places = try items.indices.compactMap { index -> String?? in
            guard items[index].kind == .file else {
                _ = try store.open(index)
                return nil
            }
            return try store.receive(texts.removeFirst(), index)
        }
        store.finish()
        return places.map { $0 }
    }

    @Test("A folder that is sent again does not become a second one")
    func sameFolder() throws {
        let first = try receiveTree(["one", "two"])
        let before = try #require(status("d/e/f"))
        let second = try receiveTree(["one", "two"])
        #expect(first == [path("d/e/f"), path("d/g")] && second == first)
        #expect(names == ["d"] && names("d") == ["e", "empty", "g"])
        #expect(status("d/e/f")?.isSameFile(as: before) == true)
    }

    @Test("Of a folder that has changed, only what is new or differs is stored beside the one that is there")
    func changedFolder() throws {
        _ = try receiveTree(["one", "two"])
        let places = try receiveTree(["one", "new", "abc"], extra: ["d/h", "d/void/"])
        #expect(places == [path("d/e/f"), path("d (2)/g"), path("d (2)/h")])
        #expect(names == ["d", "d (2)"] && names("d (2)") == ["g", "h", "void"])
        #expect(text("d/g") == "two" && text("d (2)/g") == "new" && names("d") == ["e", "empty", "g"])
        // Now everything is there, in one of the two.
        #expect(try receiveTree(["one", "new", "abc"], extra: ["d/h", "d/void/"]) == places)
        #expect(names == ["d", "d (2)"])
    }

    @Test("A file that is sent again does not become a second one, and another of its name does")
    func sameFile() throws {
        for (text, place) in [("one", "f"), ("one", "f"), ("two", "f (2)"), ("two", "f (2)"), ("one", "f")] {
            let store = try store("f", skipsCopies: true)
            #expect(try store.receive(text) == path(place))
            store.finish()
        }
        #expect(names == ["f", "f (2)"])
    }

    @Test("A link is no copy, and neither is what a folder on the way links to")
    func links() throws {
        mkdir("\(outer.path)/elsewhere", 0o700)
        make("../elsewhere/f", "one")
        symlink("../elsewhere/f", path("f"))
        symlink("../elsewhere", path("d"))
        for (name, place) in [("f", "f (2)"), ("d/f", "d (2)/f")] {
            #expect(try store(name, skipsCopies: true).receive("one") == path(place))
        }
    }

    @Test("A transfer that is interrupted after it has found a copy knows that when it continues")
    func interrupted() throws {
        _ = try receiveTree(["one", "two"])
        try store("d/e/f", "d/g", skipsCopies: true).receive("one")
        #expect(names == ["d", "d (2).part"])
        let continued = try store("d/e/f", "d/g", skipsCopies: true)
        #expect(try #require(try continued.kept()).path == path("d/e/f"))
        try continued.receive("two", 1)
        continued.finish()
        #expect(names == ["d"])
    }

    @Test("Whoever accepts files for a program gets a file of its own each time")
    func unlessAsked() throws {
        for place in ["f", "f (2)"] {
            let store = try store("f")
            #expect(try store.receive("one") == path(place))
            store.finish()
        }
    }
}
