import Testing

@testable import NighCore

@Suite struct ControlFramesTests {
    private func reading<Value>(
        _ bytes: [UInt8], _ read: (UnsafeRawBufferPointer) throws(WireError) -> Value
    ) throws(WireError) -> Value {
        try ByteSlice(bytes).withUnsafeBytes { raw throws(WireError) in try read(raw) }
    }

    /// Checks that the value is read back, and that neither a part of its bytes nor anything longer is accepted as one.
    private func check<Value: Equatable>(
        _ value: Value, _ payload: [UInt8], _ read: (UnsafeRawBufferPointer) throws(WireError) -> Value
    ) throws {
        #expect(try reading(payload, read) == value)
        for count in 0..<payload.count {
            #expect(throws: WireError.self, "\(value) cut to \(count) bytes") {
                try reading(Array(payload.prefix(count)), read)
            }
        }
        #expect(throws: WireError.self, "\(value) with a byte more") { try reading(payload + [0], read) }
    }

    private var standing: Standing {
        var standing = Standing()
        standing.received = [1, .max]
        standing.granted = [.max - 1, 0]
        return standing
    }

    @Test func requestsSurviveARoundTrip() throws {
        for context in [[], [1, 2, 3], [UInt8](repeating: 7, count: 4_096)] as [[UInt8]] {
            let request = ConversationRequest(
                conversation: .max, attempt: .max, standing: standing, timeoutMilliseconds: .max,
                context: context)
            try check(request, request.payload) { bytes throws(WireError) in
                try ConversationRequest(reading: bytes)
            }
        }
        let request = ConversationRequest(
            conversation: 1, attempt: 2, standing: standing, context: [UInt8](repeating: 7, count: 4_097))
        #expect(throws: WireError.malformed("an invitation's context has 4097 bytes, the limit is 4096")) {
            try reading(request.payload) { bytes throws(WireError) in try ConversationRequest(reading: bytes)
            }
        }
    }

    @Test func acceptancesSurviveARoundTrip() throws {
        let acceptance = ConversationAcceptance(conversation: 3, attempt: .max, standing: standing)
        try check(acceptance, acceptance.payload) { bytes throws(WireError) in
            try ConversationAcceptance(reading: bytes)
        }
    }

    @Test("A count of stream frames that is there and 0 breaks the rule of every frame that ends with one")
    func countOfNothing() throws {
        let nothing = [UInt8](repeating: 0, count: 8)
        let (standing, fault) = (Standing(), WireError.malformed("a count of no stream frames"))
        let request = ConversationRequest(conversation: 1, attempt: 2, standing: standing).payload
        let acceptance = ConversationAcceptance(conversation: 1, attempt: 2, standing: standing).payload
        #expect(throws: fault) {
            try reading(request + nothing) { bytes throws(WireError) in
                try ConversationRequest(reading: bytes)
            }
        }
        #expect(throws: fault) {
            try reading(acceptance + nothing) { bytes throws(WireError) in
                try ConversationAcceptance(reading: bytes)
            }
        }
        #expect(throws: fault) {
            try reading([UInt8](repeating: 0, count: Standing.byteCount) + nothing) {
                bytes throws(WireError) in
                try Standing(acknowledging: bytes)
            }
        }
    }

    @Test func refusalsSurviveARoundTrip() throws {
        for code: ConversationRefusal.Code in [.declined, .full, .busy, .unknownConversation, .outOfDate] {
            let refusal = ConversationRefusal(
                conversation: 4, code: code, retryAfterSeconds: .max, reason: "später")
            try check(refusal, refusal.payload) { bytes throws(WireError) in
                try ConversationRefusal(reading: bytes)
            }
        }
        var later = ConversationRefusal(conversation: 4, code: .full).payload
        later[8] = 0xEE
        let read = try reading(later) { bytes throws(WireError) in try ConversationRefusal(reading: bytes) }
        #expect(read.code == .declined)
    }

    @Test func closesSurviveARoundTrip() throws {
        for code in 0...15 {
            let close = LinkClose(try #require(LinkClose.Code(rawValue: UInt16(code))), "bis bald")
            try check(close, close.payload) { bytes throws(WireError) in try LinkClose(reading: bytes) }
        }
        let read = try reading([0xFF, 0xFE, 0]) { bytes throws(WireError) in try LinkClose(reading: bytes) }
        #expect(read.code == .other)
    }

    @Test func standingsSurviveARoundTrip() throws {
        var raw = [UInt8](repeating: 0xAA, count: Standing.byteCount)
        raw.withUnsafeMutableBytes { bytes in bytes.baseAddress.map { standing.write(to: $0) } }
        try check(standing, raw) { bytes throws(WireError) in
            var reader = FieldReader(bytes)
            let standing = try Standing(reading: &reader)
            try reader.finish("a standing")
            return standing
        }
    }

    @Test func everyHeaderSurvivesARoundTrip() {
        for type in FrameType.allCases {
            for length in [0, 1, 255, 65_536, FrameHeader.maximumPayload] {
                var bytes: [UInt8] = [0, 0, 0, 0]
                let header = FrameHeader(type: type, payloadLength: length)
                bytes.withUnsafeMutableBytes { raw in raw.baseAddress.map { header.write(to: $0) } }
                #expect(bytes == Frames.header(type.rawValue, length))
                let read = bytes.withUnsafeBytes { raw in raw.baseAddress.map { FrameHeader(readingFrom: $0) }
                }
                #expect(read == header)
            }
        }
    }

    @Test func lanesHaveTheirOwnTypes() {
        #expect(FrameType.message(on: .main) == .message)
        #expect(FrameType.message(on: .bulk) == .bulkMessage)
        #expect(FrameType.begin(on: .main) == .begin)
        #expect(FrameType.begin(on: .bulk) == .bulkBegin)
        #expect(FrameType.piece(on: .main) == .piece)
        #expect(FrameType.piece(on: .bulk) == .bulkPiece)
    }
}
