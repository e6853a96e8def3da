import NighTestKit
import Testing

@testable import NighCore
@testable import NighRecord

/// Tests that records can be read back, and that damage in them is detected.
@Suite struct RecordTests {
    static let peer = PeerID(bytes: Array(0..<32))!

    private static func frame(
        _ direction: PacketDirection, _ type: UInt8, _ payload: [UInt8], of length: Int,
        isCutOff: Bool = false
    ) -> RecordedFrame {
        RecordedFrame(
            direction: direction, type: type, length: length, payload: ByteSlice(payload), isCutOff: isCutOff)
    }

    private static func packet(
        _ direction: PacketDirection, _ connection: UInt64, _ number: UInt64, _ content: [UInt8],
        of length: Int
    ) -> RecordedPacket {
        RecordedPacket(
            direction: direction, connection: connection, number: number, length: length,
            content: ByteSlice(content))
    }

    private static let opening = LinkOpening(
        isDialled: true, scheme: "tcp", localAddress: TransportAddress("tcp://127.0.0.1:1"),
        remoteAddress: TransportAddress("tcp://[::1]:2"))
    private static let greeting = LinkGreeting(
        peer: peer, name: DisplayName(fitting: "Ada's den é"), service: "chat", incarnation: .max)

    private static let contents: [(Int64, UInt64, RecordEntry.Content)] =
        [
            (1_700_000_000_123_456_789, 7, .opened(opening)),
            (2, 7, .opened(LinkOpening(isDialled: false, scheme: "memory"))),
            (3, 7, .secured(peer, wasResumed: true)), (4, 7, .greeted(greeting)),
            (5, 7, .preface(.incoming, ByteSlice(Preface(security: .tls13).bytes))),
            (6, 7, .frame(frame(.outgoing, 0x10, [1, 2, 3, 4, 5], of: 5))),
            (7, 7, .frame(frame(.incoming, 0x14, [9], of: 9_000, isCutOff: true))),
            (7, 7, .packet(packet(.incoming, 0x0102_0304_0506_0708, .max, [3, 1, 0x68, 0x69], of: 4))),
            (7, 7, .packet(packet(.outgoing, 1, 2, [1], of: 1_168))),
            (8, 0, .gap(entries: 12, bytes: 1 << 40)),
            (9, 7, .ended(LinkEnding(reason: "the peer left", code: 0, isByPeer: true))),
            (-1, 7, .ended(LinkEnding(reason: "", code: nil, isByPeer: false))),
        ]
    static let entries = contents.map { RecordEntry(time: $0, link: $1, $2) }

    /// The bytes of entries, without a header.
    private static func bytes(_ time: Int64, _ link: UInt64, _ content: RecordEntry.Content) -> [UInt8] {
        var bytes: [UInt8] = []
        RecordFormat.write(RecordEntry(time: time, link: link, content), to: &bytes)
        return bytes
    }

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

    @Test(arguments: [1, 3, 17, .max])
    func `Every kind of entry is read as it was written, however it is split`(_ cut: Int) throws {
        #expect(try Self.read(Self.record, cut: cut) == Self.entries)
        var reader = RecordReader()
        reader.feed(RecordFormat.header(time: 99, headLimit: 64))
        #expect(try reader.next() == nil)
        #expect(reader.startTime == 99 && reader.headLimit == 64)
    }

    @Test func `The bytes are those in docs/reference/nigh/trace.md`() throws {
        let place: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1] + [0, 0, 0, 0, 0, 0, 0, 2]
        #expect(
            Self.bytes(1, 2, .frame(Self.frame(.outgoing, 3, [0xAA], of: 9)))
                == [0, 0, 0, 24, 5] + place + [1, 3, 0, 0, 0, 9, 0xAA])
        #expect(
            Self.bytes(1, 2, .packet(Self.packet(.outgoing, 3, 4, [5, 6], of: 9)))
                == [0, 0, 0, 40, 8] + place + [1] + [0, 0, 0, 0, 0, 0, 0, 3] + [0, 0, 0, 0, 0, 0, 0, 4]
                + [0, 0, 0, 9, 5, 6])
        #expect(
            RecordFormat.header(time: 1, headLimit: nil) == Array("NIGHREC\n".utf8) + [
                0, 1, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1,
            ])
    }

    @Test func `A record that ends anywhere is read up to its last complete entry`() throws {
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

    @Test func `Data that is not a record, of a later version or damaged is reported`() throws {
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

    @Test func `A frame that claims to be longer than any frame is reported, and no capture is made of it`()
        throws
    {
        let bytes =
            RecordFormat.header(time: 1, headLimit: nil)
            + Self.bytes(1, 1, .frame(Self.frame(.incoming, 3, [], of: 1 << 24)))
        #expect(throws: RecordReader.Fault.self) { try Self.read(bytes) }
    }

    @Test(arguments: [(17, 2), (34, 0xFF), (37, 1)] as [(Int, UInt8)])
    func `A packet that is longer than any, has more bytes than its length, or has no direction is reported`(
        _ place: Int, _ value: UInt8
    ) throws {
        var bytes = Self.bytes(1, 2, .packet(Self.packet(.outgoing, 3, 4, [5, 6], of: 9)))
        let header = RecordFormat.header(time: 1, headLimit: nil)
        #expect(try Self.read(header + bytes).count == 1)
        bytes[4 + place] = value
        #expect(throws: RecordReader.Fault.self) { try Self.read(header + bytes) }
    }

    @Test(arguments: [(0, 1), (2, 3), (8, 9), (9, 9), (.max, 9)])
    func `The kind of a packet is always in its entry, and as much of what follows as is wanted`(
        _ limit: Int, _ kept: Int
    ) throws {
        let content: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8, 9]
        var transcript = LinkTranscript(headLimit: limit, wallClock: { 0 })
        var entries: [RecordEntry] = []
        let packet = [0, 0, 0, 0, 0, 0, 0, 7] + [0, 0, 0, 0, 0, 0, 0, 8] + content
        transcript.convert(.packetReceived(ByteSlice(packet)), on: 1, at: Moment(nanoseconds: 5)) {
            entries.append($0)
        }
        let expected = Self.packet(.incoming, 7, 8, Array(content.prefix(kept)), of: 9)
        #expect(entries == [RecordEntry(time: 0, link: 1, .packet(expected))])
        #expect(expected.isWhole == (kept == 9))
    }

    @Test func `An entry of a later kind is skipped and counted`() throws {
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

    @Test(arguments: [1, 2, 5, 64, .max])
    func `A stream is split into its preface and frames, in whatever pieces it arrived`(_ cut: Int) throws {
        func frame(_ type: UInt8, _ payload: [UInt8], _ length: Int) -> FrameCutter.Piece {
            .frame(Self.frame(.incoming, type, payload, of: length))
        }
        let (whole, rest) = Self.pieces(cut: cut, headLimit: .max)
        #expect(
            whole == [
                .preface(ByteSlice(Preface(security: .plaintext).bytes)), frame(0x10, [1, 2, 3], 3),
                frame(0x20, [], 0), frame(0x11, [UInt8](repeating: 8, count: 300), 300),
            ])
        #expect(rest == Self.frame(.incoming, 0x03, [1, 1], of: 9, isCutOff: true))
        let (heads, restOfHeads) = Self.pieces(cut: cut, headLimit: 2)
        #expect(
            heads.dropFirst() == [frame(0x10, [1, 2], 3), frame(0x20, [], 0), frame(0x11, [8, 8], 300)])
        #expect(restOfHeads?.payload == ByteSlice([1, 1]))
        #expect(Self.pieces(cut: cut, headLimit: 0).0.count == 4)
    }
}
