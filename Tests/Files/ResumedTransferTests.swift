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

    @Test func `What was received is continued by the same sender`() throws {
        try left("f", "abc")
        let store = try store([FileItem(path: "f", size: 1_000)])
        let part = try store.part()
        #expect(try part.text == "abc")
        try part.write("def")
        #expect(try part.keep("abcdef") == path("f"))
        store.finish()
        #expect(text("f") == "abcdef" && names == ["f"])
    }

    @Test func `Another sender begins under another name, and does not touch what is there`() throws {
        try left("f", "abc")
        let part = try store("f", from: other).part()
        #expect(part.count == 0)
        try part.write("xyz")
        #expect(try part.keep("xyz") == path("f (2)"))
        #expect(try store("f").part().text == "abc")
    }

    @Test func `What was left of one file of an offer is continued by an offer of that file alone`() throws {
        do {
            let store = try store("a", "b", "c/", "c/d")
            for index in [0, 1, 3] { try store.part(index).write("ab\(index)") }
        }
        #expect(try store("b").part().text == "ab1")
        #expect(try store("c/d").part().text == "ab3")
    }

    @Test func `A part under a numbered name is found, even if the name before it is free now`() throws {
        make("f", "old")
        try left("f", "abc")
        #expect(exists("f (2).part"))
        unlink(path("f"))
        let part = try store("f").part()
        #expect(try part.text == "abc")
        #expect(try part.keep("abc") == path("f (2)"))
    }

    @Test func `A folder continues in the folder that it began in`() throws {
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

    @Test func `A transfer that another store continues is not touched`() throws {
        let part = try store("f").part()
        try part.write("abc")
        let second = try store("f").part()
        #expect(second.count == 0)
        try second.write("abc")
        #expect(try second.keep("abc") == path("f (2)"))
        #expect(try part.keep("abc") == path("f"))
    }

    @Test func `One file cannot be received twice at once`() throws {
        let store = try store("f", "f")
        let part = try store.part(0)
        #expect(throws: FileFailure.self) { try store.part(1) }
        withExtendedLifetime(part) {}
    }

    @Test func `An offer of many files needs few open files, and loses none of them`() throws {
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

    @Test func `A kept file is known to be kept until the sender knows it as well`() throws {
        try store("f").receive("abc")
        #expect(names == ["f", "f.part"])
        unlink(path("f"))
        let store = try store("f")
        let kept = try #require(try store.kept())
        #expect(kept.path == path("f") && kept.hash == hash("abc"))
        store.finish()
        #expect(names == [])
    }

    @Test func `A kept file that changed since becomes another file`() throws {
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

    @Test func `A transfer that never had a byte leaves nothing`() throws {
        do {
            let store = try store("f", "d/", "d/e/", "d/e/g")
            let parts = [try store.part(0), try store.part(3)]
            #expect(names == ["d.part", "f.part"])
            withExtendedLifetime(parts) {}
        }
        #expect(names == [])
    }

    @Test func `Parts that never had a byte are removed while the transfer goes on`() throws {
        let store = try store((0..<60).map { FileItem(path: "f\($0)", size: 3) })
        for index in 0..<60 { _ = try store.part(index) }
        #expect(names.count < 30)
        try store.receive("abc", 3)
        #expect(text("f3") == "abc")
    }

    @Test func `A folder that the sender knows of outlives a cut, and is found again`() throws {
        _ = try store("d/", "d/e/", "f").open(0)
        #expect(names == ["d", "d.part"])
        let store = try store("d/", "d/e/", "f")
        for index in 0...1 { _ = try store.open(index) }
        #expect(names == ["d", "d.part"] && names("d") == ["e"])
        try store.receive("abc", 2)
        store.finish()
        #expect(names == ["d", "f"])
    }

    @Test func `The end removes what is complete, and leaves the rest to be continued`() throws {
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

    @Test func `What was discarded is gone`() throws {
        do {
            let part = try store("f").part()
            try part.write("abc")
            part.discard()
        }
        #expect(names == [])
    }

    @Test func `A file whose folder was moved is not kept, and the reason is said`() throws {
        let part = try store("f").part()
        try part.write("abc")
        rename(inbox, "\(outer.path)/elsewhere")
        #expect(failure { try part.keep("abc") }?.description.contains("was moved or removed") == true)
    }

    @Test(arguments: [true, false])
    func `What somebody put in the place of the data does not get the file's name`(_ replaces: Bool) throws {
        let part = try store("f", replacing: replaces).part()
        try part.write("abc")
        unlink(path("f.part/\(key("f"))"))
        make("f.part/\(key("f"))", "of another program")
        #expect(failure { try part.keep("abc") }?.description.contains("removed or replaced") == true)
        part.discard()
        #expect(!exists("f") && text("f.part/\(key("f"))") == "of another program")
    }

    @Test(arguments: [O_RDONLY, O_WRONLY])
    func `It is noticed that another program has opened a part`(_ mode: Int32) throws {
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

    // MARK: The list of what is unfinished

    private func unfinished() throws -> [UnfinishedTransfer] { try ReceivingFolder(inbox).unfinished() }

    @Test func `What is left is listed with its sender, its name and how much there is`() throws {
        make("other.part", "not of a transfer")
        do {
            let store = try store("a\n", "d/b", "d/c", "e")
            try store.part(0).write("abc")
            try store.receive("abc", 1)
            try store.part(2).write("ab")
            try store.receive("abc", 3)
        }
        let list = try unfinished()
        #expect(list.map(\.path) == [path("a_.part"), path("d.part"), path("e.part")])
        #expect(list.map(\.name) == ["a\n", "d", "e"])
        #expect(list.map(\.sender) == [sender, sender, sender])
        #expect(list.map(\.partialBytes) == [3, 2, 0])
        #expect(list.map(\.keptFiles) == [0, 1, 1])
        #expect(list.allSatisfy { $0.lastChange > 1_600_000_000_000_000_000 })
    }

    @Test func `A note that is a link is not read`() throws {
        try left("f", "abc")
        rename(path("f.part/note"), path("note"))
        symlink(path("note"), path("f.part/note"))
        #expect(try unfinished().isEmpty)
    }

    @Test func `What is removed cannot be continued; whole files stay`() throws {
        do {
            let store = try store("d/b", "d/c")
            try store.receive("abc", 0)
            try store.part(1).write("ab")
        }
        let transfer = try #require(try unfinished().first)
        try ReceivingFolder(inbox).remove(transfer)
        #expect(names == ["d"] && names("d") == ["b"])
        #expect(throws: Never.self) { try ReceivingFolder(inbox).remove(transfer) }
    }

    @Test(arguments: ["in use", "other files"])
    func `What is being received, or has other files in its folder, is not removed`(reason: String) throws {
        try left("f", "abc")
        let part = reason == "in use" ? try store("f").part() : nil
        if part == nil { make("f.part/mine", "mine") }
        let transfer = try #require(try unfinished().first)
        let refusal = failure { try ReceivingFolder(inbox).remove(transfer) }
        #expect(refusal?.description.contains(reason) == true)
        if part == nil { #expect(text("f.part/mine") == "mine") }
        withExtendedLifetime(part) {}
    }
}
