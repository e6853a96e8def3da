import NighCore
import NighTestKit
import Testing

@testable import NighFiles

@Suite("A peer that breaks the protocol of files")
struct HostilePeerTests {
    private let hash = [UInt8](repeating: 0, count: 32)
    private let item = FileRecord.item(FileItem(path: "a", size: 10))

    /// Gives a receiver records of a sender, with the offer accepted as soon as it is whole. Returns how it ended.
    private func receive(_ records: [FileRecord], data: [UInt8] = []) -> (FileFault?, MemoryDisk) {
        let disk = MemoryDisk()
        let side = IncomingFiles()
        for record in records {
            let bytes = if case .data = record { record.bytes + data } else { record.bytes }
            bytes.withUnsafeBytes { side.receive($0) }
            if side.isDeciding { side.accept(into: disk.store(for: side.items)) }
            while true {
                switch side.work() {
                case .send, .again: continue
                case .wait, .waitForInput, .waitForRoom, .finish: break
                case .over(let ending): return (ending.fault, disk)
                }
                break
            }
        }
        return (nil, disk)
    }

    @Test("A record out of turn ends the transfer as a violation, and nothing gets a name")
    func outOfTurn() {
        let offer = [FileRecord.offer(count: 1, metadata: []), item]
        let sequences: [[FileRecord]] = [
            [item], [.accept], [.begin(index: 0, offset: 0)], offer + [item],
            offer + [.offer(count: 1, metadata: [])],
            [
                .offer(count: 3, metadata: []), item, .item(FileItem(path: "f/a", size: 1)),
                .item(FileItem(.folder, path: "/f/", size: 0)),
            ],
            offer + [.begin(index: 1, offset: 0)], offer + [.begin(index: 0, offset: 1)],
            offer + [.data(count: 3)],
            offer + [.end(index: 0, size: 11, hash: hash)], offer + [.end(index: 7, size: 10, hash: hash)],
            offer + [.same(index: 0)], offer + [.kept(index: 0)],
            offer + [.missing(index: 1, FileFault(.other, ""))],
            offer + [
                .begin(index: 0, offset: 0), .data(count: 3), .data(count: 3), .data(count: 3),
                .data(count: 3),
            ],
        ]
        for records in sequences {
            let (fault, disk) = receive(records, data: [1, 2, 3])
            let isTooLong = records.count == 7
            #expect(fault?.reason == .violation || isTooLong, "\(records)")
            #expect(disk.files.isEmpty)
        }
    }

    @Test("A file whose bytes are not those of its hash is never kept")
    func wrongHash() {
        let (fault, disk) = receive(
            [
                .offer(count: 1, metadata: []), .item(FileItem(path: "a", size: 3)),
                .begin(index: 0, offset: 0),
                .data(count: 3), .end(index: 0, size: 3, hash: hash), .end(index: 0, size: 3, hash: hash),
                .end(index: 0, size: 3, hash: hash),
            ], data: [1, 2, 3])
        #expect(fault == nil)
        #expect(disk.files.isEmpty && disk.parts.isEmpty)
    }

    @Test("A size that cannot be added to others ends the transfer")
    func hugeSize() {
        let (fault, _) = receive([
            .offer(count: 2, metadata: []), .item(FileItem(path: "a", size: .max)),
            .item(FileItem(path: "b", size: .max)),
        ])
        #expect(fault?.reason == .violation)
    }

    @Test("Bytes of a file that has failed are dropped, wherever they are said to belong")
    func bytesOfNoFile() {
        let (fault, disk) = receive(
            [
                .offer(count: 2, metadata: []), .item(FileItem(path: "a", size: 3)),
                .item(FileItem(path: "b", size: 3)), .missing(index: 0, FileFault(.other, "")),
                .begin(index: 0, offset: .max), .data(count: 3), .data(count: 3),
            ], data: [1, 2, 3])
        #expect(fault == nil)
        #expect(disk.files.isEmpty && disk.parts.isEmpty)
    }

    @Test("An offer with a list that would fill the memory ends the transfer")
    func longList() {
        let item = FileRecord.item(FileItem(path: String(repeating: "a", count: 4_096), size: 1))
        let items = [FileRecord](repeating: item, count: 5_000)
        let (fault, _) = receive([.offer(count: 6_000, metadata: [])] + items)
        #expect(fault?.reason == .violation)
    }

    @Test("A folder may be offered twice, or not at all, as long as it does not stand behind what is in it")
    func folderOrder() {
        let paths = ["f/", "f/a", "f/", "g/b", "ga/", "f/c/", "f/c/d"]
        let (fault, disk) = receive(
            [.offer(count: paths.count, metadata: [])]
                + paths.map { path in
                    path.hasSuffix("/")
                        ? .item(FileItem(.folder, path: String(path.dropLast()), size: 0))
                        : .item(FileItem(path: path, size: 0))
                } + paths.indices.map { .missing(index: $0, FileFault(.other, "")) })
        #expect(fault == nil && disk.folders.isEmpty)
    }

    @Test("An offer that takes more memory than it may is declined, and is not listed further")
    func tooMuchMemory() {
        let side = IncomingFiles()
        var held = 0
        side.mayHold = { bytes in
            held += bytes
            return held < 3_000
        }
        for record in [.offer(count: 100, metadata: [])] + [FileRecord](repeating: item, count: 100) {
            record.bytes.withUnsafeBytes { side.receive($0) }
        }
        _ = side.work()
        guard case .over(let ending) = side.work() else {
            Issue.record("the transfer goes on")
            return
        }
        #expect(ending.fault?.reason == .declined && side.items.count < 20 && side.heldBytes < 3_000)
    }

    @Test("The offers of a session may take 64 MiB of memory, and each peer a little in any case")
    func memoryOfAllOffers() {
        let offers = IncomingOffers { _ in }
        let (first, second) = (Identity.ephemeral().peerID, Identity.ephemeral().peerID)
        let share = IncomingOffers.mostHeldBytes / 64
        #expect(offers.hold(IncomingOffers.mostHeldBytes, of: first) && !offers.hold(1, of: first))
        #expect(offers.hold(share, of: second) && !offers.hold(1, of: second))
        offers.release(IncomingOffers.mostHeldBytes, of: first)
        #expect(offers.hold(1, of: second) && offers.hold(1, of: first))
    }

    /// Has a sender do all that it can now. Returns the records that it sends.
    private func records(of side: OutgoingFiles) -> [FileRecord] {
        var cutter = RecordCutter()
        var records: [FileRecord] = []
        while true {
            switch side.work() {
            case .send(let bytes):
                try? cutter.cut(bytes) { part throws(WireError) in
                    if case .record(let record) = part { records.append(record) }
                }
            case .again: continue
            case .wait, .waitForInput, .waitForRoom, .finish, .over: return records
            }
        }
    }

    @Test(
        "A receiver that asks for a file again and again gets it four times, and the others still arrive",
        arguments: [1, 60])
    func asksAgain(_ atOnce: Int) {
        let side = OutgoingFiles(MemoryFiles([("a", content(10)), ("b", content(10))]))
        var sent = records(of: side)
        FileRecord.accept.bytes.withUnsafeBytes { side.receive($0) }
        for _ in 0..<60 / atOnce {
            for _ in 0..<atOnce { FileRecord.ready(index: 0).bytes.withUnsafeBytes { side.receive($0) } }
            sent += records(of: side)
        }
        let count = sent.count { if case .end(index: 0, _, _) = $0 { true } else { false } }
        #expect(atOnce == 1 ? count == 4 : count <= 4)
        for record in [.ready(index: 1), .kept(index: 1)] as [FileRecord] {
            record.bytes.withUnsafeBytes { side.receive($0) }
            sent += records(of: side)
        }
        guard case .failed(let fault, _) = side.outcomes[0], case .kept = side.outcomes[1] else {
            Issue.record("\(side.outcomes)")
            return
        }
        #expect(fault.reason == .damaged && sent.contains(.missing(index: 0, fault)))
    }

    @Test("A receiver that says less and less of a file is stored moves nothing")
    func storesLess() {
        let side = OutgoingFiles(MemoryFiles([("a", content(10))]))
        _ = records(of: side)
        for record in [.accept, .ready(index: 0)] as [FileRecord] {
            record.bytes.withUnsafeBytes { side.receive($0) }
        }
        _ = records(of: side)
        for count in [8, 2, 5] {
            FileRecord.stored(index: 0, count: count).bytes.withUnsafeBytes { side.receive($0) }
            #expect(side.progress.done == 8)
        }
    }

    @Test("A receiver that reports or keeps what it cannot have ends the transfer")
    func hostileReceiver() {
        let sequences: [[FileRecord]] = [
            [.ready(index: 0)], [.accept, .ready(index: 3)], [.accept, .kept(index: 0)],
            [.accept, .have(index: 0, count: 0, hash: hash)],
            [.accept, .have(index: 0, count: 2 << 20, hash: hash)],
            [.accept, .have(index: 0, count: 11, hash: hash)],
            [.accept, .have(index: 0, count: 3, hash: hash), .have(index: 0, count: 3, hash: hash)],
            [.accept, .have(index: 2, count: 1, hash: hash)],
            [.accept, .have(index: 0, count: 1, hash: hash), .ready(index: 1)], [.accept, .accept],
            [.accept, .stored(index: 0, count: 1)],
            [.accept, .ready(index: 0), .stored(index: 0, count: 11)],
            [.accept, .failed(index: 9, FileFault(.other, ""))],
            [.accept, .end(index: 0, size: 10, hash: hash)],
        ]
        for records in sequences {
            let side = OutgoingFiles(
                MemoryFiles([("a", content(10)), ("b", content(10)), ("pipe", content(10))], pipes: [2]))
            var fault: FileFault?
            let settle = {
                while fault == nil {
                    switch side.work() {
                    case .send, .again: continue
                    case .wait, .waitForInput, .waitForRoom, .finish: return
                    case .over(let ending): fault = ending.fault
                    }
                }
            }
            settle()
            for record in records {
                record.bytes.withUnsafeBytes { side.receive($0) }
                settle()
            }
            #expect(fault?.reason == .violation, "\(records)")
        }
    }

    @Test("A file that fails in the middle of its report does not end the transfer of the others")
    func failureDuringReport() {
        let size = FileRecord.longestPiece + 1
        let side = OutgoingFiles(MemoryFiles([("a", content(size)), ("b", content(10))]))
        var isOver = false
        let settle = {
            while true {
                switch side.work() {
                case .send, .again: continue
                case .wait, .waitForInput, .waitForRoom, .finish: return
                case .over: return isOver = true
                }
            }
        }
        settle()
        // They come together, before this side has looked at the first.
        for record: FileRecord in [
            .accept, .have(index: 0, count: FileRecord.longestPiece, hash: hash),
            .failed(index: 0, FileFault(.other, "")), .have(index: 1, count: 10, hash: hash),
            .ready(index: 1),
        ] {
            record.bytes.withUnsafeBytes { side.receive($0) }
        }
        settle()
        FileRecord.kept(index: 1).bytes.withUnsafeBytes { side.receive($0) }
        let sent = content(10).withUnsafeBytes { SHA256.hash($0) }
        #expect(!isOver && side.outcomes[1] == .kept(path: nil, hash: sent))
    }

    @Test("Words that a terminal may show have no control characters")
    func words() throws {
        let (words, shown) = ("no\u{1B}[2J\nspace", "no [2J space")
        let records: [FileRecord] = [.paused(words), .stop(FileFault(.other, words))]
        var cutter = RecordCutter()
        var seen: [FileRecord] = []
        try records.flatMap(\.bytes).withUnsafeBytes { bytes in
            try cutter.cut(bytes) { part throws(WireError) in
                if case .record(let record) = part { seen.append(record) }
            }
        }
        #expect(seen == [.paused(shown), .stop(FileFault(.other, shown))])
    }

    @Test("Records travel unchanged, cut anywhere")
    func roundTrip() throws {
        let fault = FileFault(.noSpace, "the disk is full")
        let records: [FileRecord] = [
            .offer(count: 3, metadata: [9]),
            .item(
                FileItem(
                    path: "a/b", size: nil, modified: -5, type: "image/png", metadata: [1])),
            .item(FileItem(.folder, path: "f", size: 0)), .begin(index: 1, offset: 1 << 40),
            .end(index: 1, size: 5, hash: hash), .same(index: 2), .missing(index: 0, fault), .accept,
            .have(index: 1, count: 7, hash: hash), .ready(index: 1), .whole(index: 2, hash: hash),
            .stored(index: 1, count: 9), .kept(index: 0), .failed(index: 1, fault), .stop(fault),
            .paused("why"), .resumed,
        ]
        for size in [1, 7, 1_000] {
            var cutter = RecordCutter()
            var seen: [FileRecord] = []
            let bytes = records.flatMap(\.bytes)
            var position = 0
            while position < bytes.count {
                let piece = Array(bytes[position..<min(position + size, bytes.count)])
                try piece.withUnsafeBytes { raw in
                    try cutter.cut(raw) { part throws(WireError) in
                        if case .record(let record) = part { seen.append(record) }
                    }
                }
                position += size
            }
            #expect(seen == records)
        }
    }
}
