import NighTestKit
import Testing

@testable import NighCore
@testable import NighWeb

/// Frames as a browser writes them.
enum BrowserFrames {
    static func frame(
        _ operation: UInt8, _ payload: [UInt8] = [], isLast: Bool = true,
        mask: [UInt8] = [0x37, 0xFA, 0x21, 0x3D],
        reserved: UInt8 = 0, lengthBytes: Int? = nil
    ) -> [UInt8] {
        header(
            operation, payload.count, isLast: isLast, mask: mask, reserved: reserved, lengthBytes: lengthBytes
        )
            + payload.enumerated().map { $1 ^ mask[$0 % 4] }
    }

    static func header(
        _ operation: UInt8, _ count: Int, isLast: Bool = true, mask: [UInt8] = [0, 0, 0, 0],
        reserved: UInt8 = 0,
        lengthBytes: Int? = nil
    ) -> [UInt8] {
        let first = (isLast ? 0x80 : 0) | reserved << 4 | operation
        let lengthBytes = lengthBytes ?? (count < 126 ? 0 : count < 65_536 ? 2 : 8)
        let length = (0..<lengthBytes).reversed().map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
        let short: UInt8 = [0: UInt8(truncatingIfNeeded: count), 2: 126, 8: 127][lengthBytes] ?? 0
        return [first, 0x80 | short] + length + mask
    }

    static func binary(_ payload: [UInt8]) -> [UInt8] { frame(2, payload) }
}

@Suite("A reader of a WebSocket") struct WebSocketReaderTests {
    /// The findings of a reader: the bytes of all messages, the place where each ends, and the rest in order.
    private struct Found: Equatable {
        var bytes: [UInt8] = []
        var ends: [Int] = []
        var pings: [[UInt8]] = []
        var hasClosed = false
        var code: WebSocketCode?
    }

    private static func read(_ pieces: [[UInt8]]) -> Found {
        var reader = WebSocketReader()
        var found = Found()
        do throws(WebSocketCode) {
            for piece in pieces {
                // The reader changes what it is given, so each piece is its own.
                reader.append(ByteSlice(piece))
                while let event = try reader.next() {
                    switch event {
                    case .bytes(let bytes, let endsMessage):
                        found.bytes += bytes.bytes
                        if endsMessage { found.ends.append(found.bytes.count) }
                    case .ping(let bytes): found.pings.append(bytes)
                    case .close:
                        found.hasClosed = true
                        return found
                    }
                }
            }
        } catch {
            found.code = error
        }
        return found
    }

    private static func read(_ bytes: [UInt8]) -> Found { read([bytes]) }

    private static func code(_ bytes: [UInt8]) -> WebSocketCode? {
        let inPieces = read(bytes.map { [$0] })
        let whole = read(bytes)
        #expect(inPieces.code == whole.code)
        return whole.code
    }

    private static let hello = Array("Hello".utf8)

    @Test func `The examples of RFC 6455 are read, with binary in place of text`() {
        // 5.7: a single-frame masked message, here binary, and a masked pong.
        let single: [UInt8] = [0x82, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
        #expect(Self.read(single) == Found(bytes: Self.hello, ends: [5]))
        #expect(Self.read([0x8A] + single.dropFirst()) == Found())
        #expect(Self.read([0x89] + single.dropFirst()) == Found(pings: [Self.hello]))
        // A fragmented message, masked: "Hel" and "lo".
        let fragments =
            BrowserFrames.frame(2, Array("Hel".utf8), isLast: false)
            + BrowserFrames.frame(0, Array("lo".utf8))
        #expect(Self.read(fragments) == Found(bytes: Self.hello, ends: [5]))
    }

    @Test(arguments: [0, 1, 125, 126, 127, 65_535, 65_536])
    func `Messages of each length that is written differently arrive`(count: Int) {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        #expect(Self.read(BrowserFrames.binary(payload)) == Found(bytes: payload, ends: [count]))
    }

    @Test(arguments: 0..<200)
    func `Any cut gives the same bytes as the simplest reader finds`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var expected = Found()
        var wire: [UInt8] = []
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            let parts = Int.random(in: 1...4, using: &random)
            for part in 0..<parts {
                let count = [0, 1, 3, 9, 125, 126, 1_000, 16_000].randomElement(using: &random) ?? 0
                let payload = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
                let mask = (0..<4).map { _ in UInt8.random(in: 0...255, using: &random) }
                wire += BrowserFrames.frame(part == 0 ? 2 : 0, payload, isLast: part == parts - 1, mask: mask)
                expected.bytes += payload
                if Int.random(in: 0..<3, using: &random) == 0 {
                    let ping = Array(payload.prefix(125))
                    wire +=
                        BrowserFrames.frame(9, ping, mask: mask) + BrowserFrames.frame(10, ping, mask: mask)
                    expected.pings.append(ping)
                }
            }
            expected.ends.append(expected.bytes.count)
        }
        var (pieces, rest) = ([[UInt8]](), wire[...])
        let most = [1, 7, 300, 20_000].randomElement(using: &random) ?? 1
        while !rest.isEmpty {
            let count = Int.random(in: 1...min(most, rest.count), using: &random)
            pieces.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        #expect(Self.read(pieces) == expected)
    }

    @Test func `Bytes are given out as they come, before their frame is whole`() throws {
        var reader = WebSocketReader()
        let frame = BrowserFrames.binary([1, 2, 3, 4, 5])
        reader.append(ByteSlice(Array(frame.prefix(9))))
        let first = [try reader.next(), try reader.next()]
        #expect(first == [.bytes(ByteSlice([1, 2, 3]), endsMessage: false), nil])
        reader.append(ByteSlice(Array(frame.dropFirst(9))))
        let second = try reader.next()
        #expect(second == .bytes(ByteSlice([4, 5]), endsMessage: true))
    }

    private static let long = [UInt8](repeating: 1, count: 126)
    private static let begun = BrowserFrames.frame(2, [1], isLast: false)
    private static let whole = begun + BrowserFrames.frame(0, [2])

    @Test(
        arguments: [
            // Not masked.
            [0x82, 0x01, 0x07], [0x89, 0x00],
            // Lengths written with more bytes than needed.
            BrowserFrames.header(2, 125, lengthBytes: 2), BrowserFrames.header(2, 0, lengthBytes: 8),
            BrowserFrames.header(2, 65_535, lengthBytes: 8), BrowserFrames.header(9, 5, lengthBytes: 2),
            // Fragments out of order.
            BrowserFrames.frame(0, [1]), begun + BrowserFrames.frame(2, [1]),
            whole + BrowserFrames.frame(0, [3]),
        ]
            // Reserved bits, since there are no extensions; and unknown operations.
            + [1, 2, 4, 7].map { BrowserFrames.frame(2, [1], reserved: $0) }
            + [3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map { BrowserFrames.frame($0) }
            // Control frames that are not whole, or not short.
            + [8, 9, 10].map { BrowserFrames.frame($0, [1, 2], isLast: false) }
            + [8, 9, 10].map { BrowserFrames.frame($0, long) })
    func `A frame that breaks the rules is a mistake`(bytes: [UInt8]) {
        #expect(Self.code(bytes) == .protocolError)
    }

    @Test func `Text is not taken, and the longest control frames are`() {
        #expect(Self.code(BrowserFrames.frame(1, Self.hello)) == .unsupportedData)
        for operation in [8, 9, 10] as [UInt8] {
            #expect(Self.code(BrowserFrames.frame(operation, Array(Self.long.dropLast()))) == nil)
        }
    }

    @Test func `A message of more than 65,536 bytes is refused before it comes`() {
        #expect(Self.code(BrowserFrames.header(2, 65_537)) == .tooBig)
        let half = BrowserFrames.frame(2, [UInt8](repeating: 1, count: 40_000), isLast: false)
        #expect(Self.read(half + BrowserFrames.header(0, 25_536)).code == nil)
        #expect(Self.read(half + BrowserFrames.header(0, 25_537)).code == .tooBig)
    }

    @Test func `Lengths up to 64 bits are refused, and nothing overflows`() {
        for high in [0x7F, 0x80, 0xFF] as [UInt8] {
            let header: [UInt8] = [0x82, 0xFF, high] + [UInt8](repeating: 0xFF, count: 7) + [1, 2, 3, 4]
            #expect(Self.code(header) == .tooBig)
            var next = header
            next[0] = 0x80
            #expect(Self.code(BrowserFrames.frame(2, [1], isLast: false) + next) == .tooBig)
            next[0] = 0x89
            #expect(Self.code(next) == .protocolError)
        }
    }

    @Test func `Empty frames end messages or add nothing`() {
        let bytes =
            BrowserFrames.frame(2, [], isLast: false) + BrowserFrames.frame(0, [1], isLast: false)
            + BrowserFrames.frame(0, [], isLast: false) + BrowserFrames.frame(0, [])
        #expect(Self.read(bytes + BrowserFrames.frame(2)) == Found(bytes: [1], ends: [1, 1]))
    }

    @Test func `Nothing is read behind a close`() {
        let bytes = BrowserFrames.frame(8, [3, 0xE8]) + BrowserFrames.frame(1, [1])
        #expect(Self.read(BrowserFrames.binary([1]) + bytes) == Found(bytes: [1], ends: [1], hasClosed: true))
    }

    @Test func `The frames that the server writes are not masked, and have the shortest length`() {
        #expect(WebSocketFrame.header(of: 0) == [0x82, 0])
        #expect(WebSocketFrame.header(of: 125) == [0x82, 125])
        #expect(WebSocketFrame.header(of: 126) == [0x82, 126, 0, 126])
        #expect(WebSocketFrame.header(of: 65_535) == [0x82, 126, 0xFF, 0xFF])
        #expect(WebSocketFrame.header(of: 65_536) == [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0])
        #expect(WebSocketFrame.pong([1, 2]) == [0x8A, 2, 1, 2])
        #expect(WebSocketFrame.close(.policyViolation) == [0x88, 2, 0x03, 0xF0])
    }
}
