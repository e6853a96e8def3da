import Testing

@testable import NighCore

@Suite struct PairingMessageTests {
    private static let value = PairingValue((0..<32).map { UInt8($0) })!

    private static let messages: [(PairingMessage, [UInt8])] =
        [
            (.commitment(value), [1] + value.bytes), (.nonce(value), [2] + value.bytes),
            (.reveal(value), [3] + value.bytes), (.confirmed, [4]),
        ] + PairingRefusal.allCases.map { (.refused($0), [5, $0.rawValue]) }

    private func read(_ bytes: [UInt8]) throws(WireError) -> PairingMessage {
        try ByteSlice(bytes).withUnsafeBytes { raw throws(WireError) in try PairingMessage(reading: raw) }
    }

    @Test func messagesMatchTheDocumentationAndSurviveARoundTrip() throws {
        for (message, bytes) in Self.messages {
            #expect(message.payload == bytes)
            #expect(try read(bytes) == message)
        }
    }

    @Test func messagesOfOtherLengthsAreRejected() {
        for (message, bytes) in Self.messages {
            for count in 0..<bytes.count {
                #expect(throws: WireError.self, "\(message.name) cut to \(count) bytes") {
                    try read(Array(bytes.prefix(count)))
                }
            }
            #expect(throws: WireError.malformed("a pairing message has 1 bytes too many")) {
                try read(bytes + [0])
            }
        }
    }

    @Test func unknownKindsAreKeptAndUnknownReasonsMeanDeclined() throws {
        for kind in [0, 6, 255] as [UInt8] {
            for rest in [[], [1], [UInt8](repeating: 7, count: 100)] as [[UInt8]] {
                #expect(try read([kind] + rest) == .unknown(kind: kind))
            }
        }
        #expect(try read([5, 200]) == .refused(.declined))
    }

    @Test(
        arguments: [
            (0, "000000", "000 000"), (7, "000007", "000 007"), (40_215, "040215", "040 215"),
            (999_999, "999999", "999 999"), (1_000_000, "000000", "000 000"),
        ] as [(UInt64, String, String)])
    func codesHaveSixDigitsAlways(word: UInt64, digits: String, description: String) {
        let hash = (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) }
        let code = PairingCode(hash: hash + [UInt8](repeating: 0xFF, count: 24))
        #expect(code.digits == digits)
        #expect(code.description == description)
        #expect(code.number == Int(word % 1_000_000))
    }

    @Test func theCodeOfTheGreatestHashIsItsRemainder() {
        #expect(PairingCode(hash: [UInt8](repeating: 0xFF, count: 32)).number == 551_615)
    }
}
