import NighLoop
import NighTestKit
import Testing

@Suite struct BreakingNetworkTests {
    @Test
    func `messages arrive once and in order when the link is cut under them`()
        throws
    {
        let network = SimulatedNetwork()
        let (puma, lynx) = try network.connectedPair()

        for number in UInt8(0)..<100 {
            try puma.session.lowLevel.trySend([number], to: lynx.id)
            if number == 50 { puma.faults.cut() }
        }
        try network.run(for: .seconds(30))
        #expect(lynx.messages.flatMap(\.bytes) == Array(0..<100))
        #expect(puma.isConnected(to: lynx))
    }
}
