import NighGroups
import NighTestKit
import Testing

@testable import NighCore

@Suite("The page of the protocol, about groups")
struct GroupProtocolPageTests {
    /// Two tables, and what they say to each other; the first is the side of the arrows to the right.
    private final class Two {
        var tables = [GroupTable(), GroupTable()]
        let ids = [Identity.ephemeral(seed: 1).peerID, Identity.ephemeral(seed: 2).peerID]
        var said: [(isFirst: Bool, bytes: [UInt8])] = []

        /// Lets each say to the other what it has to.
        func talk() throws {
            for own in [0, 1, 0] {
                var records: [GroupRecord] = []
                _ = tables[own].flush(ids[1 - own]) {
                    records.append($0)
                    return .sent
                }
                for record in records {
                    said.append((own == 0, record.bytes))
                    _ = try tables[1 - own].receive(record, from: ids[own])
                }
            }
        }
    }

    @Test("has an example that both sides play, byte for byte")
    func example() throws {
        let red = try #require(GroupName("red"))
        let two = Two()
        for number in 1...4 {
            let other = try #require(GroupName("\(number)"))
            try two.tables[1].join(other, context: []) { _, _ in nil }
            two.tables[1].leave(other)
        }
        try two.tables[0].join(red, context: []) { _, _ in nil }
        nonisolated(unsafe) var isFull = false  // one thread
        try two.tables[1].join(red, context: [0xAB, 0xCD]) { _, _ in isFull ? "full" : nil }
        for own in 0..<2 { two.tables[own].connected(two.ids[1 - own]) }
        try two.talk()
        let number = try #require(two.tables[0].number(of: red))
        two.said.append((true, GroupRecord.message(number: number).bytes + Array("hi".utf8)))
        #expect(try two.tables[1].receive(.message(number: number), from: two.ids[0]) == red)
        two.tables[0].leave(red)
        isFull = true
        try two.talk()
        try two.tables[0].join(red, context: []) { _, _ in nil }
        try two.talk()
        let steps = try ProtocolPage().example(in: "4.8 Groups")
        #expect(two.said.map(\.isFirst) == steps.map(\.isDialling))
        #expect(try two.said.map(\.bytes) == steps.map { try #require($0.bytes.exact) })
    }
}
