import NighCore
import NighRecord

/// Records of links, as killed programs, bad disks and people with an editor leave them. They must be read to their end
/// or to an error, in bounded memory, and the same however they are cut. What was read must stay the same when it is
/// written and read again.
enum LinkRecordTarget {
    /// Returns the number of entries that were read.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Int {
        var transcript = LinkTranscript(headLimit: mutator.pick([.max, 0, 7]), wallClock: { 1_000 })
        var record = RecordFormat.header(time: 1_000, headLimit: nil)
        var now = Moment(nanoseconds: 0)
        transcript.convert(.opened(LinkOpening(isDialled: mutator.oneIn(2), scheme: "tcp")), on: 1, at: now) {
            RecordFormat.write($0, to: &record)
        }
        for bytes in mutator.stream() {
            now = now + .milliseconds(Int64(mutator.number(below: 50)))
            for slice in mutator.cut(bytes) {
                let event: LinkEvent = mutator.oneIn(3) ? .sent(slice) : .received(slice)
                transcript.convert(event, on: 1, at: now) { RecordFormat.write($0, to: &record) }
            }
        }
        for _ in 0..<mutator.number(below: 4) {
            let packet = ByteSlice(mutator.bytes(16) + mutator.bytes(mutator.number(below: 40)))
            let event: LinkEvent = mutator.oneIn(2) ? .packetSent(packet) : .packetReceived(packet)
            transcript.convert(event, on: 1, at: now) { RecordFormat.write($0, to: &record) }
        }
        let ending = LinkEnding(
            reason: "the link was lost", code: mutator.oneIn(2) ? nil : 3, isByPeer: false)
        transcript.convert(.ended(ending), on: 1, at: now) { RecordFormat.write($0, to: &record) }
        if mutator.oneIn(3) {
            RecordFormat.write(RecordEntry(time: 5, link: 0, .gap(entries: 1, bytes: 2)), to: &record)
        }
        if !mutator.oneIn(4) { for _ in 0...mutator.number(below: 4) { mutator.mutate(&record) } }

        let whole = read([record])
        let cut = read(mutator.cut(record).map(\.bytes))
        guard whole.entries == cut.entries, whole.fault == cut.fault else {
            throw Finding("a record differs when it arrives in pieces")
        }
        var again = RecordFormat.header(time: 1_000, headLimit: nil)
        var capture = PacketCapture()
        for entry in whole.entries {
            RecordFormat.write(entry, to: &again)
            _ = capture.blocks(for: entry)
            guard case .frame(let frame) = entry.content, frame.isWhole else { continue }
            do throws(WireError) {
                _ = try frame.payload.withUnsafeBytes { bytes throws(WireError) in
                    try FrameContent(type: frame.type, reading: bytes)
                }
            } catch {
                if error.message.isEmpty { throw Finding("a frame is refused without a reason") }
            }
        }
        guard read([again]).entries == whole.entries else {
            throw Finding("entries differ when they are written and read again")
        }
        return whole.entries.count
    }

    private static func read(_ parts: [[UInt8]]) -> (entries: [RecordEntry], fault: RecordReader.Fault?) {
        var reader = RecordReader()
        var entries: [RecordEntry] = []
        do throws(RecordReader.Fault) {
            for part in parts {
                reader.feed(part)
                while let entry = try reader.next() { entries.append(entry) }
            }
            return (entries, nil)
        } catch {
            return (entries, error)
        }
    }
}
