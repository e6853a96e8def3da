import MultipeerConnectivity
import Testing

/// What a program does not see: devices end a conversation that nobody has needed for a while.
@Suite("A conversation that nobody needs", .timeLimit(.minutes(3))) struct IdleTests {
    @Test("ends, and an invitation that crosses its end leads to a connected peer all the same")
    func crossing() async {
        let service = Device.service()
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        withoutIdleTime {
            lynx.advertiser.startAdvertisingPeer()
            puma.browser.startBrowsingForPeers()
        }
        for round in 1...100 {
            await puma.invite(lynx)
            await puma.wait(for: .state(lynx.id, .connected), times: round)
            await lynx.wait(for: .state(puma.id, .connected), times: round)
            (round.isMultiple(of: 2) ? puma : lynx).session.disconnect()
            await puma.wait(for: .state(lynx.id, .notConnected), times: round)
            await lynx.wait(for: .state(puma.id, .notConnected), times: round)
        }
        #expect(puma.states(of: lynx.id).count == 300 && lynx.states(of: puma.id).count == 300)
        puma.end()
        lynx.end()
    }
}
