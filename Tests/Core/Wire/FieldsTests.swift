import Testing

@testable import NighCore

@Suite struct FieldsTests {
    private func reading<Result>(
        _ bytes: [UInt8], _ body: (inout FieldReader) throws(WireError) -> Result
    ) throws(WireError) -> Result {
        try Frames.reading(bytes) { raw throws(WireError) in
            var reader = FieldReader(raw)
            return try body(&reader)
        }
    }

    private func shortText(_ bytes: [UInt8]) throws(WireError) -> String {
        try reading(bytes) { reader throws(WireError) in try reader.shortText("a name") }
    }

    private func written(short text: String) -> [UInt8] {
        var writer = FieldWriter()
        writer.write(short: text)
        return writer.bytes
    }

    @Test func `Numbers are in network order`() throws {
        var writer = FieldWriter()
        writer.write(UInt8(1))
        writer.write(UInt16(0x0203))
        writer.write(UInt32(0x0405_0607))
        writer.write(UInt64.max)
        #expect(writer.bytes == [1, 2, 3, 4, 5, 6, 7] + [UInt8](repeating: 255, count: 8))
        try reading(writer.bytes) { reader throws(WireError) in
            #expect(try reader.number(UInt8.self, "a") == 1)
            #expect(try reader.number(UInt16.self, "b") == 0x0203)
            #expect(try reader.number(UInt32.self, "c") == 0x0405_0607)
            #expect(try reader.number(UInt64.self, "d") == .max)
            try reader.finish("all")
        }
    }

    @Test func `A writer that begins again keeps nothing but its memory`() {
        var writer = FieldWriter()
        writer.write(raw: [UInt8](repeating: 1, count: 300))
        let start = writer.bytes.withUnsafeBytes(\.baseAddress)
        writer.removeAll()
        writer.write(UInt16(0x0203))
        #expect(writer.bytes == [2, 3])
        #expect(writer.bytes.withUnsafeBytes(\.baseAddress) == start)
    }

    @Test func `A field that cannot be read is named in the error`() {
        func refusal(_ bytes: [UInt8], _ body: (inout FieldReader) throws(WireError) -> Void) -> WireError? {
            #expect(throws: WireError.self) { try reading(bytes, body) }
        }
        let count = refusal([1, 2, 3]) { reader throws(WireError) in
            _ = try reader.number(UInt32.self, "a count")
        }
        #expect(count == .malformed("a count is cut short"))
        let name = refusal([3, 65, 66]) { reader throws(WireError) in _ = try reader.shortText("a name") }
        #expect(name == .malformed("a name is cut short"))
        let words = refusal([0, 3, 65, 66]) { reader throws(WireError) in
            _ = try reader.bytes(atMost: 9, "words")
        }
        #expect(words == .malformed("words is cut short"))
        let long = refusal([0xFF, 0xFF]) { reader throws(WireError) in
            _ = try reader.bytes(atMost: 9, "words")
        }
        #expect(long == .malformed("words has 65535 bytes, the limit is 9"))
        let rest = refusal([1, 2]) { reader throws(WireError) in try reader.finish("it") }
        #expect(rest == .malformed("it has 2 bytes too many"))
        let part = refusal([1]) { reader throws(WireError) in _ = try reader.take(-1, "a part") }
        #expect(part == .malformed("a part is cut short"))
    }

    @Test func `Text must be UTF 8`() throws {
        #expect(throws: WireError.malformed("a name is not UTF-8")) { try shortText([2, 0xC3, 0x28]) }
        for text in ["", "ä", "a\tb", "\u{7F}", "\0", "a~ "] {
            #expect(try shortText(written(short: text)) == text)
        }
    }

    @Test func `Display text contains no control characters`() throws {
        let bytes = written(short: "bis\u{1B}[2J bald\r\n\u{85}ä 🐾")
        let words = try reading(bytes) { reader throws(WireError) in try reader.displayText("words") }
        #expect(words == "bis [2J bald   ä 🐾")
        let close = try Frames.reading(LinkClose(.left, "\u{7}bye").payload, LinkClose.init(reading:))
        #expect(close.reason == " bye")
    }

    @Test func `A text of more than 255 bytes is cut between characters, also if it is written in place`()
        throws
    {
        let x = String(repeating: "x", count: 252)
        for (text, kept) in [
            (String(repeating: "ä", count: 200), String(repeating: "ä", count: 127)), (x + "🇩🇪", x),
            (String(repeating: "🐾", count: 64), String(repeating: "🐾", count: 63)), ("", ""),
        ] {
            let bytes = written(short: text)
            #expect(try shortText(bytes) == kept)
            let refusal = ConversationRefusal(
                conversation: 0x0102_0304_0506_0708, code: .busy, retryAfterSeconds: 9, reason: text)
            let code = ConversationRefusal.Code.busy.rawValue
            #expect(refusal.payload == [1, 2, 3, 4, 5, 6, 7, 8, code, 0, 0, 0, 9] + bytes)
        }
    }

    @Test func `Rest returns the remaining bytes`() throws {
        try reading([1, 2, 3]) { reader throws(WireError) in
            _ = try reader.number(UInt8.self, "first")
            #expect(Array(reader.rest()) == [2, 3])
            #expect(reader.rest().isEmpty)
            try reader.finish("all")
        }
    }
}
