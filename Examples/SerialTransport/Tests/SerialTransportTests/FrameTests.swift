import NighCore
import NighTestKit
import Testing

@testable import SerialTransport

/// Frames in a stream of bytes, and the windows of a pipe.
@Suite struct FrameTests {
    private static let frames: [Frame] = [
        .state(.init(id: 1)),
        .state(.init(id: .max, pipe: 7, finished: 9, isLeaving: true, advertisement: [0, 1, 0, 255])),
        .open(pipe: 3, to: 4), .refuse(pipe: .max), .data(pipe: 1, at: 2, bytes: []),
        .data(pipe: 1, at: 1 << 40, bytes: [UInt8](repeating: 0, count: Frame.pieceLimit)),
        .data(pipe: 1, at: 5, bytes: (0..<Frame.pieceLimit).map { UInt8(truncatingIfNeeded: $0 | 1) }),
        .acknowledge(pipe: 1, .init(received: 2, limit: 3, isGap: true)),
    ]

    private func read(_ bytes: [UInt8], cutInto size: Int = .max) -> [Frame] {
        var reader = FrameReader()
        var frames: [Frame] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(size))
            frames += piece.withUnsafeBytes { reader.read($0) }
            rest = rest.dropFirst(piece.count)
        }
        return frames
    }

    @Test(
        "all frames are decoded as they were encoded, however the wire splits them",
        arguments: [1, 2, 7, 10_000])
    func roundTrip(size: Int) {
        #expect(read(Self.frames.flatMap(\.encoded), cutInto: size) == Self.frames)
    }

    @Test("a frame that was changed is dropped, and the next one is read")
    func changed() {
        let last = Frame.refuse(pipe: 77)
        for frame in Self.frames {
            let bytes = frame.encoded
            for index in stride(from: 1, to: bytes.count - 1, by: max(1, bytes.count / 40)) {
                var changed = bytes
                changed[index] ^= 1
                #expect(read(changed + last.encoded) == [last])
                #expect(read(Array(bytes[..<index]) + last.encoded) == [last])
            }
        }
    }

    @Test("any amount of random bytes yields no frame and takes no memory, and the next frame is read")
    func nonsense() {
        var random = SeededGenerator(seed: 1)
        let noise = (0..<1_000_000).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        let long = [UInt8](repeating: 1, count: 1_000_000)
        #expect(read(noise + [0] + long + Self.frames[0].encoded) == [Self.frames[0]])
    }

    @Test("lost pieces are sent again, and duplicate or early pieces are delivered once and in order")
    func windows() {
        var (sending, receiving) = (SendWindow(), ReceiveWindow())
        let bytes = (0..<5_000).map { UInt8(truncatingIfNeeded: $0 / 3) }
        var queue = ByteQueue()
        for start in stride(from: 0, to: 5_000, by: 700) {
            queue.append(ByteSlice(bytes[start..<min(start + 700, 5_000)]))
        }
        sending.append(&queue)
        var pieces: [(number: UInt64, bytes: [UInt8])] = []
        while let piece = sending.nextPiece() { pieces.append(piece) }
        #expect(pieces.count == 5)
        // The second piece is lost.
        for piece in [pieces[0], pieces[2], pieces[3], pieces[0]] {
            receiving.receive(piece.bytes, at: piece.number)
        }
        receiving.receive(pieces[4].bytes, at: pieces[4].number)
        #expect(receiving.acknowledgement.isGap && receiving.acknowledgement.received == 1_024)
        var isNews = sending.acknowledge(receiving.acknowledgement)
        #expect(isNews)
        while let piece = sending.nextPiece() { receiving.receive(piece.bytes, at: piece.number) }
        #expect(receiving.held.bytes == bytes)
        isNews = sending.acknowledge(receiving.acknowledgement)
        #expect(isNews && sending.waiting == 0)
        // An acknowledgement of bytes that were never sent, and a late one, change nothing.
        for answer in [(9_999, 99_999, false), (3, 0, true)] as [(UInt64, UInt64, Bool)] {
            isNews = sending.acknowledge(.init(received: answer.0, limit: answer.1, isGap: answer.2))
            #expect(!isNews && sending.waiting == 0)
        }
    }

    @Test("a reader that has paused receives no more than it has room for")
    func credit() {
        var (sending, receiving) = (SendWindow(), ReceiveWindow())
        var queue = ByteQueue()
        queue.append(ByteSlice([UInt8](repeating: 1, count: 3 * ReceiveWindow.size)))
        sending.append(&queue)
        while let piece = sending.nextPiece() { receiving.receive(piece.bytes, at: piece.number) }
        #expect(receiving.held.byteCount == ReceiveWindow.size)
        _ = sending.acknowledge(receiving.acknowledgement)
        let more = sending.nextPiece()
        #expect(more == nil)
        let read = receiving.popFirst()?.count ?? 0
        _ = sending.acknowledge(receiving.acknowledgement)
        var room = 0
        while let piece = sending.nextPiece() { room += piece.bytes.count }
        #expect(read > 0 && room == read)
    }

    @Test("an acknowledgement that gives more room than there are numbers is worth a piece at a time")
    func boundlessCredit() {
        var sending = SendWindow()
        var queue = ByteQueue()
        queue.append(ByteSlice([UInt8](repeating: 1, count: 3 * Frame.pieceLimit)))
        sending.append(&queue)
        _ = sending.acknowledge(.init(received: 0, limit: .max, isGap: false))
        let next = sending.nextPiece()
        #expect(next?.bytes.count == Frame.pieceLimit)
    }
}
