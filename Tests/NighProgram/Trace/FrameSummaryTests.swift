import NighCore
import NighRecord
import Testing

@testable import nigh

@Suite("What a trace says about the frames of streams") struct FrameSummaryTests {
    private func summary(of payload: [UInt8]) -> FrameSummary {
        var state = LinkState()
        let frame = RecordedFrame(
            direction: .incoming, type: 0x19, length: payload.count, payload: ByteSlice(payload))
        return FrameSummary(of: frame, at: 0, in: &state)
    }

    @Test("A stream of the program is opened under its name")
    func own() {
        let summary = summary(of: [0, 0, 0, 3, 0, 2, 0x68, 0x69])
        #expect(summary.text == "stream 3, open: hi" && summary.fault == nil)
        #expect(summary.details.map(\.name) == ["stream", "step", "stream_name"])
    }

    @Test("A stream for files is told apart from it")
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
}
