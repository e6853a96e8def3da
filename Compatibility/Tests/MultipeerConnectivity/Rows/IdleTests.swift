import MultipeerConnectivity
import Testing

/// Devices end a conversation that nobody has needed for a while. Programs do not notice.
@Suite("A conversation that nobody needs", .timeLimit(.minutes(10))) struct IdleTests {
    @Test("ends, and an invitation that is sent at that moment connects the two nevertheless")
    func crossing() async {
        let service = Device.service()
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        withoutIdleTime {
            lynx.advertiser.startAdvertisingPeer()
            puma.browser.startBrowsingForPeers()
        }
        await puma.connectAndDisconnect(lynx, times: 100)
        puma.end()
        lynx.end()
    }
}
