import NighTestKit
import Testing

@testable import NighCore
@testable import NighRecord

/// Tests that records can be read back, and that damage in them is detected.
@Suite struct RecordTests {
    static let peer = PeerID(bytes: Array(0..<32))!
    static let entries: [RecordEntry] = [
        RecordEntry(
            time: 1_700_000_000_123_456_789, link: 7,
            .opened(
                LinkOpening(
                    isDialled: true, scheme: "tcp", localAddress: TransportAddress("tcp://127.0.0.1:1"),
                    remoteAddress: TransportAddress("tcp://[::1]:2")))),
        RecordEntry(time: 2, link: 7, .opened(LinkOpening(isDialled: false, scheme: "memory"))),
        RecordEntry(time: 3, link: 7, .secured(peer, wasResumed: true)),
        RecordEntry(
            time: 4, link: 7,
            .greeted(
                LinkGreeting(
                    peer: peer, name: DisplayName(fitting: "Ada's den é"), service: "chat", incarnation: .max)
            )),
        RecordEntry(time: 5, link: 7, .preface(.incoming, ByteSlice(Preface(security: .tls13).bytes))),
        RecordEntry(
            time: 6, link: 7,
            .frame(
                RecordedFrame(
                    direction: .outgoing, type: 0x10, length: 5, payload: ByteSlice([1, 2, 3, 4, 5])))),
        RecordEntry(
            time: 7, link: 7,
            .frame(
                RecordedFrame(
                    direction: .incoming, type: 0x14, length: 9_000, payload: ByteSlice([9]), isCutOff: true))
        ),
        RecordEntry(
            time: 7, link: 7,
            .packet(
                RecordedPacket(
                    direction: .incoming, connection: 0x0102_0304_0506_0708, number: .max, length: 4,
                    content: ByteSlice([3, 1, 0x68, 0x69])))),
        RecordEntry(
            time: 7, link: 7,
            .packet(
                RecordedPacket(
                    direction: .outgoing, connection: 1, number: 2, length: 1_168, content: ByteSlice([1])))),
        RecordEntry(time: 8, link: 0, .gap(entries: 12, bytes: 1 << 40)),
        RecordEntry(time: 9, link: 7, .ended(LinkEnding(reason: "the peer left", code: 0, isByPeer: true))),
        RecordEntry(time: -1, link: 7, .ended(LinkEnding(reason: "", code: nil, isByPeer: false))),
    ]

    static var record: [UInt8] {
        var bytes = RecordFormat.header(time: 99, headLimit: nil)
        for entry in entries { RecordFormat.write(entry, to: &bytes) }
        return bytes
    }

    static func read(_ bytes: some Collection<UInt8>, cut: Int = .max) throws -> [RecordEntry] {
        var reader = RecordReader()
        var entries: [RecordEntry] = []
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            reader.feed(rest.prefix(cut))
            rest = rest.dropFirst(cut)
            while let entry = try reader.next() { entries.append(entry) }
        }
        return entries
    }

    @Test("Every kind of entry is read as it was written, however it is split", arguments: [1, 3, 17, .max])
    func roundTrip(_ cut: Int) throws {
        #expect(try Self.read(Self.record, cut: cut) == Self.entries)
        var reader = RecordReader()
        reader.feed(RecordFormat.header(time: 99, headLimit: 64))
        #expect(try reader.next() == nil)
        #expect(reader.startTime == 99 && reader.headLimit == 64)
    }

    @Test("The bytes are those in docs/reference/nigh/trace.md")
    func bytes() throws {
        var bytes: [UInt8] = []
        RecordFormat.write(
            RecordEntry(
                time: 1, link: 2,
                .frame(RecordedFrame(direction: .outgoing, type: 3, length: 9, payload: ByteSlice([0xAA])))),
            to: &bytes)
        #expect(
            bytes == [0, 0, 0, 24, 5] + [0, 0, 0, 0, 0, 0, 0, 1] + [0, 0, 0, 0, 0, 0, 0, 2] + [
                1, 3, 0, 0, 0, 9, 0xAA,
            ])
        bytes = []
        RecordFormat.write(
            RecordEntry(
                time: 1, link: 2,
                .packet(
                    RecordedPacket(
                        direction: .outgoing, connection: 3, number: 4, length: 9, content: ByteSlice([5, 6]))
                )),
            to: &bytes)
        #expect(
            bytes == [0, 0, 0, 40, 8] + [0, 0, 0, 0, 0, 0, 0, 1] + [0, 0, 0, 0, 0, 0, 0, 2] + [1]
                + [0, 0, 0, 0, 0, 0, 0, 3] + [0, 0, 0, 0, 0, 0, 0, 4] + [0, 0, 0, 9, 5, 6])
        #expect(
            RecordFormat.header(time: 1, headLimit: nil) == Array("NIGHREC\n".utf8) + [
                0, 1, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1,
            ])
    }

    @Test("A record that ends anywhere is read up to its last complete entry")
    func cutOff() throws {
        let record = Self.record
        var ends: [Int] = []
        var bytes = RecordFormat.header(time: 99, headLimit: nil)
        for entry in Self.entries {
            RecordFormat.write(entry, to: &bytes)
            ends.append(bytes.count)
        }
        for count in 0...record.count {
            let whole = ends.filter { $0 <= count }.count
            #expect(try Self.read(record.prefix(count)).count == whole, "\(count)")
        }
    }

    @Test("Data that is not a record, of a later version or damaged is reported")
    func faults() throws {
        #expect(throws: RecordReader.Fault.noRecord) { try Self.read(Array("\u{1F}\u{8B}".utf8)) }
        var later = Self.record
        later[9] = 2
        #expect(throws: RecordReader.Fault.version(2)) { try Self.read(later) }
        var long = Self.record
        long[24] = 0xFF
        #expect(
            throws: RecordReader.Fault.damaged(
                at: 24, "an entry of \(0xFF00_0000 + Int(long[26]) << 8 + Int(long[27])) bytes")
        ) {
            try Self.read(long)
        }
        var wrong = Self.record
        wrong[24 + 4 + 17] = 9
        #expect(throws: RecordReader.Fault.damaged(at: 24, "neither 0 nor 1")) { try Self.read(wrong) }
    }

    @Test("A frame that claims to be longer than any frame is reported, and no capture is made of it")
    func impossibleLength() throws {
        var bytes = RecordFormat.header(time: 1, headLimit: nil)
        RecordFormat.write(
            RecordEntry(
                time: 1, link: 1,
                .frame(RecordedFrame(direction: .incoming, type: 3, length: 1 << 24, payload: ByteSlice([])))),
            to: &bytes)
        #expect(throws: RecordReader.Fault.self) { try Self.read(bytes) }
    }

    @Test(
        "A packet that is longer than any, has more bytes than its length, or has no direction is reported",
        arguments: [(17, 2), (34, 0xFF), (37, 1)] as [(Int, UInt8)])
    func impossiblePacket(_ place: Int, _ value: UInt8) throws {
        var bytes: [UInt8] = []
        RecordFormat.write(
            RecordEntry(
                time: 1, link: 2,
                .packet(
                    RecordedPacket(
                        direction: .outgoing, connection: 3, number: 4, length: 9, content: ByteSlice([5, 6]))
                )),
            to: &bytes)
        let header = RecordFormat.header(time: 1, headLimit: nil)
        #expect(try Self.read(header + bytes).count == 1)
        bytes[4 + place] = value
        #expect(throws: RecordReader.Fault.self) { try Self.read(header + bytes) }
    }

    @Test(
        "The kind of a packet is always in its entry, and as much of what follows as is wanted",
        arguments: [(0, 1), (2, 3), (8, 9), (9, 9), (.max, 9)])
    func heads(_ limit: Int, _ kept: Int) throws {
        let content: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8, 9]
        var transcript = LinkTranscript(headLimit: limit, wallClock: { 0 })
        var entries: [RecordEntry] = []
        let packet = [0, 0, 0, 0, 0, 0, 0, 7] + [0, 0, 0, 0, 0, 0, 0, 8] + content
        transcript.convert(.packetReceived(ByteSlice(packet)), on: 1, at: Moment(nanoseconds: 5)) {
            entries.append($0)
        }
        let expected = RecordedPacket(
            direction: .incoming, connection: 7, number: 8, length: 9,
            content: ByteSlice(content.prefix(kept)))
        #expect(entries == [RecordEntry(time: 0, link: 1, .packet(expected))])
        #expect(expected.isWhole == (kept == 9))
    }

    @Test("An entry of a later kind is skipped and counted")
    func unknown() throws {
        var bytes = RecordFormat.header(time: 1, headLimit: nil) + [0, 0, 0, 3, 200, 1, 2]
        RecordFormat.write(Self.entries[2], to: &bytes)
        var reader = RecordReader()
        reader.feed(bytes)
        #expect(try reader.next() == Self.entries[2])
        #expect(reader.unknownEntryCount == 1)
    }

    // MARK: Frames

    private static let stream: [UInt8] =
        Preface(security: .plaintext).bytes + [0, 0, 3, 0x10, 1, 2, 3] + [0, 0, 0, 0x20]
        + [0, 1, 0x2C, 0x11] + [UInt8](repeating: 8, count: 300) + [0, 0, 9, 0x03, 1, 1]

    private static func pieces(cut: Int, headLimit: Int) -> ([FrameCutter.Piece], RecordedFrame?) {
        var cutter = FrameCutter(.incoming, headLimit: headLimit)
        var pieces: [FrameCutter.Piece] = []
        var rest = stream[...]
        while !rest.isEmpty {
            cutter.feed(ByteSlice(rest.prefix(cut))) { pieces.append($0) }
            rest = rest.dropFirst(cut)
        }
        return (pieces, cutter.rest())
    }

    @Test(
        "A stream is split into its preface and frames, in whatever pieces it arrived",
        arguments: [1, 2, 5, 64, .max])
    func cutting(_ cut: Int) throws {
        func frame(_ type: UInt8, _ payload: [UInt8], _ length: Int, isCutOff: Bool = false) -> RecordedFrame
        {
            RecordedFrame(
                direction: .incoming, type: type, length: length, payload: ByteSlice(payload),
                isCutOff: isCutOff)
        }
        let (whole, rest) = Self.pieces(cut: cut, headLimit: .max)
        #expect(
            whole == [
                .preface(ByteSlice(Preface(security: .plaintext).bytes)), .frame(frame(0x10, [1, 2, 3], 3)),
                .frame(frame(0x20, [], 0)), .frame(frame(0x11, [UInt8](repeating: 8, count: 300), 300)),
            ])
        #expect(rest == frame(0x03, [1, 1], 9, isCutOff: true))
        let (heads, restOfHeads) = Self.pieces(cut: cut, headLimit: 2)
        #expect(
            heads.dropFirst() == [
                .frame(frame(0x10, [1, 2], 3)), .frame(frame(0x20, [], 0)), .frame(frame(0x11, [8, 8], 300)),
            ])
        #expect(restOfHeads?.payload == ByteSlice([1, 1]))
        #expect(Self.pieces(cut: cut, headLimit: 0).0.count == 4)
    }
}
