import NighCore
import NighRecord
import Testing

@testable import nigh

@Suite("What a trace says about single packets") struct PacketSummaryTests {
    private static func summary(
        of content: [UInt8], length: Int? = nil, in state: inout LinkState
    ) -> PacketSummary {
        PacketSummary(
            of: RecordedPacket(
                direction: .incoming, connection: 1, number: 7, length: length ?? content.count,
                content: ByteSlice(content)), in: &state)
    }

    private func summary(of content: [UInt8], length: Int? = nil) -> PacketSummary {
        var state = LinkState()
        return Self.summary(of: content, length: length, in: &state)
    }

    @Test("Each kind is shown with its fields")
    func kinds() {
        let token: [UInt8] = [0, 0, 0, 0, 0, 0, 0xAB, 0xCD]
        let probe = summary(of: [1] + token + [0, 0])
        #expect(probe.name == "packet-probe" && probe.text == "7: token 000000000000abcd")
        let answer = summary(of: [2] + token)
        #expect(answer.name == "packet-answer" && answer.details.map(\.name) == ["token"])
        let message = summary(of: [3, 1, 0x68, 0x69])
        #expect(message.name == "packet-message" && message.text == "7: 2 bytes, in order")
        #expect(message.completesMessage && message.details.map(\.name) == ["message_bytes", "order"])
        #expect(summary(of: [3, 0]).text == "7: 0 bytes, unordered")
        #expect(summary(of: [3, 2]).details.map(\.name) == ["message_bytes", "order", "key"])
        let fragment = summary(of: [4, 255, 0, 0, 1, 0, 2, 3, 9, 9])
        #expect(fragment.name == "packet-fragment")
        #expect(fragment.text == "7: part 3 of 3 of message 256, 2 bytes, newest of key 253")
        #expect(!fragment.completesMessage && fragment.fault == nil)
        let report = summary(of: [5] + token + [0, 0, 0x10, 0x04] + [0, 0, 0, 0, 0, 0, 0, 9])
        #expect(report.name == "packet-report")
        #expect(report.text == "7: 9 packets have come, 43981 is the highest, 4.1 ms ago")
        #expect(report.details.map(\.name) == ["highest", "delay_us", "received"])
    }

    @Test("A packet that breaks the rules of its kind says how; one of a later version does not")
    func faults() {
        #expect(summary(of: [1, 0]).fault == "a probe's token is cut short")
        #expect(summary(of: [4, 0, 0, 0, 0, 0, 3, 3, 9]).fault == "a fragment that belongs to no message")
        #expect(summary(of: []).fault == "no content" && summary(of: []).name == "packet-empty")
        let later = summary(of: [9, 1])
        #expect(later.fault == nil && later.name == "packet-0x09")
        #expect(later.text == "7: of a later version, and ignored")
    }

    @Test("Of a packet of which only the beginning was recorded, as much is shown as that says")
    func beginnings() {
        let kind = summary(of: [3], length: 40)
        #expect(kind.name == "packet-message")
        #expect(kind.text == "7: only the first 1 bytes of its content were recorded" && kind.fault == nil)
        #expect(summary(of: [3, 0], length: 40).text == "7: 38 bytes, unordered")
        let part = summary(of: [4, 0, 0, 0, 0, 5, 0, 2, 1], length: 1_000)
        #expect(part.text == "7: part 1 of 2 of message 5, 992 bytes, unordered")
    }

    @Test("A message in parts is complete once all its parts have come, in any order")
    func parts() {
        var state = LinkState()
        let complete = [2, 0, 1, 0].map { index in
            Self.summary(of: [4, 0, 0, 0, 0, 5, UInt8(index), 3, 1], in: &state).completesMessage
        }
        #expect(complete == [false, false, true, false])
    }

    @Test("Numbers that are skipped are missing until they come")
    func missing() {
        var state = LinkState(isComplete: true)
        let numbers = [2, 3, 0, 10, 5, 1] as [UInt64]
        #expect(numbers.map { state.received(packet: $0, connection: 9) } == [2, 0, -1, 6, -1, -1])
        // After a gap in the record, and on another path, counting begins anew.
        #expect(state.received(packet: 1, connection: 8) == 1)
        state.resetCounts()
        #expect([100, 99, 102].map { state.received(packet: $0, connection: 9) } == [0, 0, 1])
    }
}
