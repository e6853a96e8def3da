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

    @Test("the examples of RFC 6455 are read, with binary in place of text")
    func examples() {
        // 5.7: a single-frame masked message, here binary, and a masked pong.
        let single: [UInt8] = [0x82, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
        #expect(Self.read(single) == Found(bytes: Self.hello, ends: [5]))
        let pong: [UInt8] = [0x8A, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
        #expect(Self.read(pong) == Found())
        let ping = [0x89] + pong.dropFirst()
        #expect(Self.read(ping) == Found(pings: [Self.hello]))
        // A fragmented message, masked: "Hel" and "lo".
        let fragments =
            BrowserFrames.frame(2, Array("Hel".utf8), isLast: false)
            + BrowserFrames.frame(0, Array("lo".utf8))
        #expect(Self.read(fragments) == Found(bytes: Self.hello, ends: [5]))
        // 256 bytes and 64 KiB.
        for count in [256, 65_536] {
            let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            #expect(Self.read(BrowserFrames.binary(payload)) == Found(bytes: payload, ends: [count]))
        }
    }

    @Test(
        "messages of each length that is written differently arrive",
        arguments: [0, 1, 125, 126, 127, 65_535, 65_536])
    func lengths(count: Int) {
        let payload = [UInt8](repeating: 9, count: count)
        #expect(Self.read(BrowserFrames.binary(payload)) == Found(bytes: payload, ends: [count]))
    }

    @Test("any cut gives the same bytes as the simplest reader finds", arguments: 0..<200)
    func anyCut(seed: UInt64) {
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

    @Test("bytes are given out as they come, before their frame is whole")
    func early() throws {
        var reader = WebSocketReader()
        let frame = BrowserFrames.binary([1, 2, 3, 4, 5])
        reader.append(ByteSlice(Array(frame.prefix(9))))
        let first = [try reader.next(), try reader.next()]
        #expect(first == [.bytes(ByteSlice([1, 2, 3]), endsMessage: false), nil])
        reader.append(ByteSlice(Array(frame.dropFirst(9))))
        let second = try reader.next()
        #expect(second == .bytes(ByteSlice([4, 5]), endsMessage: true))
    }

    @Test("a frame that is not masked is a mistake")
    func unmasked() {
        #expect(Self.code([0x82, 0x01, 0x07]) == .protocolError)
        #expect(Self.code([0x89, 0x00]) == .protocolError)
    }

    @Test("reserved bits are a mistake, since there are no extensions", arguments: [1, 2, 4, 7] as [UInt8])
    func reserved(bits: UInt8) {
        #expect(Self.code(BrowserFrames.frame(2, [1], reserved: bits)) == .protocolError)
    }

    @Test("text is not taken")
    func text() {
        #expect(Self.code(BrowserFrames.frame(1, Self.hello)) == .unsupportedData)
    }

    @Test("unknown kinds of frames are a mistake", arguments: [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [UInt8])
    func unknown(operation: UInt8) {
        #expect(Self.code(BrowserFrames.frame(operation)) == .protocolError)
    }

    @Test("control frames are whole and short", arguments: [8, 9, 10] as [UInt8])
    func control(operation: UInt8) {
        #expect(Self.code(BrowserFrames.frame(operation, [1, 2], isLast: false)) == .protocolError)
        let long = [UInt8](repeating: 1, count: 126)
        #expect(Self.code(BrowserFrames.frame(operation, long)) == .protocolError)
        #expect(Self.code(BrowserFrames.frame(operation, Array(long.dropLast()))) == nil)
    }

    @Test("a message of more than 65,536 bytes is refused before it comes")
    func tooLong() {
        #expect(Self.code(BrowserFrames.header(2, 65_537)) == .tooBig)
        let half = BrowserFrames.frame(2, [UInt8](repeating: 1, count: 40_000), isLast: false)
        #expect(Self.read(half + BrowserFrames.header(0, 25_536)).code == nil)
        #expect(Self.read(half + BrowserFrames.header(0, 25_537)).code == .tooBig)
    }

    @Test("lengths up to 64 bits are refused, and nothing overflows")
    func hugeLengths() {
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

    @Test("lengths written with more bytes than needed are a mistake")
    func minimalLengths() {
        #expect(Self.code(BrowserFrames.header(2, 125, lengthBytes: 2)) == .protocolError)
        #expect(Self.code(BrowserFrames.header(2, 0, lengthBytes: 8)) == .protocolError)
        #expect(Self.code(BrowserFrames.header(2, 65_535, lengthBytes: 8)) == .protocolError)
        #expect(Self.code(BrowserFrames.header(9, 5, lengthBytes: 2)) == .protocolError)
    }

    @Test("fragments come in order")
    func order() {
        #expect(Self.code(BrowserFrames.frame(0, [1])) == .protocolError)
        let begun = BrowserFrames.frame(2, [1], isLast: false)
        #expect(Self.code(begun + BrowserFrames.frame(2, [1])) == .protocolError)
        let whole = begun + BrowserFrames.frame(0, [2])
        #expect(Self.code(whole + BrowserFrames.frame(0, [3])) == .protocolError)
    }

    @Test("empty frames end messages or add nothing")
    func empty() {
        let bytes =
            BrowserFrames.frame(2, [], isLast: false) + BrowserFrames.frame(0, [1], isLast: false)
            + BrowserFrames.frame(0, [], isLast: false) + BrowserFrames.frame(0, [])
        #expect(Self.read(bytes + BrowserFrames.frame(2)) == Found(bytes: [1], ends: [1, 1]))
    }

    @Test("nothing is read behind a close")
    func close() {
        let bytes = BrowserFrames.frame(8, [3, 0xE8]) + BrowserFrames.frame(1, [1])
        #expect(Self.read(BrowserFrames.binary([1]) + bytes) == Found(bytes: [1], ends: [1], hasClosed: true))
    }

    @Test("what the server writes is not masked, and has the shortest length")
    func writing() {
        #expect(WebSocketFrame.header(of: 0) == [0x82, 0])
        #expect(WebSocketFrame.header(of: 125) == [0x82, 125])
        #expect(WebSocketFrame.header(of: 126) == [0x82, 126, 0, 126])
        #expect(WebSocketFrame.header(of: 65_535) == [0x82, 126, 0xFF, 0xFF])
        #expect(WebSocketFrame.header(of: 65_536) == [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0])
        #expect(WebSocketFrame.pong([1, 2]) == [0x8A, 2, 1, 2])
        #expect(WebSocketFrame.close(.policyViolation) == [0x88, 2, 0x03, 0xF0])
    }
}
