import Testing

@testable import NighCore

@Suite("The receipts of a datagram path") struct PacketReceiptsTests {
    @Test("are reported at once after 64 packets or 16 KiB, counted from the last report")
    func due() {
        var receipts = PacketReceipts(now: .at(0))
        let manyPackets = [Int](repeating: 200, count: 64)
        let manyBytes = [10_000, 6_383, 1]
        for sizes in [manyPackets, manyBytes, manyBytes, manyPackets] {
            let isDue = sizes.map { receipts.noteReportable(byteCount: $0, now: .at(0)) }
            #expect(isDue.firstIndex(of: true) == sizes.count - 1)
            _ = receipts.takeReport(highest: 100, now: .at(0))
        }
    }

    @Test("are reported 50 ms after the first packet that calls for it, and others do not postpone that")
    func pause() {
        var receipts = PacketReceipts(now: .at(0))
        #expect(receipts.deadline == .never)
        for moment in [5, 20, 54] as [Int64] {
            _ = receipts.noteReportable(byteCount: 100, now: .at(moment))
        }
        #expect(receipts.deadline == .at(55))
        _ = receipts.takeReport(highest: 2, now: .at(55))
        #expect(receipts.deadline == .never)
        _ = receipts.noteReportable(byteCount: 100, now: .at(70))
        #expect(receipts.deadline == .at(120))
    }

    @Test("say how many packets have come, and for how many microseconds the highest was not reported")
    func content() {
        var receipts = PacketReceipts(now: .at(0))
        receipts.note(isHighest: true, now: .at(10))
        receipts.note(isHighest: false, now: .at(20))
        let first = receipts.takeReport(highest: 7, now: .at(25))
        #expect(first == DatagramContent.Report(highest: 7, delay: 15_000, received: 2))
        receipts.note(isHighest: true, now: .at(30))
        // The delay has 32 bits: a longer one is reported as the longest.
        let second = receipts.takeReport(highest: 8, now: .at(10_000_000))
        #expect(second == DatagramContent.Report(highest: 8, delay: .max, received: 3))
    }
}
