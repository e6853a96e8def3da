import NighCore
import NighFiles
import NighTestKit

/// A transfer of files between two sides, or between one side and an attacker. The bytes of one reach the other
/// changed, twice, in another order, cut anywhere, or not at all.
enum Files {
    /// Records that come out of turn.
    private static let records: [FileRecord] = {
        let hash = [UInt8](repeating: 5, count: 32)
        return [
            .offer(count: 2, metadata: []), .item(FileItem(path: "../x", size: 9)),
            .begin(index: 0, offset: 0), .begin(index: 1, offset: 1),
            .end(index: 0, size: 40, hash: hash), .same(index: 0),
            .missing(index: 1, FileFault(.changed, "")),
            .accept, .have(index: 0, count: 7, hash: hash), .ready(index: 0), .ready(index: 1),
            .whole(index: 0, hash: hash), .stored(index: 0, count: 1), .kept(index: 0), .kept(index: 1),
            .failed(index: 0, FileFault(.other, "x")), .stop(FileFault(.cancelled, "y")), .paused("z"),
            .resumed,
        ]
    }()

    static func run(_ input: inout Input) throws {
        let contents = (0...input.number(below: 4)).map { number in
            let isFolder = !input.isUsual(oneIn: 5)
            let count = isFolder ? 0 : input.pick([0, 1, 40, 3_000])
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) }
            return (path: isFolder ? "\(number)/" : "\(number)", bytes: bytes)
        }
        let files = MemoryFiles(contents, pipes: input.isUsual(oneIn: 6) ? [] : [0])
        let disk = MemoryDisk()
        // The rest of an earlier transfer, sometimes of other files.
        var keptBefore: Set<String> = []
        for (item, bytes) in zip(files.items, files.contents) where item.kind == .file {
            switch input.number(below: 6) {
            case 1: disk.parts[item.path] = Array(bytes.prefix(input.number(below: bytes.count + 1)))
            case 2: disk.parts[item.path] = [UInt8](repeating: 3, count: input.number(below: 2_000))
            case 3:
                keptBefore.insert(item.path)
                disk.files[item.path] = bytes
                disk.kept[item.path] = (item.path, bytes.withUnsafeBytes { SHA256.hash($0) })
            default: break
            }
        }
        disk.isUntouched = input.isUsual()
        let (outgoing, incoming) = (OutgoingFiles(files, metadata: [1, 2]), IncomingFiles())
        try play(outgoing, incoming, disk, &input)
        try check(incoming, disk, keptBefore)
    }

    private static func play(
        _ outgoing: OutgoingFiles, _ incoming: IncomingFiles, _ disk: MemoryDisk, _ input: inout Input
    ) throws {
        // The bytes on their way to the sender, and to the receiver.
        var queues: [[[UInt8]]] = [[], []]
        var hasEnded = [false, false]
        var turns = 0
        while hasEnded.contains(false) {
            turns += 1
            try expect(turns < 100_000, "a transfer does not end")
            var hasMoved = false
            if incoming.isDeciding {
                if input.isUsual(oneIn: 20) {
                    incoming.accept(into: disk.store(for: incoming.items), atMost: 4_000)
                } else {
                    incoming.stop(FileFault(.declined, "no"))
                }
                hasMoved = true
            }
            for (own, other) in [(0, 1), (1, 0)] {
                let side: any TransferSide = own == 0 ? outgoing : incoming
                if !queues[own].isEmpty { hasMoved = true }
                if !queues[own].isEmpty, side.takesBytes, input.number(below: 4) < 3 {
                    let message = queues[own].removeFirst()
                    for slice in input.slices(of: message) { slice.withUnsafeBytes { side.receive($0) } }
                }
                switch side.work() {
                case .send(let bytes):
                    hasMoved = true
                    queues[other] += disturbed(Array(bytes), &input)
                    if !input.isUsual(oneIn: 16) { queues[other].reverse() }
                case .again: hasMoved = true
                case .wait, .waitForInput, .waitForRoom, .finish: break
                case .over: hasEnded[own] = true
                }
            }
            if !hasMoved {
                outgoing.receiveEnd(nil)
                incoming.receiveEnd(nil)
            }
        }
    }

    private static func disturbed(_ message: [UInt8], _ input: inout Input) -> [[UInt8]] {
        switch input.number(below: 8) {
        case 1: [input.edited(message)]
        case 2: []
        case 3: [message, message]
        case 4: [input.pick(records).bytes + message]
        case 5: [message, input.edited(input.pick(records).bytes)]
        default: [message]
        }
    }

    /// Checks that each file with a name is whole and has its stated hash, regardless of the bytes that came.
    private static func check(_ incoming: IncomingFiles, _ disk: MemoryDisk, _ keptBefore: Set<String>) throws
    {
        for (item, outcome) in zip(incoming.items, incoming.outcomes) {
            guard case .kept(let path?, let hash?) = outcome else { continue }
            let content = disk.files[path]
            let isRight = content.map { $0.withUnsafeBytes { SHA256.hash($0) } == hash } ?? false
            try expect(isRight, "\(item.path) was kept and is not there, or with another hash")
            // For a file that was kept before, a sender may claim that its own is equal, whatever size it offers.
            let isWhole = item.size == nil || content?.count == item.size || keptBefore.contains(item.path)
            try expect(isWhole, "\(item.path) was kept with \(content?.count ?? 0) bytes")
        }
        let counts = incoming.progress
        let arePossible = counts.itemsDone + counts.itemsFailed <= counts.items && counts.done >= 0
        try expect(arePossible, "impossible counts: \(counts)")
    }
}
