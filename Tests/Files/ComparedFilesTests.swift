import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighFiles

/// Tests that a file which the receiver has already is not sent again.
@Suite struct ComparedFilesTests: ReceivesFiles {
    let outer = TemporaryFolder()
    let sender = Identity.ephemeral().peerID

    @Test("A file that is there is not sent, and another one of its name and size is")
    func memory() {
        let disk = MemoryDisk()
        disk.files = ["same": content(3 << 20), "other": content(2 << 20).reversed(), "shorter": [1]]
        let files = MemoryFiles([
            ("same", content(3 << 20)), ("other", content(2 << 20)), ("shorter", content(1_000)),
            ("new", [1, 2]),
        ])
        let pair = SidePair(files, on: disk, version: .comparing)
        #expect(pair.run())
        guard case .complete? = pair.sent, case .complete? = pair.received else {
            Issue.record("\(String(describing: pair.sent)), \(String(describing: pair.received))")
            return
        }
        #expect(pair.outgoing.progress.transferred == 2 << 20 + 1_000 + 2)
        #expect(pair.outgoing.progress.done == pair.outgoing.progress.total)
        #expect(pair.incoming.progress.done == pair.incoming.progress.total)
        #expect(disk.files["other (2)"] == content(2 << 20) && disk.files["same (2)"] == nil)
    }

    @Test("A sender of version 1 is not asked, and sends all")
    func firstVersion() {
        let disk = MemoryDisk()
        disk.files = ["same": content(100_000)]
        let pair = SidePair(MemoryFiles([("same", content(100_000))]), on: disk)
        #expect(pair.run())
        #expect(pair.outgoing.progress.transferred == 100_000)
    }

    @Test("On a disk, the file that is there stays the only one")
    func disk() throws {
        make("f", "one")
        let store = try store("f", skipsCopies: true)
        guard case .part(let part) = try store.open(0) else { return }
        #expect(part.mayBeThere())
        let hash = Array("one".utf8).withUnsafeBytes { SHA256.hash($0) }
        var result = Comparison.undecided
        while case .undecided = result { result = try part.compareNext(with: hash) }
        guard case .same(let place) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(place == path("f"))
        store.finish()
        #expect(names == ["f"])
    }

    @Test("On a disk, a file with another content is left alone, and the offered one is received beside it")
    func different() throws {
        make("f", "two")
        let store = try store("f", skipsCopies: true)
        guard case .part(let part) = try store.open(0) else { return }
        let hash = Array("one".utf8).withUnsafeBytes { SHA256.hash($0) }
        var result = Comparison.undecided
        while case .undecided = result { result = try part.compareNext(with: hash) }
        guard case .other = result else {
            Issue.record("\(result)")
            return
        }
        #expect(text("f") == "two")
    }

    @Test("A claim that nobody asked for, and a question to a sender of version 1, are violations")
    func outOfTurn() {
        let hash = [UInt8](repeating: 0, count: 32)
        let incoming = IncomingFiles()
        let disk = MemoryDisk()
        for record in [
            FileRecord.offer(count: 1, metadata: [], version: .comparing),
            .item(FileItem(path: "f", size: 3)),
        ] {
            record.bytes.withUnsafeBytes { incoming.receive($0) }
        }
        incoming.accept(into: disk.store(for: incoming.items))
        for _ in 0..<10 { _ = incoming.work() }
        FileRecord.claim(index: 0, size: 3, hash: hash).bytes.withUnsafeBytes { incoming.receive($0) }
        #expect(incoming.hasEnded)
        let outgoing = OutgoingFiles(MemoryFiles([("f", [1, 2, 3])]))
        for _ in 0..<10 { _ = outgoing.work() }
        for record in [FileRecord.accept, .compare(index: 0)] {
            record.bytes.withUnsafeBytes { outgoing.receive($0) }
        }
        #expect(outgoing.hasEnded)
    }

    @Test(
        "A program stays executable only if the sender is trusted, and never gets more rights than its readers"
    )
    func modes() throws {
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
