import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighFiles

/// Tests what a transfer that was cut leaves, and how it continues.
@Suite struct ResumedTransferTests: ReceivesFiles {
    let outer = TemporaryFolder()
    let sender = Identity.ephemeral().peerID
    let other = Identity.ephemeral().peerID

    // MARK: Resuming

    @Test("What was received is continued by the same sender")
    func resumed() throws {
        try left("f", "abc")
        let store = try store([FileItem(path: "f", size: 1_000)])
        let part = try store.part()
        #expect(try part.text == "abc")
        try part.write("def")
        #expect(try part.keep("abcdef") == path("f"))
        store.finish()
        #expect(text("f") == "abcdef" && names == ["f"])
    }

    @Test("Another sender begins under another name, and does not touch what is there")
    func otherSender() throws {
        try left("f", "abc")
        let part = try store("f", from: other).part()
        #expect(part.count == 0)
        try part.write("xyz")
        #expect(try part.keep("xyz") == path("f (2)"))
        #expect(try store("f").part().text == "abc")
    }

    @Test("What was left of one file of an offer is continued by an offer of that file alone")
    func alone() throws {
        do {
            let store = try store("a", "b", "c/", "c/d")
            for index in [0, 1, 3] { try store.part(index).write("ab\(index)") }
        }
        #expect(try store("b").part().text == "ab1")
        #expect(try store("c/d").part().text == "ab3")
    }

    @Test("A part under a numbered name is found, even if the name before it is free now")
    func numbered() throws {
        make("f", "old")
        try left("f", "abc")
        #expect(exists("f (2).part"))
        unlink(path("f"))
        let part = try store("f").part()
        #expect(try part.text == "abc")
        #expect(try part.keep("abc") == path("f (2)"))
    }

    @Test("A folder continues in the folder that it began in")
    func continuedFolder() throws {
        mkdir(path("d"), 0o700)
        do {
            let store = try store("d/", "d/a", "d/b")
            _ = try store.open(0)
            try store.receive("one", 1)
        }
        let store = try store("d/", "d/a", "d/b")
        _ = try store.open(0)
        #expect(try store.kept(1)?.path == path("d (2)/a"))
        #expect(try store.receive("two", 2) == path("d (2)/b"))
        store.finish()
        #expect(names == ["d", "d (2)"] && names("d") == [] && names("d (2)") == ["a", "b"])
    }

    @Test("A transfer that another store continues is not touched")
    func locked() throws {
        let part = try store("f").part()
        try part.write("abc")
        let second = try store("f").part()
        #expect(second.count == 0)
        try second.write("abc")
        #expect(try second.keep("abc") == path("f (2)"))
        #expect(try part.keep("abc") == path("f"))
    }

    @Test("One file cannot be received twice at once")
    func twice() throws {
        let store = try store("f", "f")
        let part = try store.part(0)
        #expect(throws: FileFailure.self) { try store.part(1) }
        withExtendedLifetime(part) {}
    }

    @Test("An offer of many files needs few open files, and loses none of them")
    func many() throws {
        let names = (0..<60).map { "f\($0)" }
        let items = names.map { FileItem(path: $0, size: 3) }
        let store = try store(items)
        for index in items.indices { try store.part(index).write("ab") }
        #expect(openFiles < items.count)
        for index in items.indices {
            let part = try store.part(index)
            #expect(part.count == 2)
            try part.keep("ab")
        }
        store.finish()
        #expect(self.names == names.sorted())
    }

    /// The number of descriptors of this process that are open in the folder.
    private var openFiles: Int {
        let folder = inbox
        return TemporaryFolder.names(in: "/proc/self/fd").filter { number in
            guard let target = realpath("/proc/self/fd/\(number)", nil) else { return false }
            defer { free(target) }
            return String(cString: target).hasPrefix(folder)
        }.count
    }

    // MARK: What stays

    @Test("A kept file is known to be kept until the sender knows it as well")
    func kept() throws {
        try store("f").receive("abc")
        #expect(names == ["f", "f.part"])
        unlink(path("f"))
        let store = try store("f")
        let kept = try #require(try store.kept())
        #expect(kept.path == path("f") && kept.hash == hash("abc"))
        store.finish()
        #expect(names == [])
    }

    @Test("A kept file that changed since becomes another file")
    func anew() throws {
        try store("f").receive("abc")
        try store("f").openAnew(0).write("de")
        #expect(text("f") == "abc")
        let store = try store("f")
        #expect(try store.kept()?.hash == hash("abc"))
        let part = try store.openAnew(0)
        #expect(try part.text == "de")
        store.finish()
        #expect(exists("f.part"))
        #expect(try part.keep("de") == path("f (2)"))
        #expect(try store.kept()?.path == path("f (2)"))
        store.finish()
        #expect(names == ["f", "f (2)"])
    }

    @Test("A transfer that never had a byte leaves nothing")
    func nothing() throws {
        do {
            let store = try store("f", "d/", "d/e/", "d/e/g")
            let parts = [try store.part(0), try store.part(3)]
            #expect(names == ["d.part", "f.part"])
            withExtendedLifetime(parts) {}
        }
        #expect(names == [])
    }

    @Test("What never had a byte is removed while the transfer goes on, so its end need not look at each")
    func nothingOfMany() throws {
        let store = try store((0..<60).map { FileItem(path: "f\($0)", size: 3) })
        for index in 0..<60 { _ = try store.part(index) }
        #expect(names.count < 30)
        try store.receive("abc", 3)
        #expect(text("f3") == "abc")
    }

    @Test(
        "A folder that the sender knows of stays when the transfer is cut, and is the same when it is sent again"
    )
    func emptyFolder() throws {
        _ = try store("d/", "d/e/", "f").open(0)
        #expect(names == ["d", "d.part"])
        let store = try store("d/", "d/e/", "f")
        for index in 0...1 { _ = try store.open(index) }
        #expect(names == ["d", "d.part"] && names("d") == ["e"])
        try store.receive("abc", 2)
        store.finish()
        #expect(names == ["d", "f"])
    }

    @Test("The end removes what is complete, and leaves the rest to be continued")
    func finish() throws {
        do {
            let store = try store("a", "b", "d/", "d/e")
            try store.receive("abc", 0)
            let part = try store.part(1)
            try part.write("ab")
            store.finish()
            #expect(names == ["a", "b.part"])
        }
        #expect(names == ["a", "b.part"])
    }

    @Test("What was discarded is gone")
    func discarded() throws {
        do {
            let part = try store("f").part()
            try part.write("abc")
            part.discard()
        }
        #expect(names == [])
    }

    @Test("A file whose folder was moved is not kept, and the reason is said")
    func moved() throws {
        let part = try store("f").part()
        try part.write("abc")
        rename(inbox, "\(outer.path)/elsewhere")
        #expect(failure { try part.keep("abc") }?.description.contains("was moved or removed") == true)
    }

    @Test(
        "What somebody put in the place of the data does not get the file's name", arguments: [true, false])
    func replacedData(_ replaces: Bool) throws {
        let part = try store("f", replacing: replaces).part()
        try part.write("abc")
        unlink(path("f.part/\(key("f"))"))
        make("f.part/\(key("f"))", "of another program")
        #expect(failure { try part.keep("abc") }?.description.contains("removed or replaced") == true)
        part.discard()
        #expect(!exists("f") && text("f.part/\(key("f"))") == "of another program")
    }

    @Test("It is noticed that another program has opened a part", arguments: [O_RDONLY, O_WRONLY])
    func opened(_ mode: Int32) throws {
        let part = try store("f").part()
        try part.write("abc")
        #expect(part.isUntouched)
        // A non-blocking open of the leased file fails the first time, and succeeds when it is repeated.
        let data = path("f.part/\(key("f"))")
        #expect(open(data, mode | O_NONBLOCK) < 0 && errno == EWOULDBLOCK)
        #expect(!part.isUntouched)
        let file = OpenDescriptor(open(data, mode | O_NONBLOCK))
        #expect(file.number >= 0 && !part.isUntouched)
    }
}
