import NighCore
import NighTestKit
import NighFiles

/// Files that one user of a world sends to another, offered again until all have arrived.
///
/// `@unchecked Sendable`: confined to the world's thread, as everything in a world.
final class WorldDelivery: @unchecked Sendable {
    let number: Int
    let sender: Int
    let receiver: Int
    let files: MemoryFiles
    /// How often it was offered, and how many bytes of files the offers have sent.
    var offers = 0
    var transferred = 0
    /// Whether the sender was told that every file has arrived.
    var isDelivered = false

    init(
        number: Int, from sender: Int, to receiver: Int, hasLargeFiles: Bool,
        _ generator: inout SeededGenerator
    ) {
        self.number = number
        self.sender = sender
        self.receiver = receiver
        var contents: [(path: String, bytes: [UInt8])] = [("\(number)/", [])]
        for file in 0..<generator.number(1...4) {
            let count = generator.pick(hasLargeFiles ? [0, 1, 3_000, 40_000, 150_000] : [0, 1, 3_000]) ?? 0
            let bytes = NumberedMessage.bytes(ofStream: Self.key(number, file), from: 0, count: count)
            contents.append(("\(number)/\(file)", bytes))
        }
        files = MemoryFiles(contents)
    }

    /// Distinguishes the content of a file from that of all others, and from that of streams.
    private static func key(_ number: Int, _ file: Int) -> Int { 1 << 40 | number << 4 | file }

    /// Whether the receiver has all files before they are offered on such streams, so that nothing has to be sent.
    func isThere(before purpose: StreamPurpose) -> Bool { purpose == .comparedFiles && number % 4 == 0 }

    /// The files with content, by their paths.
    var copies: [String: [UInt8]] {
        var copies: [String: [UInt8]] = [:]
        for (item, content) in zip(files.items, files.contents) where item.kind == .file && !content.isEmpty {
            copies[item.path] = content
        }
        return copies
    }

    /// The bytes of all files.
    var size: Int { files.contents.reduce(0) { $0 + $1.count } }
}

/// One end of one offer.
///
/// `@unchecked Sendable`: confined to the world's thread, as everything in a world.
final class WorldTransfer: @unchecked Sendable {
    let peer: Int
    let side: any TransferSide
    let steps: TransferSteps
    /// Nil at the receiver until the offer has come.
    var delivery: WorldDelivery?
    var isOver = false

    init(with peer: Int, _ side: any TransferSide, on stream: ByteStream, _ delivery: WorldDelivery?) {
        self.peer = peer
        self.side = side
        self.delivery = delivery
        steps = TransferSteps(side, on: stream)
    }
}
