import Testing

@testable import NighCore

@Suite struct TLSChannelTests {
    private static func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8) &+ seed) }
    }

    @Test(arguments: [1, 2, 7, 100, 1_000, Int.max])
    func bothSidesLearnWhoIsThere(split: Int) throws {
        let pair = try ChannelPair(split: split)
        #expect(pair.dialling.provenPeer == nil && pair.accepting.provenPeer == nil)
        try pair.shakeHands()
        #expect(pair.dialling.isEstablished && pair.accepting.isEstablished)
        #expect(pair.dialling.provenPeer == ChannelPair.accepter.peerID)
        #expect(pair.accepting.provenPeer == ChannelPair.dialler.peerID)
        #expect(!pair.dialling.wasResumed && !pair.accepting.wasResumed)
        #expect(try pair.send([[1, 2, 3]]) == [1, 2, 3])
        #expect(try pair.sendBack([[4, 5]]) == [4, 5])
    }

    @Test(arguments: [0, 1, 100, 16_383, 16_384, 16_385, 32_768, 65_536, 100_000, 1 << 20])
    func bytesArriveAsTheyWereSent(count: Int) throws {
        let pair = try ChannelPair.established()
        let bytes = Self.pattern(count)
        #expect(try pair.send([bytes]) == bytes)
        #expect(try pair.sendBack([bytes]) == bytes)
        pair.split = 777
        #expect(try pair.send([bytes]) == bytes)
    }
}
