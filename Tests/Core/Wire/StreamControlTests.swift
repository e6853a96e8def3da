import Testing

@testable import NighCore

@Suite("Control frames of streams") struct StreamControlTests {
    private static let samples: [StreamControl] = [
        .open(name: ""), .open(name: "camera"), .open(name: String(repeating: "é", count: 127)), .credit(0),
        .credit(.max), .finish, .cancel(reason: ""), .cancel(reason: "enough"), .stop(reason: "no"), .release,
    ]

    private func read(_ bytes: [UInt8]) throws -> StreamControlFrame {
        try bytes.withUnsafeBytes { bytes throws(WireError) in try StreamControlFrame(reading: bytes) }
    }

    @Test("are read as they were written", arguments: samples)
    func roundTrip(_ control: StreamControl) throws {
        let frame = try read(control.payload(for: 0x0102_0304))
        #expect(frame.control == control && frame.number == 0x0102_0304)
    }

    @Test("are refused with a byte too few or too many", arguments: samples)
    func lengths(_ control: StreamControl) {
        let payload = control.payload(for: 7)
        for count in 0..<payload.count {
            #expect(throws: WireError.self) { try read(Array(payload[..<count])) }
        }
        #expect(throws: WireError.self) { try read(payload + [0]) }
    }

    @Test("have the bytes that the page of the protocol names")
    func bytes() {
        #expect(StreamControl.open(name: "hi").payload(for: 1) == [0, 0, 0, 1, 0, 2, 0x68, 0x69])
        #expect(StreamControl.credit(258).payload(for: 2) == [0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 1, 2])
        #expect(StreamControl.release.payload(for: 0x0100_0000) == [1, 0, 0, 0, 5])
        var credit = [UInt8](repeating: 0xFF, count: StreamControl.creditLength)
        credit.withUnsafeMutableBytes {
            StreamControl.writeCredit(258, for: 2, to: $0.baseAddress.unsafelyUnwrapped)
        }
        #expect(credit == StreamControl.credit(258).payload(for: 2))
    }

    @Test("are refused with an unknown kind, or with a name that would move a terminal's cursor")
    func violations() {
        #expect(throws: WireError.self) { try read([0, 0, 0, 1, 6]) }
        #expect(throws: WireError.self) { try read(StreamControl.open(name: "a\u{1B}[2J").payload(for: 1)) }
        #expect(!StreamControl.isName("a\n") && !StreamControl.isName(String(repeating: "x", count: 256)))
    }
}
