import Foundation
import NighCore
import NighRecord

/// A record, made by hand, of a link beside which packets of each kind pass.
enum RecordedPackets {
    static let token: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
    /// The packets that the recording session receives, with their numbers: 2 and 3 are missing.
    static let received: [(number: UInt64, content: [UInt8])] = [
        (0, [1] + token + [UInt8](repeating: 0, count: 20)),
        (1, [2] + token),
        (4, [3, 6] + Array("hi".utf8)),
        (5, [4, 0, 0, 0, 0, 7, 0, 2, 0x61, 0x62]),
        (6, [4, 0, 0, 0, 0, 7, 1, 2, 0x63]),
        (7, [5, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 11]),
        (8, [9, 9]),
        (9, [2, 1]),
    ]
    /// The packets that it sends.
    static let sent: [(number: UInt64, content: [UInt8])] = [
        (0, [1] + token), (1, [2] + token), (2, [3, 1, 0x78]),
    ]

    static func write(to path: String, headLimit: Int? = nil) throws {
        var record = RecordFormat.header(time: 1_000, headLimit: headLimit)
        var transcript = LinkTranscript(headLimit: headLimit ?? .max, wallClock: { 1_000 })
        func add(_ event: LinkEvent, _ milliseconds: Int64) {
            transcript.convert(event, on: 1, at: Moment(nanoseconds: milliseconds * 1_000_000)) {
                RecordFormat.write($0, to: &record)
            }
        }
        func packet(_ connection: UInt8, _ number: UInt64, _ content: [UInt8]) -> ByteSlice {
            ByteSlice(
                [0, 0, 0, 0, 0, 0, 0, connection] + withUnsafeBytes(of: number.bigEndian) { Array($0) }
                    + content)
        }
        add(.opened(LinkOpening(isDialled: true, scheme: "tcp")), 0)
        add(
            .greeted(
                LinkGreeting(
                    peer: PeerID(bytes: Array(0..<32))!, name: DisplayName(fitting: "Lynx"),
                    service: "nigh", incarnation: 1)), 1)
        for (index, (number, content)) in sent.enumerated() {
            add(.packetSent(packet(1, number, content)), 10 + Int64(index))
        }
        for (index, (number, content)) in received.enumerated() {
            add(.packetReceived(packet(2, number, content)), 20 + Int64(index))
        }
        add(.ended(LinkEnding(reason: "left", code: 0, isByPeer: false)), 40)
        try Data(record).write(to: URL(filePath: path))
    }
}
