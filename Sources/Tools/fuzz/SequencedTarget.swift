import NighCore

/// Two ends of a stream over packets, and a channel that loses and repeats packets, or changes them. As long as it
/// changes none, each end reads the beginning of what the other has written; whatever it does, no end holds more than
/// its window, and no packet is longer than agreed.
enum SequencedTarget {
    static func run(_ mutator: inout Mutator) throws {
        let sizes = SequencedStream.Sizes(
            packet: 64 + mutator.number(below: 200), window: 1 + mutator.number(below: 900))
        let resends = mutator.oneIn(2)
        let isHostile = mutator.oneIn(2)
        var now = Moment(nanoseconds: 0)
        let end = SequencedStream(
            sizes, theirWindow: sizes.window,
            patience: resends ? .init(answer: .milliseconds(100), nanosecondsPerByte: 1_000) : nil, at: now)
        var ends = [end, end]
        var written: [[UInt8]] = [[], []]
        var read: [[UInt8]] = [[], []]
        var seen: [[UInt8]] = [SequencedStream.abort]
        for _ in 0..<mutator.number(below: 200) {
            let side = mutator.number(below: 2)
            switch mutator.number(below: 8) {
            case 0:
                let bytes = mutator.bytes(mutator.number(below: 400))
                written[side] += bytes
                var queue = ByteQueue()
                queue.append(ByteSlice(bytes))
                ends[side].write(&queue)
            case 1:
                now = now + .milliseconds(Int64(mutator.number(below: 300)))
                ends[side].resend(at: now)
            case 2: if let bytes = ends[side].read() { read[side] += bytes.bytes }
            default:
                guard var packet = ends[1 - side].nextPacket(at: now) else { continue }
                guard packet.count <= sizes.packet else { throw Finding("a packet of \(packet.count) bytes") }
                seen.append(packet)
                if mutator.oneIn(10) { continue }
                if mutator.oneIn(10) { packet = mutator.pick(isHostile ? seen : seen.suffix(1)) }
                if isHostile { mutator.mutate(&packet) }
                guard ends[side].receive(ByteSlice(packet), at: now) == nil else { return }
            }
            guard ends.allSatisfy({ $0.heldCount <= sizes.window }) else {
                throw Finding("more is held than the window of \(sizes.window)")
            }
            guard isHostile || written[1].starts(with: read[0]) && written[0].starts(with: read[1]) else {
                throw Finding("other bytes are read than were written")
            }
        }
    }
}
