import NighCore
import NighTestKit
import Testing

@testable import NighGroups

@Suite("A record of groups") struct GroupRecordTests {
    private let samples: [(record: GroupRecord, bytes: [UInt8])] = [
        (
            .join(number: 1, name: GroupName("red")!, context: []),
            [1, 0, 0, 0, 1, 3] + Array("red".utf8) + [0, 0]
        ),
        (
            .join(number: 5, name: GroupName("red")!, context: [0xAB, 0xCD]),
            [1, 0, 0, 0, 5, 3] + Array("red".utf8) + [0, 2, 0xAB, 0xCD]
        ),
        (.refuse(number: 1, reason: "full"), [3, 0, 0, 0, 1, 4] + Array("full".utf8)),
        (.leave(number: 1), [2, 0, 0, 0, 1]),
        (.message(number: 1), [4, 0, 0, 0, 1]),
    ]

    private func read(_ bytes: [UInt8]) throws -> GroupRecord? {
        try bytes.withUnsafeBytes { bytes throws(WireError) in try GroupRecord(reading: bytes) }
    }

    @Test("is written and read as the page of the protocol says")
    func bytes() throws {
        for (record, bytes) in samples {
            #expect(record.bytes == bytes)
            #expect(try read(bytes) == record)
        }
        #expect(try read([4, 0, 0, 0, 1] + Array("hi".utf8)) == .message(number: 1))
        #expect(try read([5, 1, 2, 3]) == nil)
    }

    @Test("is refused if it is cut, too long, or names no group")
    func malformed() {
        for (record, bytes) in samples {
            for count in 0..<bytes.count {
                #expect(throws: WireError.self) { try read(Array(bytes.prefix(count))) }
            }
            if case .message = record { continue }
            #expect(throws: WireError.self) { try read(bytes + [0]) }
        }
        for name in [[], [7], [UInt8](repeating: 0x78, count: 64), [0xFF]] as [[UInt8]] {
            let bytes = [1, 0, 0, 0, 1, UInt8(name.count)] + name + [0, 0]
            #expect(throws: WireError.self, "\(name)") { try read(bytes) }
        }
        let long = [1, 0, 0, 0, 1, 1, 0x78, 4, 1] + [UInt8](repeating: 0, count: 1_025)
        #expect(throws: WireError.self) { try read(long) }
    }
}
