import Testing

@testable import NighCore

@Suite struct FieldsTests {
    private func reading<Result>(
        _ bytes: [UInt8], _ body: (inout FieldReader) throws(WireError) -> Result
    ) throws(WireError) -> Result {
        try ByteSlice(bytes).withUnsafeBytes { raw throws(WireError) in
            var reader = FieldReader(raw)
            return try body(&reader)
        }
    }

    @Test func numbersAreInNetworkOrder() throws {
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

    @Test func aWriterThatBeginsAgainKeepsNothingButItsMemory() {
        var writer = FieldWriter()
        writer.write(raw: [UInt8](repeating: 1, count: 300))
        let start = writer.bytes.withUnsafeBytes(\.baseAddress)
        writer.removeAll()
        writer.write(UInt16(0x0203))
        #expect(writer.bytes == [2, 3])
        #expect(writer.bytes.withUnsafeBytes(\.baseAddress) == start)
    }

    @Test func truncatedFieldsAreNamedInTheError() {
        #expect(throws: WireError.malformed("a count is cut short")) {
            try reading([1, 2, 3]) { reader throws(WireError) in try reader.number(UInt32.self, "a count") }
        }
        #expect(throws: WireError.malformed("a name is cut short")) {
            try reading([3, 65, 66]) { reader throws(WireError) in try reader.shortText("a name") }
        }
        #expect(throws: WireError.malformed("words is cut short")) {
            try reading([0, 3, 65, 66]) { reader throws(WireError) in try reader.bytes(atMost: 9, "words") }
        }
        #expect(throws: WireError.malformed("it has 2 bytes too many")) {
            try reading([1, 2]) { reader throws(WireError) in try reader.finish("it") }
        }
        #expect(throws: WireError.malformed("a part is cut short")) {
            try reading([1]) { reader throws(WireError) in
                reader.remaining + (try reader.take(-1, "a part")).count
            }
        }
    }

    @Test func textMustBeUTF8() throws {
        #expect(throws: WireError.malformed("a name is not UTF-8")) {
            try reading([2, 0xC3, 0x28]) { reader throws(WireError) in try reader.shortText("a name") }
        }
        #expect(try reading([0]) { reader throws(WireError) in try reader.shortText("a name") } == "")
        #expect(
            try reading([2, 0xC3, 0xA4]) { reader throws(WireError) in try reader.shortText("a name") } == "ä"
        )
    }

    @Test func displayTextContainsNoControlCharacters() throws {
        var writer = FieldWriter()
        writer.write(short: "bis\u{1B}[2J bald\r\n\u{85}ä 🐾")
        let words = try reading(writer.bytes) { reader throws(WireError) in try reader.displayText("words") }
        #expect(words == "bis [2J bald   ä 🐾")
        let close = LinkClose(.left, "\u{7}bye")
        let read = try ByteSlice(close.payload).withUnsafeBytes { raw throws(WireError) in
            try LinkClose(reading: raw)
        }
        #expect(read.reason == " bye")
    }

    @Test func longTextIsCutBetweenCharacters() throws {
        var writer = FieldWriter()
        writer.write(short: String(repeating: "ä", count: 200))
        let text = try reading(writer.bytes) { reader throws(WireError) in try reader.shortText("a name") }
        #expect(text == String(repeating: "ä", count: 127))

        var flag = FieldWriter()
        flag.write(short: String(repeating: "x", count: 252) + "🇩🇪")
        let kept = try reading(flag.bytes) { reader throws(WireError) in try reader.shortText("a name") }
        #expect(kept == String(repeating: "x", count: 252))
    }

    @Test func aPayloadInPlaceHasTheBytesThatAGrowingWriterWrites() {
        for reason in ["", "bis bald", String(repeating: "ä", count: 200), String(repeating: "🐾", count: 64)]
        {
            let refusal = ConversationRefusal(
                conversation: 0x0102_0304_0506_0708, code: .busy, retryAfterSeconds: 9, reason: reason)
            var writer = FieldWriter()
            writer.write(refusal.conversation)
            writer.write(refusal.code.rawValue)
            writer.write(refusal.retryAfterSeconds)
            writer.write(short: reason)
            #expect(refusal.payload == writer.bytes)
        }
    }

    @Test func textOfASCIIMayContainControlCharacters() throws {
        for text in ["a\tb", "\u{7F}", "\0", "a~ "] {
            var writer = FieldWriter()
            writer.write(short: text)
            #expect(
                try reading(writer.bytes) { reader throws(WireError) in try reader.shortText("a") } == text)
        }
    }

    @Test func aBlockOverItsLimitIsRefusedBeforeItIsRead() {
        #expect(throws: WireError.malformed("words has 65535 bytes, the limit is 9")) {
            try reading([0xFF, 0xFF]) { reader throws(WireError) in try reader.bytes(atMost: 9, "words") }
        }
    }

    @Test func restReturnsTheRemainingBytes() throws {
        try reading([1, 2, 3]) { reader throws(WireError) in
            _ = try reader.number(UInt8.self, "first")
            #expect(Array(reader.rest()) == [2, 3])
            #expect(reader.rest().isEmpty)
            try reader.finish("all")
        }
    }
}
