import NighCore
import NighFiles
import NighTestKit

/// A transfer of files between two sides, or between one side and an attacker: what one says reaches the other changed,
/// twice, in another order, cut anywhere, or not at all.
enum FilesTarget {
    /// The two sides, and what one says to the other.
    private struct Pair {
        let files: MemoryFiles
        let disk = MemoryDisk()
        let outgoing: OutgoingFiles
        let incoming = IncomingFiles()
        /// What is on its way to the sender, and to the receiver.
        var queues: [[[UInt8]]] = [[], []]
        var isChanged = false
        /// The files that an earlier transfer has kept.
        private(set) var keptBefore: Set<String> = []

        init(_ mutator: inout Mutator) {
            var contents: [(path: String, bytes: [UInt8])] = []
            for number in 0...mutator.number(below: 4) {
                let bytes = (0..<mutator.pick([0, 1, 40, 3_000])).map {
                    UInt8(truncatingIfNeeded: $0 &* 7 &+ number)
                }
                contents.append((mutator.number(below: 5) == 0 ? "\(number)/" : "\(number)", bytes))
            }
            for index in contents.indices where contents[index].path.hasSuffix("/") {
                contents[index].bytes = []
            }
            files = MemoryFiles(contents, pipes: mutator.number(below: 6) == 0 ? [0] : [])
            outgoing = OutgoingFiles(files, metadata: [1, 2])
            // What an earlier transfer has left, sometimes of other files.
            for (item, bytes) in zip(files.items, files.contents) where item.kind == .file {
                switch mutator.number(below: 6) {
                case 0: disk.parts[item.path] = Array(bytes.prefix(mutator.number(below: bytes.count + 1)))
                case 1: disk.parts[item.path] = [UInt8](repeating: 3, count: mutator.number(below: 2_000))
                case 2:
                    keptBefore.insert(item.path)
                    disk.files[item.path] = bytes
                    disk.kept[item.path] = (item.path, bytes.withUnsafeBytes { SHA256.hash($0) })
                default: break
                }
            }
            disk.isUntouched = mutator.number(below: 3) != 0
        }
    }

    /// Returns whether a transfer that nobody disturbed has ended well.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Bool {
        var pair = Pair(&mutator)
        let disturbs = mutator.number(below: 4) != 0
        var turns = 0
        var hasEnded = (sender: false, receiver: false)
        while turns < 100_000, !(hasEnded.sender && hasEnded.receiver) {
            turns += 1
            var hasMoved = false
            if pair.incoming.isDeciding {
                if mutator.number(below: 20) == 0 {
                    pair.incoming.stop(FileFault(.declined, "no"))
                } else {
                    pair.incoming.accept(into: pair.disk.store(for: pair.incoming.items), atMost: 4_000)
                }
                hasMoved = true
            }
            for (own, other) in [(0, 1), (1, 0)] {
                let side: any TransferSide = own == 0 ? pair.outgoing : pair.incoming
                if deliver(&pair.queues[own], to: side, &mutator) { hasMoved = true }
                switch side.work() {
                case .send(let bytes):
                    hasMoved = true
                    var message = Array(bytes)
                    if disturbs, mutator.number(below: 12) == 0 {
                        pair.isChanged = true
                        disturb(&message, &pair.queues[other], &mutator)
                    }
                    pair.queues[other].append(message)
                case .again: hasMoved = true
                case .wait, .waitForInput, .waitForRoom, .finish: break
                case .over: if own == 0 { hasEnded.sender = true } else { hasEnded.receiver = true }
                }
            }
            if !hasMoved {
                pair.outgoing.receiveEnd(nil)
                pair.incoming.receiveEnd(nil)
            }
        }
        guard hasEnded.sender, hasEnded.receiver else { throw Finding("a transfer does not end") }
        try check(pair)
        return !pair.isChanged
            && pair.incoming.outcomes.allSatisfy { if case .kept = $0 { true } else { false } }
    }

    private static func deliver(
        _ messages: inout [[UInt8]], to side: any TransferSide, _ mutator: inout Mutator
    ) -> Bool {
        guard !messages.isEmpty, side.takesBytes, mutator.number(below: 3) != 0 else {
            return !messages.isEmpty
        }
        let message = messages.removeFirst()
        let cut = mutator.number(below: message.count + 1)
        message.withUnsafeBytes { bytes in
            side.receive(UnsafeRawBufferPointer(rebasing: bytes[..<cut]))
            side.receive(UnsafeRawBufferPointer(rebasing: bytes[cut...]))
        }
        return true
    }

    /// Changes what is on its way in one way.
    private static func disturb(_ message: inout [UInt8], _ queue: inout [[UInt8]], _ mutator: inout Mutator)
    {
        switch mutator.number(below: 8) {
        case 0: message = []
        case 1: queue.append(message)
        case 2: queue.insert(message, at: mutator.number(below: queue.count + 1))
        case 3: message.removeLast(mutator.number(below: message.count + 1))
        case 4: message = mutator.pick(records).bytes + message
        case 5:
            if message.count > 5 {
                message[5 + mutator.number(below: message.count - 5)] ^= 1 << UInt8(mutator.number(below: 8))
            }
        case 6:
            if !message.isEmpty {
                message[mutator.number(below: min(message.count, 16))] = UInt8(mutator.number(below: 256))
            }
        default:
            guard message.count > 9 else { return }
            let number = mutator.pick(Mutator.edges)
            let start = 5 + mutator.number(below: min(message.count - 5, 24))
            for (offset, byte) in withUnsafeBytes(of: number.bigEndian, Array.init).enumerated()
            where start + offset < message.count {
                message[start + offset] = byte
            }
        }
    }

    /// Records that come out of turn.
    private static let records: [FileRecord] = {
        let hash = [UInt8](repeating: 5, count: 32)
        return [
            .offer(count: 2, metadata: []), .item(FileItem(path: "../x", size: 9)),
            .begin(index: 0, offset: 0),
            .begin(index: 1, offset: 1), .end(index: 0, size: 40, hash: hash), .same(index: 0),
            .missing(index: 1, FileFault(.changed, "")), .accept, .have(index: 0, count: 7, hash: hash),
            .ready(index: 0), .ready(index: 1), .whole(index: 0, hash: hash), .stored(index: 0, count: 1),
            .kept(index: 0), .kept(index: 1), .failed(index: 0, FileFault(.other, "x")),
            .stop(FileFault(.cancelled, "y")), .paused("z"), .resumed,
        ]
    }()

    /// Checks what must hold whatever has come: a file that has a name is whole, and has the hash that was stated for
    /// it.
    private static func check(_ pair: Pair) throws {
        for (item, outcome) in zip(pair.incoming.items, pair.incoming.outcomes) {
            guard case .kept(let path?, let hash?) = outcome else { continue }
            guard let content = pair.disk.files[path] else {
                throw Finding("\(item.path) was kept and is not there")
            }
            guard content.withUnsafeBytes({ SHA256.hash($0) }) == hash else {
                throw Finding("\(item.path) was kept with another hash")
            }
            // A sender may say of a file that was kept before that it is the same, whatever size it offers.
            guard item.size == nil || content.count == item.size || pair.keptBefore.contains(item.path) else {
                throw Finding("\(item.path) was kept with \(content.count) bytes")
            }
        }
        let counts = pair.incoming.progress
        guard counts.itemsDone + counts.itemsFailed <= counts.items, counts.done >= 0 else {
            throw Finding("impossible counts: \(counts)")
        }
    }
}
