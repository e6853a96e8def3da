import Testing

@testable import NighCore

@Suite("The search for the longest packets") struct PacketSizesTests {
    private static func sizes(limit: Int) -> PacketSizes {
        var sizes = PacketSizes()
        sizes.limit(to: limit)
        return sizes
    }

    @Test(
        "tries one length after another, up to what both sides take",
        arguments: [1_200, 1_391, 1_392, 1_471, 1_472, 8_952])
    func lengths(limit: Int) {
        var sizes = Self.sizes(limit: limit)
        var tried: [Int] = []
        var probe = sizes.begin(token: 0, now: .at(0))
        while let current = probe, tried.count < 10 {
            tried.append(current.length)
            probe = sizes.answered(token: current.token + 1, now: .at(0))
        }
        #expect(tried == [1_392, 1_452, 1_472, 4_052, 8_952].filter { $0 <= limit })
        #expect(sizes.longest == (tried.last ?? 1_200))
        #expect(sizes.hasBegun && sizes.deadline == .never)
    }

    @Test("sends a probe three times, 250 ms apart, and takes no answer once it has given up")
    func tries() {
        var sizes = Self.sizes(limit: 8_952)
        let probe = sizes.begin(token: 7, now: .at(0))
        #expect(probe == PacketSizes.Probe(length: 1_392, token: 7))
        for moment in [250, 500] as [Int64] {
            #expect(sizes.deadline == .at(moment))
            let again = sizes.timeArrived(now: .at(moment))
            #expect(again == probe)
        }
        #expect(sizes.deadline == .at(750) && sizes.isProbe(7))
        let last = sizes.timeArrived(now: .at(750))
        #expect(last == nil && !sizes.isProbe(7))
        #expect(sizes.deadline == .never && sizes.longest == 1_200)
    }

    @Test("leaves out lengths that did not pass, until packets have the length again that every path carries")
    func again() {
        var sizes = Self.sizes(limit: 1_472)
        _ = sizes.begin(token: 1, now: .at(0))
        _ = sizes.answered(token: 2, now: .at(0))
        for moment in [250, 500, 750] as [Int64] { _ = sizes.timeArrived(now: .at(moment)) }
        sizes.cancel()
        #expect(!sizes.hasBegun && sizes.longest == 1_392)
        let none = sizes.begin(token: 3, now: .at(1_000))
        #expect(none == nil)
        sizes.shrink()
        #expect(!sizes.hasBegun && sizes.longest == 1_200)
        let first = sizes.begin(token: 4, now: .at(2_000))
        #expect(first?.length == 1_392)
        let second = sizes.answered(token: 5, now: .at(2_000))
        #expect(second?.length == 1_452)
    }

    @Test("that is given up takes no answer and calls for nothing more")
    func cancelled() {
        var sizes = Self.sizes(limit: 1_472)
        _ = sizes.begin(token: 1, now: .at(0))
        #expect(sizes.hasBegun && sizes.isProbe(1))
        sizes.cancel()
        #expect(!sizes.hasBegun && !sizes.isProbe(1) && sizes.deadline == .never)
    }
}
