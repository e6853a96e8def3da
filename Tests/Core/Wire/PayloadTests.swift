import Testing

@testable import NighCore

/// The payloads of frames with fields of their own, apart from the hello.
@Suite struct PayloadTests {
    /// A payload, and the reader of its kind.
    struct Sample: CustomTestStringConvertible, @unchecked Sendable {
        // Made once, and never changed.
        let testDescription: String
        let payload: [UInt8]
        /// Whether bytes are read as the value of the sample.
        let isValue: ([UInt8]) throws -> Bool

        init<Value: Equatable>(
            _ value: Value, _ payload: [UInt8],
            _ read: @escaping (UnsafeRawBufferPointer) throws(WireError) -> Value
        ) {
            testDescription = "\(value)"
            self.payload = payload
            isValue = { try Frames.reading($0, read) == value }
        }
    }

    private static var standing: Standing {
        var standing = Standing()
        standing.received = [1, .max]
        standing.granted = [.max - 1, 0]
        return standing
    }

    private static func request(context: [UInt8] = []) -> ConversationRequest {
        ConversationRequest(
            conversation: .max, attempt: .max, standing: standing, timeoutMilliseconds: .max,
            context: context)
    }

    private static var acceptance: ConversationAcceptance {
        ConversationAcceptance(conversation: 3, attempt: .max, standing: standing)
    }

    private static let value = PairingValue((0..<32).map { UInt8($0) })!
    private static let pairing: [(message: PairingMessage, payload: [UInt8])] =
        [
            (.commitment(value), [1] + value.bytes), (.nonce(value), [2] + value.bytes),
            (.reveal(value), [3] + value.bytes), (.confirmed, [4]),
        ] + PairingRefusal.allCases.map { (.refused($0), [5, $0.rawValue]) }

    static let samples: [Sample] = {
        let contexts = [[], [1, 2, 3], [UInt8](repeating: 7, count: 4_096)] as [[UInt8]]
        let requests = contexts.map { context in
            let request = request(context: context)
            return Sample(request, request.payload) { bytes throws(WireError) in try .init(reading: bytes) }
        }
        let answers = [
            Sample(acceptance, acceptance.payload) { bytes throws(WireError) in try .init(reading: bytes) }
        ]
        let codes: [ConversationRefusal.Code] = [.declined, .full, .busy, .unknownConversation, .outOfDate]
        let refusals = codes.map { code in
            let refusal = ConversationRefusal(
                conversation: 4, code: code, retryAfterSeconds: .max, reason: "später")
            return Sample(refusal, refusal.payload) { bytes throws(WireError) in try .init(reading: bytes) }
        }
        let closes = LinkClose.Code.allCases.map { code in
            let close = LinkClose(code, "bis bald")
            return Sample(close, close.payload) { bytes throws(WireError) in try .init(reading: bytes) }
        }
        let controls: [StreamControl] = [
            .open(name: ""), .open(name: String(repeating: "é", count: 127)), .credit(0), .credit(.max),
            .finish, .cancel(reason: ""), .cancel(reason: "enough"), .stop(reason: "no"), .release,
            .open(name: "", for: .files), .open(name: String(repeating: "é", count: 127), for: .files),
        ]
        let streams = controls.map { control in
            Sample(control, control.payload(for: 0x0102_0304)) { bytes throws(WireError) in
                let frame = try StreamControlFrame(reading: bytes)
                guard frame.number == 0x0102_0304 else { throw WireError.malformed("of another stream") }
                return frame.control
            }
        }
        let pairings = pairing.map { message, payload in
            Sample(message, payload) { bytes throws(WireError) in try .init(reading: bytes) }
        }
        return requests + answers + refusals + closes + streams + pairings
    }()

    @Test(arguments: samples)
    func `A payload is read as it was written, and nothing shorter or longer is read`(
        _ sample: Sample
    ) throws {
        #expect(try sample.isValue(sample.payload))
        for count in 0..<sample.payload.count {
            #expect(throws: WireError.self, "\(count) bytes") {
                try sample.isValue(Array(sample.payload.prefix(count)))
            }
        }
        #expect(throws: WireError.self) { try sample.isValue(sample.payload + [0]) }
    }

    @Test func `An invitation's context has at most 4,096 bytes`() {
        let request = Self.request(context: [UInt8](repeating: 7, count: 4_097))
        #expect(throws: WireError.malformed("an invitation's context has 4097 bytes, the limit is 4096")) {
            try Frames.reading(request.payload, ConversationRequest.init(reading:))
        }
    }

    /// In a request, an acceptance and an acknowledgement.
    @Test func `A count of stream frames that is there is not 0`() {
        let fault = WireError.malformed("a count of no stream frames")
        let nothing = [UInt8](repeating: 0, count: 8)
        #expect(throws: fault) {
            try Frames.reading(Self.request().payload + nothing, ConversationRequest.init(reading:))
        }
        #expect(throws: fault) {
            try Frames.reading(Self.acceptance.payload + nothing, ConversationAcceptance.init(reading:))
        }
        #expect(throws: fault) {
            try Frames.reading(
                [UInt8](repeating: 0, count: Standing.byteCount) + nothing, Standing.init(acknowledging:))
        }
    }

    @Test func `Unknown codes count as the general one, and unknown kinds of pairing messages are kept`()
        throws
    {
        var refusal = ConversationRefusal(conversation: 4, code: .full).payload
        refusal[8] = 0xEE
        #expect(try Frames.reading(refusal, ConversationRefusal.init(reading:)).code == .declined)
        #expect(try Frames.reading([0xFF, 0xFE, 0], LinkClose.init(reading:)).code == .other)
        #expect(try Frames.reading([5, 200], PairingMessage.init(reading:)) == .refused(.declined))
        for kind in [0, 6, 255] as [UInt8] {
            for rest in [[], [1], [UInt8](repeating: 7, count: 100)] as [[UInt8]] {
                let message = try Frames.reading([kind] + rest, PairingMessage.init(reading:))
                #expect(message == .unknown(kind: kind))
            }
        }
    }

    @Test func `Every header is read as it was written`() {
        for type in FrameType.allCases {
            for length in [0, 1, 255, 65_536, FrameHeader.maximumPayload] {
                var bytes: [UInt8] = [0, 0, 0, 0]
                let header = FrameHeader(type: type, payloadLength: length)
                bytes.withUnsafeMutableBytes { header.write(to: $0.baseAddress.unsafelyUnwrapped) }
                #expect(bytes == Frames.header(type.rawValue, length))
                let read = bytes.withUnsafeBytes {
                    FrameHeader(readingFrom: $0.baseAddress.unsafelyUnwrapped)
                }
                #expect(read == header)
            }
        }
    }

    @Test func `Each lane has frame types of its own`() {
        for (lane, types) in [
            (.main, [.message, .begin, .piece]), (.bulk, [.bulkMessage, .bulkBegin, .bulkPiece]),
        ] as [(Lane, [FrameType])] {
            #expect([.message(on: lane), .begin(on: lane), .piece(on: lane)] == types)
        }
    }

    @Test func `The bytes of pairing messages, credit and release are those of the protocol`() {
        for (message, payload) in Self.pairing { #expect(message.payload == payload) }
        #expect(StreamControl.credit(258).payload(for: 2) == [0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 1, 2])
        #expect(StreamControl.release.payload(for: 0x0100_0000) == [1, 0, 0, 0, 5])
    }

    @Test func `A stream has a known kind and purpose, and a name that moves no terminal's cursor`() throws {
        #expect(throws: WireError.self) {
            try Frames.reading([0, 0, 0, 1, 7], StreamControlFrame.init(reading:))
        }
        for number in UInt8.min ... .max {
            let open: [UInt8] = [0, 0, 0, 1, 6, number, 1, 0x78]
            if let purpose = StreamPurpose(rawValue: number), purpose != .program {
                let read = try Frames.reading(open, StreamControlFrame.init(reading:))
                #expect(read.control == .open(name: "x", for: purpose))
            } else {
                #expect(throws: WireError.malformed("a stream for the purpose \(number)")) {
                    try Frames.reading(open, StreamControlFrame.init(reading:))
                }
            }
        }
        for purpose in StreamPurpose.allCases {
            let control = StreamControl.open(name: "a\u{1B}[2J", for: purpose)
            #expect(throws: WireError.self) {
                try Frames.reading(control.payload(for: 1), StreamControlFrame.init(reading:))
            }
        }
        #expect(!StreamControl.isName("a\n") && !StreamControl.isName(String(repeating: "x", count: 256)))
    }

    @Test(
        arguments: [
            (0, "000000", "000 000"), (7, "000007", "000 007"), (40_215, "040215", "040 215"),
            (999_999, "999999", "999 999"), (1_000_000, "000000", "000 000"),
            (.max, "551615", "551 615"),
        ] as [(UInt64, String, String)])
    func `A pairing code is the remainder of its hash, and has six digits`(
        word: UInt64, digits: String, description: String
    ) {
        let hash = (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) }
        let code = PairingCode(hash: hash + [UInt8](repeating: 0xFF, count: 24))
        #expect(code.digits == digits && code.description == description)
        #expect(code.number == Int(word % 1_000_000))
    }
}
