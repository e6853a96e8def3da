import NighCore
import NighFiles
import NighTestKit
import Testing

/// A sender and a receiver, joined by two byte streams of limited length that a test moves on.
final class SidePair {
    let outgoing: OutgoingFiles
    let incoming = IncomingFiles()
    let files: MemoryFiles
    let disk: MemoryDisk
    private var toReceiver: [UInt8] = []
    private var toSender: [UInt8] = []
    private var hasSenderFinished = false
    private var hasReceiverFinished = false
    private var generator: SeededGenerator
    /// Called when the offer has come whole; accepts it unless a test wants something else.
    var answer: (SidePair) -> Void = { pair in
        pair.incoming.accept(into: pair.disk.store(for: pair.incoming.items))
    }
    private var hasAnswered = false
    /// How the sides ended.
    private(set) var sent: TransferEnding?
    private(set) var received: TransferEnding?
    /// Whether the receiver waited for room in the last turn.
    private(set) var waitsForRoom = false

    /// The bytes that may be on their way in one direction.
    static let window = 256 << 10

    init(
        _ files: MemoryFiles, on disk: MemoryDisk = MemoryDisk(), seed: UInt64 = 1, metadata: [UInt8] = [],
        version: FileVersion = .first
    ) {
        outgoing = OutgoingFiles(files, metadata: metadata, version: version)
        self.files = files
        self.disk = disk
        generator = SeededGenerator(seed: seed)
    }

    convenience init(_ files: [(path: String, bytes: [UInt8])], pipes: Set<Int> = []) {
        self.init(MemoryFiles(files, pipes: pipes))
    }

    /// Moves both sides until both have ended, and expects that the transfer is complete for both.
    func expectCompletion(_ sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(run(), sourceLocation: sourceLocation)
        #expect(sent?.isComplete == true, sourceLocation: sourceLocation)
        #expect(received?.isComplete == true, sourceLocation: sourceLocation)
    }

    /// Moves both sides until nothing moves any more, and expects that they wait.
    func expectWait(_ sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(!run(), sourceLocation: sourceLocation)
    }

    /// Moves both sides until both have ended, nothing moves any more, or `turns` are over. Returns whether both have
    /// ended.
    @discardableResult
    func run(turns: Int = .max) -> Bool {
        var left = turns
        while left > 0, sent == nil || received == nil {
            left -= 1
            guard turn() else { break }
        }
        return sent != nil && received != nil
    }

    /// Returns whether anything has moved.
    private func turn() -> Bool {
        var hasMoved = false
        // A side that has ended reads no more.
        if received != nil { toReceiver = [] }
        if incoming.isDeciding, !hasAnswered {
            hasAnswered = true
            hasMoved = true
            answer(self)
        }
        if sent == nil, deliver(&toSender, to: outgoing) { hasMoved = true }
        if received == nil, incoming.takesBytes, deliver(&toReceiver, to: incoming) { hasMoved = true }
        if toReceiver.count < Self.window, sent == nil {
            switch outgoing.work() {
            case .send(let bytes): toReceiver += bytes
            case .again: break
            case .wait, .waitForInput, .waitForRoom:
                if hasReceiverFinished, toSender.isEmpty {
                    outgoing.receiveEnd(nil)
                } else {
                    return hasMoved || work()
                }
            case .finish: hasSenderFinished = true
            case .over(let ending):
                sent = ending
                hasSenderFinished = true
            }
            _ = work()
            return true
        }
        return work() || hasMoved
    }

    private func work() -> Bool {
        guard received == nil, toSender.count < Self.window else { return false }
        waitsForRoom = false
        switch incoming.work() {
        case .send(let bytes): toSender += bytes
        case .again: break
        case .waitForRoom:
            waitsForRoom = true
            return false
        case .wait, .waitForInput:
            guard hasSenderFinished, toReceiver.isEmpty else { return false }
            incoming.receiveEnd(nil)
        case .finish: hasReceiverFinished = true
        case .over(let ending):
            received = ending
            hasReceiverFinished = true
        }
        return true
    }

    private func deliver(_ bytes: inout [UInt8], to side: any TransferSide) -> Bool {
        guard !bytes.isEmpty else { return false }
        let count = Int.random(in: 1...min(bytes.count, 20_000), using: &generator)
        bytes.withUnsafeBytes { side.receive(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        bytes.removeFirst(count)
        return true
    }
}

extension TransferSide {
    func receive(_ records: FileRecord...) {
        for record in records { record.bytes.withUnsafeBytes { receive($0) } }
    }

    /// Works until the side waits or has ended. Returns the records that it has sent, and its ending.
    @discardableResult
    func settle() -> (sent: [FileRecord], ending: TransferEnding?) {
        var cutter = RecordCutter()
        var sent: [FileRecord] = []
        while true {
            switch work() {
            case .send(let bytes):
                try? cutter.cut(bytes) { part throws(WireError) in
                    if case .record(let record) = part { sent.append(record) }
                }
            case .again: continue
            case .wait, .waitForInput, .waitForRoom, .finish: return (sent, nil)
            case .over(let ending): return (sent, ending)
            }
        }
    }
}

extension MemoryDisk {
    /// Has a file that an earlier transfer of the same offer kept.
    func keep(_ name: String, _ bytes: [UInt8]) {
        files[name] = bytes
        kept[name] = (name, bytes.withUnsafeBytes { SHA256.hash($0) })
    }
}

extension TransferEnding {
    var isComplete: Bool { if case .complete = self { true } else { false } }

    var fault: FileFault? {
        switch self {
        case .stopped(let fault), .stoppedHere(let fault): fault
        case .complete, .lost: nil
        }
    }
}

/// Bytes that differ everywhere and are the same for the same seed.
func content(_ count: Int, seed: UInt64 = 7) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count { withUnsafeBytes(of: generator.next()) { bytes += $0 } }
    return Array(bytes.prefix(count))
}
