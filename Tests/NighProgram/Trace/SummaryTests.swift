import ChildPrograms
import NighCore
import NighIntroductions
import NighRecord
import Testing

@testable import nigh

/// Tests what a trace says about single frames and packets.
@Suite struct SummaryTests {
    private static func summary(of payload: [UInt8], _ type: UInt8) -> FrameSummary {
        var (state, conversations) = (LinkState(), TracedConversations())
        let frame = RecordedFrame(
            direction: .incoming, type: type, length: payload.count, payload: ByteSlice(payload))
        return FrameSummary(of: frame, at: 0, in: &state, &conversations)
    }

    private static func summary(
        of content: [UInt8], length: Int? = nil, in state: inout LinkState
    ) -> PacketSummary {
        PacketSummary(
            of: RecordedPacket(
                direction: .incoming, connection: 1, number: 7, length: length ?? content.count,
                content: ByteSlice(content)), in: &state)
    }

    private static let hare = Identity.ephemeral(seed: 3).peerID
    private static let puma = Identity.ephemeral(seed: 1)

    /// Frames, by what they are: their type and their payload.
    private static var frames: [(String, UInt8, [UInt8])] {
        let advertisement = Advertisement(service: "chat", peer: hare, name: DisplayName(fitting: "Hare"))
            .bytes
        let member = [2, 0, UInt8(advertisement.count + 3), 3, 0, UInt8(advertisement.count)] + advertisement
        let tcp = [6, 0, 37] + hare.bytes + [3] + Array("tcp".utf8) + [0]
        let via = [6, 0, 69] + hare.bytes + [3] + Array("via".utf8) + [1] + puma.peerID.bytes
        let token = IntroductionToken(by: puma, guest: hare, host: hare, nonce: 7, number: 5)
        return [
            ("a stream of the program", 0x19, [0, 0, 0, 3, 0, 2, 0x68, 0x69]),
            ("a stream for files, with a name", 0x19, [0, 0, 0, 3, 6, 1, 2, 0x68, 0x69]),
            ("a stream for files", 0x19, [0, 0, 0, 3, 6, 1, 0]),
            ("a stream for an unknown purpose", 0x19, [0, 0, 0, 3, 6, 9, 0]),
            ("a message of a kind", 0x17, [7, 0x68, 0x69]), ("one in pieces", 0x12, [0, 1, 0, 0, 255]),
            ("one that joins a group", 0x16, [1, 1, 0, 0, 0, 9, 3] + Array("red".utf8) + [0, 0]),
            ("one of groups without content", 0x16, [1]),
            ("one to a group", 0x16, [1, 4, 0, 0, 0, 9, 7, 7]), ("one without a kind", 0x16, []),
            ("questions for introductions", 0x16, [2, 4, 0, 32] + hare.bytes + [3, 0, 32] + hare.bytes),
            ("a member of the mesh", 0x16, [2] + member),
            ("paths to a peer", 0x16, [2] + tcp + via + [6, 0, 34] + hare.bytes + [0, 0]),
            ("a record that is cut short", 0x16, [2, 4, 0]), ("an introduction", 0x81, token.bytes),
            ("a broken introduction", 0x81, [1]),
        ]
    }

    @Test func `Frames and packets of each kind are shown as the snapshots have them`() throws {
        let frames = Self.frames.map { name, type, payload in
            let summary = Self.summary(of: payload, type)
            return "\(name): \(summary.fault.map { "breaks the protocol: \($0)" } ?? summary.text)\n"
        }
        let token: [UInt8] = [0, 0, 0, 0, 0, 0, 0xAB, 0xCD]
        let contents: [(String, [UInt8], length: Int?)] = [
            ("a probe", [1] + token + [0, 0], nil), ("an answer", [2] + token, nil),
            ("a message in order", [3, 1, 0x68, 0x69], nil), ("an unordered one", [3, 0], nil),
            ("one with a key", [3, 2], nil), ("a fragment", [4, 255, 0, 0, 1, 0, 2, 3, 9, 9], nil),
            ("a report", [5] + token + [0, 0, 0x10, 0x04] + [0, 0, 0, 0, 0, 0, 0, 9], nil),
            ("a probe that is cut short", [1, 0], nil), ("no content", [], nil),
            ("a fragment of nothing", [4, 0, 0, 0, 0, 0, 3, 3, 9], nil), ("a later kind", [9, 1], nil),
            ("the beginning of a message", [3], 40), ("more of its beginning", [3, 0], 40),
            ("the beginning of a fragment", [4, 0, 0, 0, 0, 5, 0, 2, 1], 1_000),
        ]
        let packets = contents.map { name, content, length in
            var state = LinkState()
            let summary = Self.summary(of: content, length: length, in: &state)
            let details = summary.details.map(\.name).joined(separator: " ")
            return "\(name): \(summary.name) \(summary.text); \(details)\n"
        }
        #expect(
            try Snapshots.differences(
                of: ["frames.txt": frames.joined(), "packets.txt": packets.joined()],
                from: "NighProgram/Trace/Snapshots/summaries") == [])
    }

    @Test func `As JSON, a frame has what its words say`() {
        let names = Dictionary(
            uniqueKeysWithValues: Self.frames.map { ($0, Self.summary(of: $2, $1).details.map(\.name)) })
        #expect(names["a stream of the program"] == ["stream", "step", "stream_name"])
        let files = ["stream", "step", "stream_name", "stream_purpose"]
        #expect(names["a stream for files, with a name"] == files)
        #expect(names["a message of a kind"] == ["message_kind"])
        #expect(names["one in pieces"] == ["message_bytes", "message_kind"])
        #expect(names["one that joins a group"] == ["message_kind", "step"])
        #expect(names["questions for introductions"] == ["message_kind", "records"])
        let introduction = ["introduction_bytes", "introducer", "introduction_number"]
        #expect(names["an introduction"] == introduction)
    }

    @Test func `A message is complete when it comes whole, or with the last of its parts, in any order`() {
        var state = LinkState()
        let complete = [2, 0, 1, 0].map { index in
            Self.summary(of: [4, 0, 0, 0, 0, 5, UInt8(index), 3, 1], in: &state).completesMessage
        }
        #expect(complete == [false, false, true, false])
        #expect(Self.summary(of: [3, 1, 0x68], in: &state).completesMessage)
        #expect(Self.summary(of: [7, 0x68], 0x17).lane == .bulk)
    }

    @Test func `Numbers that are skipped are missing until they come`() {
        var state = LinkState(isComplete: true)
        let numbers = [2, 3, 0, 10, 5, 1] as [UInt64]
        #expect(numbers.map { state.received(packet: $0, connection: 9) } == [2, 0, -1, 6, -1, -1])
        // After a gap in the record, and on another path, counting begins anew.
        #expect(state.received(packet: 1, connection: 8) == 1)
        state.resetCounts()
        #expect([100, 99, 102].map { state.received(packet: $0, connection: 9) } == [0, 0, 1])
    }
}
