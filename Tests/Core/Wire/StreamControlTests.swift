import Testing

@testable import NighCore

@Suite("Control frames of streams") struct StreamControlTests {
    private static let samples: [StreamControl] = [
        .open(name: ""), .open(name: "camera"), .open(name: String(repeating: "é", count: 127)), .credit(0),
        .credit(.max), .finish, .cancel(reason: ""), .cancel(reason: "enough"), .stop(reason: "no"), .release,
        .open(name: "", for: .files), .open(name: String(repeating: "é", count: 127), for: .files),
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
        #expect(
            StreamControl.open(name: "hi", for: .files).payload(for: 1) == [0, 0, 0, 1, 6, 1, 2, 0x68, 0x69])
    }

    @Test("have the kinds and purposes that the page of the protocol lists, and no others")
    func page() throws {
        let page = try ProtocolPage()
        let kinds: [StreamControl] = [
            .open(name: ""), .credit(1), .finish, .cancel(reason: ""), .stop(reason: ""), .release,
            .open(name: "", for: .files),
        ]
        let rows = try page.table("| kind | name | then | what it says |", in: "4.5 Streams")
        #expect(rows.map { $0[0] } == kinds.map { "\($0.payload(for: 1)[4])" })
        let purposes = try page.table("| purpose | name | who gets the stream |", in: "4.5 Streams")
        #expect(purposes.map { $0[0] } == ["1", "2", "3", "4", "5", "6", "7", "8"])
        let named: [StreamPurpose] = [
            .files, .relay, .channel, .calls, .channelStream, .actors, .forward, .comparedFiles,
        ]
        #expect(purposes.map { $0[1] } == named.map { "\($0)" })
        for number in UInt8.min ... .max {
            let isRead = (try? read([0, 0, 0, 1, 6, number, 1, 0x78])) != nil
            #expect(isRead == purposes.contains { $0[0] == "\(number)" }, "\(number)")
        }
    }

    @Test("are refused with an unknown kind or purpose, or with a name that would move a terminal's cursor")
    func violations() {
        #expect(throws: WireError.self) { try read([0, 0, 0, 1, 7]) }
        for purpose in [0, 1 + (StreamPurpose.allCases.map(\.rawValue).max() ?? 0)] {
            #expect(throws: WireError.malformed("a stream for the purpose \(purpose)")) {
                try read([0, 0, 0, 1, 6, purpose, 0])
            }
        }
        for purpose in StreamPurpose.allCases {
            let control = StreamControl.open(name: "a\u{1B}[2J", for: purpose)
            #expect(throws: WireError.self) { try read(control.payload(for: 1)) }
        }
        #expect(!StreamControl.isName("a\n") && !StreamControl.isName(String(repeating: "x", count: 256)))
    }
}
