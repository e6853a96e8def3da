import NighCore
import NighRecord
import Testing

/// Tests the bytes of packet captures.
@Suite struct PacketCaptureTests {
    private static func word(_ bytes: [UInt8], _ place: Int) -> Int {
        (0..<4).reduce(0) { $0 | Int(bytes[place + $1]) << (8 * $1) }
    }

    /// The blocks in a file; checks that each has its length at both ends.
    private static func blocks(_ bytes: [UInt8]) throws -> [(type: Int, body: [UInt8])] {
        var blocks: [(Int, [UInt8])] = []
        var place = 0
        while place < bytes.count {
            let length = word(bytes, place + 4)
            try #require(length >= 12 && length.isMultiple(of: 4) && place + length <= bytes.count)
            #expect(word(bytes, place + length - 4) == length)
            blocks.append((word(bytes, place), Array(bytes[place + 8..<place + length - 4])))
            place += length
        }
        return blocks
    }

    @Test
    func `Each link is an interface before its first packet, and each frame is a packet after its header`()
        throws
    {
        var capture = PacketCapture()
        var bytes = capture.fileHeader()
        for entry in RecordTests.entries { bytes += capture.blocks(for: entry) }
        let blocks = try Self.blocks(bytes)
        #expect(blocks.map(\.type) == [0x0A0D_0D0A, 1, 6, 6, 6, 6, 6])
        #expect(capture.packetCount == 5)
        #expect(Array(blocks[0].body.prefix(8)) == [0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0])
        #expect(blocks[1].body.starts(with: [147, 0, 0, 0, 0, 0, 0, 0, 2, 0, 6, 0] + Array("link 7".utf8)))
        // The 5-byte message, 6 ns after 1970: 25 bytes, of which the first 16 are the header.
        let packet = blocks[3].body
        #expect(Self.word(packet, 0) == 0 && Self.word(packet, 4) == 0 && Self.word(packet, 8) == 6)
        #expect(Self.word(packet, 12) == 25 && Self.word(packet, 16) == 25)
        #expect(
            Array(packet[20..<45]) == [
                1, 1, 1, 3, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 5, 0x10, 1, 2, 3, 4, 5,
            ])
        // Padding to a multiple of 4 bytes, then the flag of an outgoing packet.
        #expect(Array(packet[45...]) == [0, 0, 0, 2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0])
        // Of this piece of 9,000 bytes, one byte was recorded.
        #expect(Self.word(blocks[4].body, 12) == 21 && Self.word(blocks[4].body, 16) == 16 + 4 + 9_000)
        // A packet of a datagram path, with its own header of 16 bytes.
        let datagram = blocks[5].body
        #expect(Self.word(datagram, 12) == 36 && Self.word(datagram, 16) == 36)
        #expect(
            Array(datagram[20..<56]) == [1, 0, 2, 3, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 7]
                + [1, 2, 3, 4, 5, 6, 7, 8] + [UInt8](repeating: 255, count: 8) + [3, 1, 0x68, 0x69])
        #expect(Self.word(blocks[6].body, 12) == 33 && Self.word(blocks[6].body, 16) == 16 + 16 + 1_168)
    }

    @Test func `A gap is recorded in the packet after it`() throws {
        var capture = PacketCapture()
        _ = capture.blocks(for: RecordEntry(time: 1, link: 0, .gap(entries: 3, bytes: 9)))
        let bytes = capture.blocks(
            for: RecordEntry(
                time: 2, link: 1, .preface(.incoming, ByteSlice(Array("NIGH\u{1}\u{1}\0\0".utf8)))))
        let packet = try #require(try Self.blocks(bytes).last)
        #expect(packet.body.suffix(16) == [4, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    @Test func `The description of a link is cut to the length that a capture can have`() throws {
        let address = TransportAddress(scheme: "far", value: String(repeating: "é", count: 30_000))
        var capture = PacketCapture()
        _ = capture.blocks(
            for: RecordEntry(
                time: 1, link: 7,
                .opened(
                    LinkOpening(
                        isDialled: true, scheme: "far", localAddress: address, remoteAddress: address))))
        let bytes = capture.blocks(
            for: RecordEntry(
                time: 2, link: 7, .preface(.incoming, ByteSlice(Array("NIGH\u{1}\u{1}\0\0".utf8)))))
        let body = try #require(try Self.blocks(bytes).first).body
        // Behind the options with the name of the link.
        let name = Array("link 7".utf8)
        let place = try #require(body.indices.first { body[$0...].starts(with: name) }) + 8
        let length = Int(body[place + 2]) | Int(body[place + 3]) << 8
        #expect(body[place] == 3 && length > 65_000)
        #expect(String(validating: body[(place + 4)..<(place + 4 + length)], as: UTF8.self) != nil)
    }
}
