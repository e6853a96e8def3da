import NighCore
import NighIntroductions
import NighRecord
import Testing

@testable import nigh

@Suite("What a trace says about single frames") struct FrameSummaryTests {
    private func summary(of payload: [UInt8], type: UInt8 = 0x19) -> FrameSummary {
        var (state, conversations) = (LinkState(), TracedConversations())
        let frame = RecordedFrame(
            direction: .incoming, type: type, length: payload.count, payload: ByteSlice(payload))
        return FrameSummary(of: frame, at: 0, in: &state, &conversations)
    }

    @Test("A stream of the program is opened under its name")
    func own() {
        let summary = summary(of: [0, 0, 0, 3, 0, 2, 0x68, 0x69])
        #expect(summary.text == "stream 3, open: hi" && summary.fault == nil)
        #expect(summary.details.map(\.name) == ["stream", "step", "stream_name"])
    }

    @Test("The opening of a stream for files says what it is for")
    func files() {
        let summary = summary(of: [0, 0, 0, 3, 6, 1, 2, 0x68, 0x69])
        #expect(summary.text == "stream 3, open-for: files, hi" && summary.fault == nil)
        #expect(summary.details.map(\.name) == ["stream", "step", "stream_name", "stream_purpose"])
        #expect(self.summary(of: [0, 0, 0, 3, 6, 1, 0]).text == "stream 3, open-for: files")
    }

    @Test("An unknown purpose breaks the protocol")
    func unknown() {
        #expect(summary(of: [0, 0, 0, 3, 6, 9, 0]).fault == "a stream for the purpose 9")
    }

    @Test("A message of a kind, whole or in pieces, is shown with it")
    func kinds() {
        let whole = summary(of: [7, 0x68, 0x69], type: 0x17)
        #expect(whole.text == "bulk, kind 7" && whole.lane == .bulk && whole.fault == nil)
        #expect(whole.details.map(\.name) == ["message_kind"])
        let pieces = summary(of: [0, 1, 0, 0, 255], type: 0x12)
        #expect(pieces.text == "main, 65536 bytes follow, kind 255" && pieces.fault == nil)
        #expect(pieces.details.map(\.name) == ["message_bytes", "message_kind"])
        let groups = summary(of: [1, 1, 0, 0, 0, 9, 3] + Array("red".utf8) + [0, 0], type: 0x16)
        #expect(groups.text == "main, kind 1 (groups), join \"red\" as 9" && groups.fault == nil)
        #expect(groups.details.map(\.name) == ["message_kind", "step"])
        #expect(summary(of: [1], type: 0x16).text == "main, kind 1 (groups)")
        #expect(
            summary(of: [1, 4, 0, 0, 0, 9, 7, 7], type: 0x16).text == "main, kind 1 (groups), message to 9")
        #expect(summary(of: [], type: 0x16).fault == "a message of a kind without one")
    }

    @Test("A message of introductions is shown with its records, and an introduction with who has given it")
    func introductions() {
        let (puma, hare) = (Identity.ephemeral(seed: 1), Identity.ephemeral(seed: 3).peerID)
        let (ask, gone) = ([4, 0, 32] + hare.bytes, [3, 0, 32] + hare.bytes)
        let records = summary(of: [2] + ask + gone, type: 0x16)
        #expect(
            records.text == "main, kind 2 (introductions), ask for ajsi4ju6, gone ajsi4ju6"
                && records.fault == nil)
        #expect(records.details.map(\.name) == ["message_kind", "records"])
        let advertisement = Advertisement(service: "chat", peer: hare, name: DisplayName(fitting: "Hare"))
        let bytes = advertisement.bytes
        let count = [0, UInt8(bytes.count)]
        let member = [2, 0, UInt8(bytes.count + 3), 3] + count + bytes
        #expect(
            summary(of: [2] + member, type: 0x16).text
                == "main, kind 2 (introductions), member Hare ajsi4ju6, in the mesh, relayed")
        let paths =
            [6, 0, 37] + hare.bytes + [3] + Array("tcp".utf8) + [0] + [6, 0, 69] + hare.bytes + [3]
            + Array("via".utf8) + [1] + puma.peerID.bytes + [6, 0, 34] + hare.bytes + [0, 0]
        #expect(
            summary(of: [2] + paths, type: 0x16).text
                == "main, kind 2 (introductions), path to ajsi4ju6 over tcp, path to ajsi4ju6 over via through "
                + "ct6ox7n3, path to ajsi4ju6 is interrupted")
        #expect(summary(of: [2, 4, 0], type: 0x16).text == "main, kind 2 (introductions)")
        let token = IntroductionToken(by: puma, guest: hare, host: hare, nonce: 7, number: 5)
        let frame = summary(of: token.bytes, type: 0x81)
        #expect(frame.text == "introduced by ct6ox7n3, number 5" && frame.fault == nil)
        #expect(
            frame.details.map(\.name) == ["introduction_bytes", "introducer", "introduction_number"])
        #expect(
            summary(of: [1], type: 0x81).text == "1 bytes that say who has introduced the sender")
    }
}
