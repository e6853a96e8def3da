import NighCore
import NighSerial

/// The bytes of a serial line, and the packets of a pipe in them. A frame must mean the same when it is written again,
/// and noise must not swallow the frame behind it.
enum SerialTarget {
    private static let sizes = SequencedStream.Sizes(packet: 100, window: 1_000)
    private static let packets: [[UInt8]] = [
        SequencedStream.abort, packet(1, 0, [1, 2, 3]), packet(1, 3, []), packet(1, 2, [3, 4, 5, 6]),
        packet(2, 2, [0, 0, 0, 0, 0, 0, 9, 0, 0]), packet(2, 0, [0, 0, 0, 0, 0, 0, 9, 0, 1]), packet(3, 3),
    ]
    private static let frames: [SerialFrame] =
        [
            .state(.init(id: 1, pipe: 2, finished: 1, advertisement: [1, 0, 2])), .open(pipe: 2, to: 1),
            .refuse(pipe: 2),
        ] + packets.map { .packet(pipe: 2, $0) }

    private static func packet(_ kind: UInt8, _ number: UInt8, _ rest: [UInt8] = []) -> [UInt8] {
        [kind, 0, 0, 0, 0, 0, 0, 0, number] + rest
    }

    static func run(_ mutator: inout Mutator) throws {
        try readLine(&mutator)
        try receivePackets(&mutator)
    }

    private static func readLine(_ mutator: inout Mutator) throws {
        var line = (0...mutator.number(below: 4)).flatMap { _ in mutator.pick(frames).bytes }
        let isChanged = !mutator.oneIn(8)
        let count = line.split(separator: 0).count
        if isChanged { mutator.change(&line, with: frames.map(\.bytes)) }
        let last = SerialFrame.refuse(pipe: 77)
        var reader = SerialFrameReader()
        var read: [SerialFrame] = []
        for piece in mutator.cut(line + last.bytes) { read += piece.withUnsafeBytes { reader.read($0) } }
        if read.last != last { throw Finding("the last frame is not read") }
        if !isChanged, read.count != count + 1 { throw Finding("\(read.count) of \(count + 1) frames") }
        for frame in read {
            var reader = SerialFrameReader()
            let again = frame.bytes.withUnsafeBytes { reader.read($0) }
            if again != [frame] { throw Finding("\(frame) is read again as \(again)") }
        }
    }

    private static func receivePackets(_ mutator: inout Mutator) throws {
        var now = Moment(nanoseconds: 0)
        let patience = SequencedStream.Patience(answer: .milliseconds(10), nanosecondsPerByte: 0)
        var stream = SequencedStream(sizes, theirWindow: 100, patience: patience, at: now)
        var queue = ByteQueue()
        queue.append(ByteSlice(mutator.bytes(mutator.number(below: 300))))
        stream.write(&queue)
        for _ in 0..<20 {
            let packet = mutator.perhapsChanged(mutator.pick(packets), with: packets)
            guard stream.receive(ByteSlice(packet), at: now) == nil else { return }
            if stream.heldCount > sizes.window { throw Finding("\(stream.heldCount) bytes are held") }
            if mutator.oneIn(2) { _ = stream.read() }
            now = now + .milliseconds(5)
            stream.resend(at: now)
            for _ in 0..<10 {
                guard let packet = stream.nextPacket(at: now) else { break }
                if packet.count > sizes.packet { throw Finding("a packet of \(packet.count) bytes") }
            }
        }
    }
}
