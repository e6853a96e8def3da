import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighFiles

/// Tests what becomes of files that are there already.
@Suite struct FolderCopiesTests: ReceivesFiles {
    let outer = TemporaryFolder()
    let sender = Identity.ephemeral().peerID

    /// The offer of a folder with these texts in two of its files.
    private func folder(_ first: String, _ second: String) throws -> [String?] {
        try receive(
            ["d/": "", "d/e/": "", "d/e/f": first, "d/g": second, "d/empty/": ""], skipsCopies: true)
    }

    @Test func `A folder that is sent again does not become a second one`() throws {
        #expect(try folder("one", "two") == [path("d/e/f"), path("d/g")])
        let before = try #require(status("d/e/f"))
        #expect(try folder("one", "two") == [path("d/e/f"), path("d/g")])
        #expect(names == ["d"] && names("d") == ["e", "empty", "g"])
        #expect(status("d/e/f")?.isSameFile(as: before) == true)
    }

    @Test func `Of a changed folder, only new and different files are stored beside it`() throws {
        _ = try folder("one", "two")
        // The second time everything is there, in one of the two.
        for _ in 0..<2 {
            let places = try receive(
                [
                    "d/": "", "d/e/": "", "d/e/f": "one", "d/g": "new", "d/empty/": "", "d/h": "abc",
                    "d/void/": "",
                ], skipsCopies: true)
            #expect(places == [path("d/e/f"), path("d (2)/g"), path("d (2)/h")])
            #expect(names == ["d", "d (2)"] && names("d (2)") == ["g", "h", "void"])
            #expect(text("d/g") == "two" && text("d (2)/g") == "new" && names("d") == ["e", "empty", "g"])
        }
    }

    @Test func `Only a file with another content becomes a second one of its name`() throws {
        for (text, place) in [("one", "f"), ("one", "f"), ("two", "f (2)"), ("two", "f (2)"), ("one", "f")] {
            #expect(try receive(["f": text], skipsCopies: true) == [path(place)])
        }
        #expect(names == ["f", "f (2)"])
    }

    @Test func `A link is no copy, and neither is a file behind a link to a folder`() throws {
        mkdir("\(outer.path)/elsewhere", 0o700)
        make("../elsewhere/f", "one")
        symlink("../elsewhere/f", path("f"))
        symlink("../elsewhere", path("d"))
        for (name, place) in [("f", "f (2)"), ("d/f", "d (2)/f")] {
            #expect(try store(name, skipsCopies: true).receive("one") == path(place))
        }
    }

    @Test func `A transfer that continues remembers the copy that it has found`() throws {
        _ = try folder("one", "two")
        try store("d/e/f", "d/g", skipsCopies: true).receive("one")
        #expect(names == ["d", "d (2).part"])
        let continued = try store("d/e/f", "d/g", skipsCopies: true)
        #expect(try #require(try continued.kept()).path == path("d/e/f"))
        try continued.receive("two", 1)
        continued.finish()
        #expect(names == ["d"])
    }

    @Test func `A program that accepts files itself gets a file of its own each time`() throws {
        for place in ["f", "f (2)"] { #expect(try receive(["f": "one"]) == [path(place)]) }
    }

    // MARK: Parts and modes

    /// Compares an offered file with the one that is there.
    private func compare(in store: FolderStore) throws -> Comparison {
        let part = try store.part()
        #expect(part.mayBeThere())
        var result = Comparison.undecided
        while case .undecided = result { result = try part.compareNext(with: hash("one")) }
        return result
    }

    @Test func `On a disk, the file that is there stays the only one`() throws {
        make("f", "one")
        let store = try store("f", skipsCopies: true)
        guard case .same(let place) = try compare(in: store) else { return _ = Issue.record("it differs") }
        #expect(place == path("f"))
        store.finish()
        #expect(names == ["f"])
    }

    @Test func `On a disk, a file with another content is found to differ, and left alone`() throws {
        make("f", "two")
        let store = try store("f", skipsCopies: true)
        guard case .other = try compare(in: store) else { return _ = Issue.record("it is the same") }
        #expect(text("f") == "two")
    }

    @Test func `A program stays executable only if the sender is trusted`() throws {
        let items = [FileItem(path: "run", size: 3, isExecutable: true)]
        for (keepsModes, mode) in [(false, 0o644), (true, 0o755)] as [(Bool, mode_t)] {
            let store = try store(items, keepsModes: keepsModes)
            let place = try #require(try store.receive("abc"))
            store.finish()
            var about = stat()
            #expect(stat(place, &about) == 0 && about.st_mode & 0o777 == mode & ~mask)
        }
    }

    private var mask: mode_t {
        let mask = umask(0)
        umask(mask)
        return mask
    }
}
