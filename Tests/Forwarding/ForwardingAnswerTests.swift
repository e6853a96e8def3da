import NighCore
import Testing

@testable import NighForwarding

@Suite("The answer for a forwarded connection") struct ForwardingAnswerTests {
    private func read(_ bytes: [UInt8]) throws(WireError) -> ForwardingAnswer {
        try ByteSlice(bytes).withUnsafeBytes { bytes throws(WireError) in try ForwardingAnswer(reading: bytes)
        }
    }

    @Test func `The answer for a connection is read as it was written`() throws {
        let answers: [ForwardingAnswer] = [
            .connected(grace: .seconds(600)), .connected(grace: .zero), .refused(.notAllowed),
            .refused(.notPaired), .refused(.nobodyListens), .refused(.full(256)), .refused(.failed),
        ]
        for answer in answers {
            #expect(answer.bytes.count == ForwardingAnswer.byteCount)
            #expect(try read(answer.bytes) == answer)
        }
    }

    @Test func `An answer with a code of a later version is a failure of the connection`() throws {
        for code in UInt8(6) ... .max { #expect(try read([code, 0, 0, 0, 9]) == .refused(.failed)) }
    }

    @Test func `The answer for a connection has five bytes, no less and no more`() {
        for bytes: [UInt8] in [[], [0], [0, 0, 0, 0], [0, 0, 0, 0, 0, 0]] {
            #expect(throws: WireError.self) { try read(bytes) }
        }
    }

    @Test func `The answer for a connection is for a port, which has one spelling`() {
        #expect(ForwardingName.port("22") == 22 && ForwardingName.port("65535") == 65_535)
        for name in ["", "0", "022", "+22", "-1", "22 ", "65536", "ssh", "22:22", "٢٢"] {
            #expect(ForwardingName.port(name) == nil, "\(name)")
        }
    }
}
