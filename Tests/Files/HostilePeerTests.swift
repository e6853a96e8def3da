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
            if let ending = side.settle().ending { return (ending.fault, disk) }
        }
        return (nil, disk)
    }

    @Test func `A record out of turn ends the transfer as a violation, and nothing gets a name`() {
        let offer = [FileRecord.offer(count: 1, metadata: []), item]
        let long = FileRecord.item(FileItem(path: String(repeating: "a", count: 4_096), size: 1))
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
            // Sizes that cannot be added.
            [.offer(count: 2, metadata: [])]
                + ["a", "b"].map { .item(FileItem(path: $0, size: .max)) },
            // A list that would fill the memory.
            [.offer(count: 6_000, metadata: [])] + [FileRecord](repeating: long, count: 5_000),
        ]
        for records in sequences {
            let (fault, disk) = receive(records, data: [1, 2, 3])
            #expect(fault?.reason == .violation, "\(records.prefix(9))")
            #expect(disk.files.isEmpty)
        }
    }

    @Test func `Bytes that cannot be those of the file are never kept`() {
        let sequences: [[FileRecord]] = [
            // More than its size.
            [.offer(count: 1, metadata: []), item, .begin(index: 0, offset: 0)]
                + [FileRecord](repeating: .data(count: 3), count: 4),
            // Not those of its hash.
            [
                .offer(count: 1, metadata: []), .item(FileItem(path: "a", size: 3)),
                .begin(index: 0, offset: 0), .data(count: 3),
            ] + [FileRecord](repeating: .end(index: 0, size: 3, hash: hash), count: 3),
            // Those of a file that has failed, wherever they are said to belong.
            [
                .offer(count: 2, metadata: []), .item(FileItem(path: "a", size: 3)),
                .item(FileItem(path: "b", size: 3)), .missing(index: 0, FileFault(.other, "")),
                .begin(index: 0, offset: .max), .data(count: 3), .data(count: 3),
            ],
        ]
        for (records, isInParts) in zip(sequences, [true, false, false]) {
            let (fault, disk) = receive(records, data: [1, 2, 3])
            #expect(disk.files.isEmpty && (isInParts || (fault == nil && disk.parts.isEmpty)), "\(records)")
        }
    }

    @Test func `A claim that nobody asked for is a violation`() {
        let side = IncomingFiles()
        side.receive(
            .offer(count: 1, metadata: [], version: .comparing), .item(FileItem(path: "f", size: 3)))
        side.accept(into: MemoryDisk().store(for: side.items))
        side.settle()
        side.receive(.claim(index: 0, size: 3, hash: [UInt8](repeating: 0, count: 32)))
        #expect(side.hasEnded)
    }

    @Test func `A folder may be offered twice, or not at all, if it does not follow its contents`() {
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

    @Test func `An offer that takes more memory than it may is declined, and is not listed further`() {
        let side = IncomingFiles()
        var held = 0
        side.mayHold = { bytes in
            held += bytes
            return held < 3_000
        }
        for record in [.offer(count: 100, metadata: [])] + [FileRecord](repeating: item, count: 100) {
            side.receive(record)
        }
        #expect(side.settle().ending?.fault?.reason == .declined)
        #expect(side.items.count < 20 && side.heldBytes < 3_000)
    }

    @Test func `The offers of a session may take 64 MiB of memory, and each peer a little in any case`() {
        let offers = IncomingOffers { _ in }
        let (first, second) = (Identity.ephemeral().peerID, Identity.ephemeral().peerID)
        let share = IncomingOffers.mostHeldBytes / 64
        #expect(offers.hold(IncomingOffers.mostHeldBytes, of: first) && !offers.hold(1, of: first))
        #expect(offers.hold(share, of: second) && !offers.hold(1, of: second))
        offers.release(IncomingOffers.mostHeldBytes, of: first)
        #expect(offers.hold(1, of: second) && offers.hold(1, of: first))
    }

    @Test(arguments: [1, 60])
    func `A receiver that asks for a file again and again gets it four times`(atOnce: Int) {
        let side = OutgoingFiles(MemoryFiles([("a", content(10)), ("b", content(10))]))
        var sent = side.settle().sent
        side.receive(.accept)
        for _ in 0..<60 / atOnce {
            for _ in 0..<atOnce { side.receive(.ready(index: 0)) }
            sent += side.settle().sent
        }
        let count = sent.count { if case .end(index: 0, _, _) = $0 { true } else { false } }
        #expect(atOnce == 1 ? count == 4 : count <= 4)
        side.receive(.ready(index: 1))
        sent += side.settle().sent
        side.receive(.kept(index: 1))
        sent += side.settle().sent
        guard case .failed(let fault, _) = side.outcomes[0], case .kept = side.outcomes[1] else {
            return _ = Issue.record("\(side.outcomes)")
        }
        #expect(fault.reason == .damaged && sent.contains(.missing(index: 0, fault)))
    }

    @Test func `A receiver that says less and less of a file is stored moves nothing`() {
        let side = OutgoingFiles(MemoryFiles([("a", content(10))]))
        side.settle()
        side.receive(.accept, .ready(index: 0))
        side.settle()
        for count in [8, 2, 5] {
            side.receive(.stored(index: 0, count: count))
            #expect(side.progress.done == 8)
        }
    }

    @Test func `A receiver that reports or keeps what it cannot have ends the transfer`() {
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
            // A question to a sender of version 1.
            [.accept, .compare(index: 0)],
        ]
        for records in sequences {
            let side = OutgoingFiles(
                MemoryFiles([("a", content(10)), ("b", content(10)), ("pipe", content(10))], pipes: [2]))
            side.settle()
            var fault: FileFault?
            for record in records where fault == nil {
                side.receive(record)
                fault = side.settle().ending?.fault
            }
            #expect(fault?.reason == .violation, "\(records)")
        }
    }

    @Test func `A file that fails in the middle of its report does not end the transfer of the others`() {
        let size = FileRecord.longestPiece + 1
        let side = OutgoingFiles(MemoryFiles([("a", content(size)), ("b", content(10))]))
        side.settle()
        // They come together, before this side has looked at the first.
        side.receive(
            .accept, .have(index: 0, count: FileRecord.longestPiece, hash: hash),
            .failed(index: 0, FileFault(.other, "")), .have(index: 1, count: 10, hash: hash),
            .ready(index: 1))
        #expect(side.settle().ending == nil)
        side.receive(.kept(index: 1))
        let sent = content(10).withUnsafeBytes { SHA256.hash($0) }
        #expect(side.outcomes[1] == .kept(path: nil, hash: sent))
    }

    // MARK: Records

    /// Cuts records out of bytes that come in pieces of this size.
    private func cut(_ bytes: [UInt8], size: Int = .max) throws -> [FileRecord] {
        var cutter = RecordCutter()
        var seen: [FileRecord] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            try bytes[start..<min(bytes.count, start + min(size, bytes.count))].withUnsafeBytes { raw in
                try cutter.cut(raw) { part throws(WireError) in
                    if case .record(let record) = part { seen.append(record) }
                }
            }
        }
        return seen
    }

    @Test func `Words that a terminal may show have no control characters`() throws {
        let (words, shown) = ("no\u{1B}[2J\nspace", "no [2J space")
        let records: [FileRecord] = [.paused(words), .stop(FileFault(.other, words))]
        #expect(try cut(records.flatMap(\.bytes)) == [.paused(shown), .stop(FileFault(.other, shown))])
    }

    @Test(arguments: [1, 7, 1_000])
    func `Records travel unchanged, cut anywhere`(size: Int) throws {
        let fault = FileFault(.noSpace, "the disk is full")
        let records: [FileRecord] = [
            .offer(count: 3, metadata: [9]),
            .item(FileItem(path: "a/b", size: nil, modified: -5, type: "image/png", metadata: [1])),
            .item(FileItem(.folder, path: "f", size: 0)), .begin(index: 1, offset: 1 << 40),
            .end(index: 1, size: 5, hash: hash), .same(index: 2), .missing(index: 0, fault), .accept,
            .have(index: 1, count: 7, hash: hash), .ready(index: 1), .whole(index: 2, hash: hash),
            .stored(index: 1, count: 9), .kept(index: 0), .failed(index: 1, fault), .stop(fault),
            .paused("why"), .resumed,
        ]
        #expect(try cut(records.flatMap(\.bytes), size: size) == records)
    }
}
