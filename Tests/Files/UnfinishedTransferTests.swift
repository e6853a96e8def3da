import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighFiles

/// Tests the list of what was not received completely.
@Suite struct UnfinishedTransferTests: ReceivesFiles {
    let outer = TemporaryFolder()
    let sender = Identity.ephemeral().peerID

    private func unfinished() throws -> [UnfinishedTransfer] { try ReceivingFolder(inbox).unfinished() }

    @Test("What is left is listed with its sender, its name and how much there is")
    func list() throws {
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

    @Test("A note that is a link is not read")
    func link() throws {
        try store("f").part().write("abc")
        rename(path("f.part/note"), path("note"))
        symlink(path("note"), path("f.part/note"))
        #expect(try unfinished().isEmpty)
    }

    @Test("What is removed cannot be continued; whole files stay")
    func removal() throws {
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

    @Test("What is being received is not removed")
    func inUse() throws {
        let store = try store("f")
        let part = try store.part()
        try part.write("abc")
        let transfer = try #require(try unfinished().first)
        let refusal = failure { try ReceivingFolder(inbox).remove(transfer) }
        #expect(refusal?.description.contains("in use") == true)
        withExtendedLifetime((store, part)) {}
    }

    @Test("A folder with other files stays, and that is said")
    func otherFiles() throws {
        try store("f").part().write("abc")
        make("f.part/mine", "mine")
        let transfer = try #require(try unfinished().first)
        #expect(
            failure { try ReceivingFolder(inbox).remove(transfer) }?.description.contains("other files")
                == true)
        #expect(text("f.part/mine") == "mine")
    }
}
