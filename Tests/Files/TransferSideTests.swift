import NighCore
import NighFiles
import NighTestKit
import Testing

@Suite("The two sides of a transfer of files")
struct TransferSideTests {
    private func faults(_ side: any TransferSide) -> [FileFault.Reason?] {
        side.outcomes.map { if case .failed(let fault, _) = $0 { fault.reason } else { nil } }
    }

    private func smallFiles(_ count: Int) -> [(path: String, bytes: [UInt8])] {
        (0..<count).map { ("file \($0)", content(50, seed: UInt64($0))) }
    }

    @Test func `Files and folders arrive whole, with one end for both sides`() {
        let files = MemoryFiles([
            ("photos/", []), ("photos/one", content(3_000_000)), ("photos/empty", []), ("notes", content(10)),
        ])
        let pair = SidePair(files, metadata: [1, 2, 3])
        pair.expectCompletion()
        #expect(
            pair.disk.files == [
                "photos/one": files.contents[1], "photos/empty": [], "notes": files.contents[3],
            ])
        #expect(pair.disk.folders == ["photos"] && pair.disk.parts.isEmpty && pair.disk.kept.isEmpty)
        #expect(pair.incoming.metadata == [1, 2, 3])
        for side in [pair.outgoing, pair.incoming] as [any TransferSide] {
            #expect(side.progress.done == 3_000_010 && side.progress.itemsDone == 4)
        }
    }

    @Test func `A file whose size its sender does not know arrives whole`() {
        let pair = SidePair([("pipe", content(700_000))], pipes: [0])
        pair.expectCompletion()
        #expect(pair.disk.files == ["pipe": pair.files.contents[0]])
        #expect(!pair.incoming.progress.isTotalKnown)
    }

    @Test func `Two thousand small files arrive, although only three can be open at a time`() {
        let pair = SidePair(smallFiles(2_000))
        pair.disk.mostOpen = 3
        pair.expectCompletion()
        #expect(pair.disk.files.count == 2_000 && pair.incoming.progress.itemsFailed == 0)
    }

    // MARK: Killed programs

    @Test(arguments: 1...40)
    func `Killed again and again, a transfer sends each byte once and little more`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let files = MemoryFiles([
            ("a", content(2_500_000, seed: seed)),
            ("b", content(Int.random(in: 0...300_000, using: &generator))),
            ("c", content(1_048_576, seed: seed + 1)),
        ])
        let size = files.contents.reduce(0) { $0 + $1.count }
        let disk = MemoryDisk()
        var transferred = 0
        var kills = 0
        while true {
            let pair = SidePair(files, on: disk, seed: generator.next())
            let isOver = pair.run(turns: kills < 30 ? Int.random(in: 1...400, using: &generator) : .max)
            transferred += pair.outgoing.progress.transferred
            // Once the receiver knows that the sender knows, it forgets the transfer: there is nothing to resume.
            if isOver || pair.incoming.hasEnded {
                #expect(pair.received?.isComplete ?? !isOver && pair.sent?.isComplete ?? !isOver)
                break
            }
            kills += 1
        }
        #expect(Set(disk.files.keys) == ["a", "b", "c"])
        for (item, bytes) in zip(files.items, files.contents) { #expect(disk.files[item.path] == bytes) }
        #expect(transferred <= size + kills * (SidePair.window + FileRecord.mostData))
    }

    @Test func `A sender that is killed at its very end and starts again leaves no second copy`() {
        let files = MemoryFiles([("a", [1, 2, 3]), ("b", [4])])
        for turns in 1...60 {
            let disk = MemoryDisk()
            var isDecided = false
            let first = SidePair(files, on: disk)
            first.outgoing.onDecided = { _ in isDecided = true }
            first.run(turns: turns)
            // The receiver goes on without the sender, as after a kill.
            first.incoming.receiveEnd(
                first.received == nil && !isDecided ? NighError(.receiving, .linkLost) : nil)
            if !isDecided { SidePair(files, on: disk).run() }
            #expect(disk.files.keys.sorted() == ["a", "b"], "after \(turns) turns")
        }
    }

    @Test(arguments: [false, true])
    func `A sender reports that all is kept before its own end`(isWorking: Bool) {
        let side = OutgoingFiles(MemoryFiles([("a", [1, 2, 3])]))
        var calls = 0
        side.onDecided = { outcomes in
            #expect(!side.hasEnded && outcomes == side.outcomes)
            calls += 1
        }
        side.settle()
        side.receive(.accept, .ready(index: 0))
        side.settle()
        side.receive(.kept(index: 0))
        if isWorking { side.settle() }
        side.receiveEnd(nil)
        #expect(side.hasEnded && calls == 1)
    }

    /// Contents of a file whose part is on the disk, that part, and the bytes that are sent.
    private static let parts: [(file: [UInt8], part: [UInt8], transferred: Int)] = {
        let (whole, old) = (content(5 << 20), content(3 << 20))
        var damaged = whole
        damaged[(2 << 20) + 17] ^= 1
        return [
            (whole, damaged, 1 << 20),
            // A file that was changed and shortened between two attempts.
            (Array(old.prefix(1 << 20)) + content(500_000, seed: 8), old, 500_000),
        ]
    }()

    @Test(arguments: parts)
    func `After a kill, only the pieces that differ on the disk are sent again`(
        file: [UInt8], part: [UInt8], transferred: Int
    ) {
        let pair = SidePair([("a", file)])
        pair.disk.parts["a"] = part
        pair.expectCompletion()
        #expect(pair.disk.files["a"] == file)
        #expect(pair.outgoing.progress.transferred == transferred)
        #expect(pair.outgoing.progress.resumed == file.count - transferred)
    }

    @Test func `Bytes that the disk changes while they are written are found and sent again`() {
        let pair = SidePair([("a", content(4 << 20))])
        pair.disk.writesBeforeDamage = 40
        // Then the receiver reads all of it again at the end.
        pair.disk.isUntouched = false
        pair.expectCompletion()
        #expect(pair.disk.files["a"] == pair.files.contents[0])
        #expect(pair.outgoing.progress.transferred == 5 << 20)
    }

    @Test func `A file kept before the kill is not sent again, and a changed one is received beside it`() {
        let pair = SidePair(
            [("a", content(200_000)), ("b", content(1_000)), ("pipe", content(300))], pipes: [2])
        pair.disk.keep("a", pair.files.contents[0])
        pair.disk.keep("b", [1])
        // A pipe may have other bytes each time, so it is sent in any case.
        pair.disk.keep("pipe", [2])
        pair.expectCompletion()
        #expect(pair.outgoing.progress.transferred == 1_300)
        #expect(
            pair.disk.files == [
                "a": pair.files.contents[0], "b": [1], "b (2)": pair.files.contents[1], "pipe": [2],
                "pipe (2)": pair.files.contents[2],
            ])
    }

    @Test func `Files that cannot be read fail alone, even if they were kept before, and both know which`() {
        let pair = SidePair(smallFiles(40))
        for index in 0..<30 { pair.disk.keep("file \(index)", pair.files.contents[index]) }
        pair.files.unreadable = Set(0..<30)
        pair.expectCompletion()
        #expect(pair.incoming.progress.itemsFailed == 30 && pair.outgoing.progress.itemsDone == 10)
        let expected =
            [FileFault.Reason?](repeating: .inaccessible, count: 30) + Array(repeating: nil, count: 10)
        #expect(faults(pair.outgoing) == expected && faults(pair.incoming) == expected)
        #expect(pair.disk.files.count == 40)
    }

    @Test func `A file sent anew counts from its beginning, whatever an earlier attempt has left of it`() {
        let pair = SidePair([("a", content(400_000))])
        pair.disk.keep("a", [1])
        pair.disk.parts["a"] = content(300_000, seed: 8)
        pair.expectCompletion()
        #expect(pair.disk.files["a (2)"] == pair.files.contents[0])
        #expect(pair.incoming.progress.done == 400_000 && pair.outgoing.progress.done == 400_000)
    }

    // MARK: Files that are there

    @Test func `A file that is there is not sent, and another one of its name and size is`() {
        let disk = MemoryDisk()
        disk.files = ["same": content(3 << 20), "other": content(2 << 20).reversed(), "shorter": [1]]
        let files = MemoryFiles([
            ("same", content(3 << 20)), ("other", content(2 << 20)), ("shorter", content(1_000)),
            ("new", [1, 2]),
        ])
        let pair = SidePair(files, on: disk, version: .comparing)
        pair.expectCompletion()
        #expect(pair.outgoing.progress.transferred == 2 << 20 + 1_000 + 2)
        #expect(pair.outgoing.progress.done == pair.outgoing.progress.total)
        #expect(pair.incoming.progress.done == pair.incoming.progress.total)
        #expect(disk.files["other (2)"] == content(2 << 20) && disk.files["same (2)"] == nil)
    }

    @Test func `A sender of version 1 is not asked, and sends all`() {
        let pair = SidePair([("same", content(100_000))])
        pair.disk.files = ["same": content(100_000)]
        pair.expectCompletion()
        #expect(pair.outgoing.progress.transferred == 100_000)
    }

    // MARK: Files that fail

    @Test func `A file that changes while it is sent fails, and its part stays`() {
        let pair = SidePair([("a", content(2 << 20))])
        pair.run(turns: 60)
        pair.files.contents[0][0] ^= 1
        #expect(pair.run())
        #expect(faults(pair.incoming) == [.changed])
        #expect(pair.disk.files.isEmpty && pair.disk.parts["a"] != nil)
    }

    @Test func `A file of unknown size may not exceed what the receiver accepts`() {
        let pair = SidePair([("pipe", content(300_000))], pipes: [0])
        pair.answer = { pair in
            pair.incoming.accept(into: pair.disk.store(for: pair.incoming.items), atMost: 200_000)
        }
        #expect(pair.run())
        #expect(faults(pair.outgoing) == [.tooLarge])
        #expect(pair.disk.parts.keys.isEmpty, "it cannot be continued")
    }

    // MARK: Want of room

    @Test(arguments: ["no space is left", "too many files are open there"])
    func `A receiver without room pauses, both see why, and it goes on when there is room`(reason: String) {
        let pair = SidePair([("a", content(900_000)), ("b", content(900_000))])
        if reason == "no space is left" {
            pair.run(turns: 30)
            pair.disk.capacity = 1_200_000
        } else {
            pair.disk.mostOpen = 0
        }
        pair.expectWait()
        #expect(pair.waitsForRoom)
        #expect(pair.incoming.progress.pause?.isHere == true)
        #expect(pair.outgoing.progress.pause == .init(isHere: false, reason: reason))
        (pair.disk.capacity, pair.disk.mostOpen) = (.max, 1)
        pair.expectCompletion()
        #expect(pair.disk.files == ["a": pair.files.contents[0], "b": pair.files.contents[1]])
        #expect(pair.outgoing.progress.pause == nil)
    }

    @Test func `Room on the disk ends only the pause that the full disk has made`() {
        let pair = SidePair([("a", content(900_000))])
        pair.run(turns: 30)
        pair.disk.capacity = 500_000
        pair.expectWait()
        #expect(pair.waitsForRoom)
        pair.incoming.setPaused(true, because: "the battery is low")
        pair.disk.capacity = .max
        pair.expectWait()
        #expect(pair.incoming.progress.pause == .init(isHere: true, reason: "the battery is low"))
        #expect(pair.outgoing.progress.pause == .init(isHere: false, reason: "the battery is low"))
        pair.incoming.setPaused(false, because: "")
        pair.expectCompletion()
    }

    @Test func `A sender that can open no file waits, and goes on once it can`() {
        let pair = SidePair([("a", content(50))])
        pair.files.lacksDescriptors = true
        pair.expectWait()
        #expect(pair.outgoing.progress.itemsFailed == 0)
        guard case .waitForRoom = pair.outgoing.work() else {
            return _ = Issue.record("it does not wait for a while")
        }
        pair.files.lacksDescriptors = false
        pair.expectCompletion()
    }

    @Test func `An offer for which there is too little room is declined at once, with the numbers`() {
        let pair = SidePair([("a", content(900_000))])
        pair.disk.capacity = 500_000
        #expect(pair.run())
        #expect(
            pair.sent?.fault == FileFault(.noSpace, "900000 bytes are needed, and 500000 are free"))
        #expect(pair.outgoing.progress.transferred == 0)
    }

    @Test func `Folders are made last, so a transfer that is cut before leaves none that is empty`() {
        let pair = SidePair([("f/", []), ("f/a", content(200_000)), ("g/", [])])
        while pair.disk.files.isEmpty, pair.received == nil {
            #expect(pair.disk.folders.isEmpty)
            pair.run(turns: 1)
        }
        pair.expectCompletion()
        #expect(pair.disk.folders == ["f", "g"] && pair.outgoing.progress.itemsDone == 3)
    }

    // MARK: Pausing and stopping

    /// A transfer of 2 MiB under way, and both sides of it, of which a test uses the first.
    private func underWay(
        _ isSender: Bool
    ) -> (pair: SidePair, side: any TransferSide, other: any TransferSide) {
        let pair = SidePair([("a", content(2 << 20))])
        pair.run(turns: 40)
        return isSender ? (pair, pair.outgoing, pair.incoming) : (pair, pair.incoming, pair.outgoing)
    }

    @Test(arguments: [true, false])
    func `Either program can pause, and nothing moves until all that have paused go on`(isSender: Bool) {
        let (pair, side, other) = underWay(isSender)
        side.setPaused(true, because: "the battery is low")
        pair.expectWait()
        #expect(side.progress.pause == .init(isHere: true, reason: "the battery is low"))
        #expect(other.progress.pause == .init(isHere: false, reason: "the battery is low"))
        other.setPaused(true, because: "the train leaves")
        pair.expectWait()
        other.setPaused(false, because: "")
        #expect(other.progress.pause == .init(isHere: false, reason: "the battery is low"))
        pair.expectWait()
        side.setPaused(false, because: "")
        pair.expectCompletion()
    }

    @Test func `A receiver that has said all does not pause, and so learns of the sender's end`() {
        let side = IncomingFiles()
        side.receive(.offer(count: 1, metadata: []), .item(FileItem(.folder, path: "f", size: 0)))
        side.accept(into: MemoryDisk().store(for: side.items))
        side.settle()
        #expect(side.progress.itemsDone == 1)
        side.setPaused(true, because: "the battery is low")
        #expect(side.takesBytes && side.progress.pause == nil)
        side.receiveEnd(nil)
        #expect(side.hasEnded)
    }

    @Test(arguments: [true, false])
    func `Either side can stop, and the other has the reason`(isSender: Bool) {
        let (pair, side, _) = underWay(isSender)
        side.stop(FileFault(.cancelled, "enough"))
        pair.run()
        #expect((isSender ? pair.received : pair.sent)?.fault == FileFault(.cancelled, "enough"))
    }

    @Test func `A declined offer says why`() {
        let pair = SidePair([("a", [1])])
        pair.answer = { $0.incoming.stop(FileFault(.declined, "not now")) }
        #expect(pair.run())
        #expect(pair.sent?.fault == FileFault(.declined, "not now"))
    }
}
