import NighCore
import NighFiles
import NighTestKit
import Testing

@Suite("The two sides of a transfer of files")
struct TransferSideTests {
    private func faults(_ outcomes: [ItemOutcome]) -> [FileFault.Reason?] {
        outcomes.map { if case .failed(let fault, _) = $0 { fault.reason } else { nil } }
    }

    @Test("Files and folders arrive whole, with one end for both sides")
    func arrives() {
        let files = MemoryFiles([
            ("photos/", []), ("photos/one", content(3_000_000)), ("photos/empty", []), ("notes", content(10)),
        ])
        let disk = MemoryDisk()
        let pair = SidePair(files, on: disk, metadata: [1, 2, 3])
        #expect(pair.run())
        #expect(pair.sent?.isComplete == true && pair.received?.isComplete == true)
        #expect(
            disk.files == ["photos/one": files.contents[1], "photos/empty": [], "notes": files.contents[3]])
        #expect(disk.folders == ["photos"] && disk.parts.isEmpty && disk.kept.isEmpty)
        #expect(pair.incoming.metadata == [1, 2, 3])
        #expect(pair.outgoing.progress.done == 3_000_010 && pair.incoming.progress.done == 3_000_010)
        #expect(pair.outgoing.progress.itemsDone == 4 && pair.incoming.progress.itemsDone == 4)
    }

    @Test("A file whose size its sender does not know arrives whole")
    func unknownSize() {
        let files = MemoryFiles([("pipe", content(700_000))], pipes: [0])
        let disk = MemoryDisk()
        let pair = SidePair(files, on: disk)
        #expect(pair.run() && pair.received?.isComplete == true)
        #expect(disk.files == ["pipe": files.contents[0]])
        #expect(!pair.incoming.progress.isTotalKnown)
    }

    @Test("Killed again and again, a transfer sends each byte once and little more", arguments: 1...40)
    func resumes(seed: UInt64) {
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

    @Test("A sender that is killed at its very end and starts again leaves no second copy")
    func killedAtTheEnd() {
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

    @Test("A sender that learns with the receiver's end that all is kept reports it before its own end")
    func decidedWithTheEnd() {
        for isWorking in [false, true] {
            let bytes: [UInt8] = [1, 2, 3]
            let side = OutgoingFiles(MemoryFiles([("a", bytes)]))
            var calls = 0
            side.onDecided = { outcomes in
                #expect(!side.hasEnded && outcomes == side.outcomes)
                calls += 1
            }
            for records in [[.accept, .ready(index: 0)], [.kept(index: 0)]] as [[FileRecord]] {
                settle(side)
                for record in records { record.bytes.withUnsafeBytes { side.receive($0) } }
            }
            if isWorking { settle(side) }
            side.receiveEnd(nil)
            #expect(side.hasEnded && calls == 1)
        }
    }

    /// Has a side work until it waits.
    private func settle(_ side: any TransferSide) {
        while true {
            switch side.work() {
            case .send, .again: continue
            case .wait, .waitForInput, .waitForRoom, .finish, .over: return
            }
        }
    }

    @Test("After a kill, only the pieces that were damaged on the disk are sent again")
    func damagedPart() {
        let files = MemoryFiles([("a", content(5 << 20))])
        let disk = MemoryDisk()
        disk.parts["a"] = files.contents[0]
        disk.parts["a"]?[(2 << 20) + 17] ^= 1
        let pair = SidePair(files, on: disk)
        #expect(pair.run() && pair.received?.isComplete == true)
        #expect(disk.files["a"] == files.contents[0])
        #expect(pair.outgoing.progress.transferred == 1 << 20)
        #expect(pair.outgoing.progress.resumed == 4 << 20)
    }

    @Test("A file that was changed and shortened between two attempts arrives as it is now")
    func changedBetween() {
        let old = content(3 << 20)
        let new = Array(old.prefix(1 << 20)) + content(500_000, seed: 8)
        let files = MemoryFiles([("a", new)])
        let disk = MemoryDisk()
        disk.parts["a"] = old
        let pair = SidePair(files, on: disk)
        #expect(pair.run() && pair.received?.isComplete == true)
        #expect(disk.files["a"] == new)
        #expect(pair.outgoing.progress.transferred == 500_000)
    }

    @Test("What the disk changes while it is written is found and sent again")
    func damagedWhileWritten() {
        let files = MemoryFiles([("a", content(4 << 20))])
        let disk = MemoryDisk()
        disk.writesBeforeDamage = 40
        // Then the receiver reads all of it again at the end.
        disk.isUntouched = false
        let pair = SidePair(files, on: disk)
        #expect(pair.run() && pair.received?.isComplete == true)
        #expect(disk.files["a"] == files.contents[0])
        #expect(pair.outgoing.progress.transferred == 5 << 20)
    }

    @Test("A file kept before the kill is not sent again, and a changed one is received beside it")
    func keptEarlier() {
        let files = MemoryFiles([("a", content(200_000)), ("b", content(1_000))])
        let disk = MemoryDisk()
        disk.files["a"] = files.contents[0]
        disk.kept["a"] = ("a", files.contents[0].withUnsafeBytes { SHA256.hash($0) })
        disk.files["b"] = [1]
        disk.kept["b"] = ("b", [1].withUnsafeBytes { SHA256.hash($0) })
        let pair = SidePair(files, on: disk)
        #expect(pair.run() && pair.received?.isComplete == true)
        #expect(pair.outgoing.progress.transferred == 1_000)
        #expect(disk.files["a (2)"] == nil && disk.files["b (2)"] == files.contents[1])
    }

    @Test("Files that were kept before the kill and are gone at the sender do not stop the others")
    func keptEarlierAndGone() {
        let files = MemoryFiles((0..<40).map { ("file \($0)", content(50, seed: UInt64($0))) })
        let disk = MemoryDisk()
        for (item, bytes) in zip(files.items, files.contents).prefix(30) {
            disk.files[item.path] = bytes
            disk.kept[item.path] = (item.path, bytes.withUnsafeBytes { SHA256.hash($0) })
        }
        files.unreadable = Set(0..<30)
        let pair = SidePair(files, on: disk)
        #expect(pair.run() && pair.received?.isComplete == true && pair.sent?.isComplete == true)
        #expect(pair.incoming.progress.itemsFailed == 30 && pair.outgoing.progress.itemsDone == 10)
        #expect(disk.files.count == 40)
    }

    @Test("A file sent anew counts from its beginning, whatever an earlier attempt has left of it")
    func anewWithLeftover() {
        let files = MemoryFiles([("a", content(400_000))])
        let disk = MemoryDisk()
        disk.files["a"] = [1]
        disk.kept["a"] = ("a", [1].withUnsafeBytes { SHA256.hash($0) })
        disk.parts["a"] = content(300_000, seed: 8)
        let pair = SidePair(files, on: disk)
        #expect(pair.run() && pair.received?.isComplete == true)
        #expect(disk.files["a (2)"] == files.contents[0])
        #expect(pair.incoming.progress.done == 400_000 && pair.outgoing.progress.done == 400_000)
    }

    @Test("What comes from a pipe is sent, also if the same pipe was kept before the kill")
    func keptPipe() {
        let files = MemoryFiles([("pipe", content(300_000))], pipes: [0])
        let disk = MemoryDisk()
        disk.files["pipe"] = [1]
        disk.kept["pipe"] = ("pipe", [1].withUnsafeBytes { SHA256.hash($0) })
        let pair = SidePair(files, on: disk)
        #expect(pair.run() && pair.received?.isComplete == true)
        #expect(disk.files == ["pipe": [1], "pipe (2)": files.contents[0]])
    }

    @Test("A file that cannot be read fails alone, and both sides know which")
    func unreadable() {
        let files = MemoryFiles([("a", content(10)), ("b", content(10)), ("c", content(10))])
        files.unreadable = [1]
        let disk = MemoryDisk()
        let pair = SidePair(files, on: disk)
        #expect(pair.run() && pair.received?.isComplete == true && pair.sent?.isComplete == true)
        #expect(faults(pair.outgoing.outcomes) == [nil, .inaccessible, nil])
        #expect(faults(pair.incoming.outcomes) == [nil, .inaccessible, nil])
        #expect(Set(disk.files.keys) == ["a", "c"])
    }

    @Test("A file that changes while it is sent fails, and what came of it stays")
    func changesWhileSent() {
        let files = MemoryFiles([("a", content(2 << 20))])
        let disk = MemoryDisk()
        let pair = SidePair(files, on: disk)
        pair.run(turns: 60)
        files.contents[0][0] ^= 1
        #expect(pair.run())
        #expect(faults(pair.incoming.outcomes) == [.changed])
        #expect(disk.files.isEmpty && disk.parts["a"] != nil)
    }

    @Test("A full disk pauses the transfer, both sides see why, and it goes on when there is room")
    func fullDisk() {
        let files = MemoryFiles([("a", content(900_000)), ("b", content(900_000))])
        let disk = MemoryDisk()
        let pair = SidePair(files, on: disk)
        pair.run(turns: 30)
        disk.capacity = 1_200_000
        #expect(!pair.run())
        #expect(pair.waitsForRoom)
        #expect(pair.incoming.progress.pause?.isHere == true)
        #expect(pair.outgoing.progress.pause == .init(isHere: false, reason: "no space is left"))
        disk.capacity = .max
        #expect(pair.run() && pair.received?.isComplete == true)
        #expect(disk.files["a"] == files.contents[0] && disk.files["b"] == files.contents[1])
        #expect(pair.outgoing.progress.pause == nil)
    }

    @Test("Room on the disk ends only the pause that the full disk has made")
    func pausedWithFullDisk() {
        let files = MemoryFiles([("a", content(900_000))])
        let disk = MemoryDisk()
        let pair = SidePair(files, on: disk)
        pair.run(turns: 30)
        disk.capacity = 500_000
        #expect(!pair.run() && pair.waitsForRoom)
        pair.incoming.setPaused(true, because: "the battery is low")
        disk.capacity = .max
        #expect(!pair.run())
        #expect(pair.incoming.progress.pause == .init(isHere: true, reason: "the battery is low"))
        #expect(pair.outgoing.progress.pause == .init(isHere: false, reason: "the battery is low"))
        pair.incoming.setPaused(false, because: "")
        #expect(pair.run() && pair.received?.isComplete == true && disk.files["a"] == files.contents[0])
    }

    @Test("A side that resumes shows that the other one has still paused")
    func bothPause() {
        let pair = SidePair(MemoryFiles([("a", content(2 << 20))]), on: MemoryDisk())
        pair.run(turns: 40)
        pair.outgoing.setPaused(true, because: "the train leaves")
        #expect(!pair.run())
        pair.incoming.setPaused(true, because: "the battery is low")
        #expect(!pair.run())
        pair.incoming.setPaused(false, because: "")
        #expect(pair.incoming.progress.pause == .init(isHere: false, reason: "the train leaves"))
        #expect(!pair.run())
        pair.outgoing.setPaused(false, because: "")
        #expect(pair.run() && pair.received?.isComplete == true)
    }

    @Test("A file that cannot be opened because too many are open waits for one that ends")
    func fewDescriptors() {
        let files = MemoryFiles((0..<40).map { ("file \($0)", content(50, seed: UInt64($0))) })
        let disk = MemoryDisk()
        disk.mostOpen = 3
        let pair = SidePair(files, on: disk)
        #expect(pair.run() && pair.received?.isComplete == true)
        #expect(disk.files.count == 40 && pair.incoming.progress.itemsFailed == 0)
    }

    @Test("A receiver that can open no file says so, and goes on once it can")
    func noDescriptors() {
        let files = MemoryFiles([("a", content(50))])
        let disk = MemoryDisk()
        disk.mostOpen = 0
        let pair = SidePair(files, on: disk)
        #expect(!pair.run() && pair.waitsForRoom)
        #expect(
            pair.outgoing.progress.pause == .init(isHere: false, reason: "too many files are open there"))
        disk.mostOpen = 1
        #expect(pair.run() && pair.received?.isComplete == true)
        #expect(disk.files["a"] == files.contents[0] && pair.outgoing.progress.pause == nil)
    }

    @Test("A sender that can open no file waits, and goes on once it can")
    func noDescriptorsAtSender() {
        let files = MemoryFiles([("a", content(50))])
        files.lacksDescriptors = true
        let pair = SidePair(files, on: MemoryDisk())
        #expect(!pair.run() && pair.outgoing.progress.itemsFailed == 0)
        guard case .waitForRoom = pair.outgoing.work() else {
            Issue.record("it does not wait for a while")
            return
        }
        files.lacksDescriptors = false
        #expect(pair.run() && pair.received?.isComplete == true)
    }

    @Test("Folders are made last, so a transfer that is cut before leaves none that is empty")
    func foldersLast() {
        let files = MemoryFiles([("f/", []), ("f/a", content(200_000)), ("g/", [])])
        let disk = MemoryDisk()
        let pair = SidePair(files, on: disk)
        while disk.files.isEmpty, pair.received == nil {
            #expect(disk.folders.isEmpty)
            pair.run(turns: 1)
        }
        #expect(pair.run() && disk.folders == ["f", "g"] && pair.outgoing.progress.itemsDone == 3)
    }

    @Test("An offer for which there is too little room is declined before anything is sent, with the numbers")
    func noRoom() {
        let files = MemoryFiles([("a", content(900_000))])
        let disk = MemoryDisk()
        disk.capacity = 500_000
        let pair = SidePair(files, on: disk)
        #expect(pair.run())
        #expect(
            pair.sent?.fault == FileFault(.noSpace, "900000 bytes are needed, and 500000 are free"))
        #expect(pair.outgoing.progress.transferred == 0)
    }

    @Test("Either program can pause, and nothing moves until it goes on")
    func pauses() {
        for isSender in [true, false] {
            let files = MemoryFiles([("a", content(2 << 20))])
            let pair = SidePair(files, on: MemoryDisk())
            pair.run(turns: 40)
            let (side, other): (any TransferSide, any TransferSide) =
                isSender ? (pair.outgoing, pair.incoming) : (pair.incoming, pair.outgoing)
            side.setPaused(true, because: "the battery is low")
            #expect(!pair.run())
            #expect(side.progress.pause == .init(isHere: true, reason: "the battery is low"))
            #expect(other.progress.pause == .init(isHere: false, reason: "the battery is low"))
            side.setPaused(false, because: "")
            #expect(pair.run() && pair.received?.isComplete == true)
        }
    }

    @Test("A receiver that has said all does not pause, and so learns of the sender's end")
    func pausesTooLate() {
        let side = IncomingFiles()
        for record in [.offer(count: 1, metadata: []), .item(FileItem(.folder, path: "f", size: 0))]
            as [FileRecord]
        {
            record.bytes.withUnsafeBytes { side.receive($0) }
        }
        side.accept(into: MemoryDisk().store(for: side.items))
        settle(side)
        #expect(side.progress.itemsDone == 1)
        side.setPaused(true, because: "the battery is low")
        #expect(side.takesBytes && side.progress.pause == nil)
        side.receiveEnd(nil)
        #expect(side.hasEnded)
    }

    @Test("Either side can stop, and the other has the reason")
    func stops() {
        for isSender in [true, false] {
            let files = MemoryFiles([("a", content(2 << 20))])
            let pair = SidePair(files, on: MemoryDisk())
            pair.run(turns: 40)
            let side: any TransferSide = isSender ? pair.outgoing : pair.incoming
            side.stop(FileFault(.cancelled, "enough"))
            pair.run()
            #expect((isSender ? pair.received : pair.sent)?.fault == FileFault(.cancelled, "enough"))
        }
    }

    @Test("A declined offer says why")
    func declines() {
        let pair = SidePair(MemoryFiles([("a", [1])]), on: MemoryDisk())
        pair.answer = { $0.incoming.stop(FileFault(.declined, "not now")) }
        #expect(pair.run())
        #expect(pair.sent?.fault == FileFault(.declined, "not now"))
    }

    @Test("A file of unknown size may not exceed what the receiver accepts")
    func tooLarge() {
        let pair = SidePair(MemoryFiles([("pipe", content(300_000))], pipes: [0]), on: MemoryDisk())
        pair.answer = { pair in
            pair.incoming.accept(into: pair.disk.store(for: pair.incoming.items), atMost: 200_000)
        }
        #expect(pair.run())
        #expect(faults(pair.outgoing.outcomes) == [.tooLarge])
        #expect(pair.disk.parts.keys.isEmpty, "it cannot be continued")
    }

    @Test("Two thousand small files arrive")
    func manySmallFiles() {
        let files = MemoryFiles((0..<2_000).map { ("file \($0)", content(50, seed: UInt64($0))) })
        let disk = MemoryDisk()
        let pair = SidePair(files, on: disk)
        #expect(pair.run() && pair.received?.isComplete == true)
        #expect(disk.files.count == 2_000)
    }
}
