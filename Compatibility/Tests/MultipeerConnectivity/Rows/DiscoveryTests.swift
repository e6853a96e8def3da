import MultipeerConnectivity
import Testing

/// Rows 18 to 21, 23 to 25 of the table in the guide: finding and losing peers.
@Suite("Discovery", .timeLimit(.minutes(10))) struct DiscoveryTests {
    private let service = Device.service()

    @Test(
        "finds a peer with its info, loses it when it stops advertising, and finds it again as the same object"
    )
    func comesAndGoes() async throws {
        let info = ["first": "123456", "second": "123456", "third": "123456", "fourth": "", "id": "x"]
        let puma = Device("Puma", service: service, info: info)
        let lynx = Device("Lynx", service: service)
        lynx.browser.startBrowsingForPeers()
        puma.advertiser.startAdvertisingPeer()
        await lynx.wait(for: .found(puma.id, info))
        let found = try await lynx.found("Puma")
        puma.advertiser.stopAdvertisingPeer()
        await lynx.wait(for: .lost(puma.id))
        puma.advertiser.startAdvertisingPeer()
        await lynx.wait(for: .found(puma.id, info), times: 2)
        let again = lynx.events.last.flatMap { if case .found(let peer, _) = $0 { peer } else { nil } }
        #expect(again === found && again?.hash == puma.id.hash && again?.displayName == "Puma")
        puma.end()
        lynx.end()
    }

    @Test("tells nothing of pairs if there are none", arguments: [false, true])
    func noInfo(isEmpty: Bool) async throws {
        let info: [String: String]? = isEmpty ? [:] : nil
        let puma = Device("Puma", service: service, info: info)
        let lynx = Device("Lynx", service: service)
        lynx.browser.startBrowsingForPeers()
        puma.advertiser.startAdvertisingPeer()
        _ = try await lynx.found("Puma")
        #expect(lynx.events == [.found(puma.id, info)])
        puma.end()
        lynx.end()
    }

    @Test("does not find the own peer, but another one of the same program with the same name")
    func itself() async throws {
        let (puma, other) = (Device("Puma", service: service), Device("Puma", service: service))
        puma.advertiser.startAdvertisingPeer()
        puma.browser.startBrowsingForPeers()
        other.advertiser.startAdvertisingPeer()
        await puma.wait { $0.contains { if case .found(other.id, _) = $0 { true } else { false } } }
        #expect(!puma.events.contains { if case .found(puma.id, _) = $0 { true } else { false } })
        #expect(try await puma.found("Puma") == other.id)
        puma.end()
        other.end()
    }

    @Test(
        "of a connected peer goes on: the peer is lost to browsers when it stops advertising, and stays connected"
    )
    func connectedPeer() async throws {
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        await puma.connect(lynx)
        lynx.advertiser.stopAdvertisingPeer()
        await puma.wait(for: .lost(lynx.id))
        #expect(puma.session.connectedPeers == [lynx.id])
        try lynx.session.send(Data("here".utf8), toPeers: [puma.id], with: .reliable)
        await puma.wait(for: .message(lynx.id, Data("here".utf8)))
        puma.end()
        lynx.end()
    }

    @Test("may be started and stopped twice, and stopped before it is started; upper case does not matter")
    func twice() async throws {
        let puma = Device("Puma", service: service.uppercased())
        let lynx = Device("Lynx", service: service)
        puma.advertiser.stopAdvertisingPeer()
        lynx.browser.stopBrowsingForPeers()
        for _ in 0..<2 {
            puma.advertiser.startAdvertisingPeer()
            lynx.browser.startBrowsingForPeers()
        }
        _ = try await lynx.found("Puma")
        #expect(lynx.events.count == 1)
        for _ in 0..<2 {
            puma.advertiser.stopAdvertisingPeer()
            lynx.browser.stopBrowsingForPeers()
        }
        // A browser that begins anew finds everybody anew, and one that is stopped may still invite.
        puma.advertiser.startAdvertisingPeer()
        lynx.browser.startBrowsingForPeers()
        await lynx.wait { $0.filter { if case .found = $0 { true } else { false } }.count >= 2 }
        lynx.browser.stopBrowsingForPeers()
        lynx.browser.invitePeer(puma.id, to: lynx.session, withContext: nil, timeout: Device.patience)
        await lynx.wait(for: .state(puma.id, .connected))
        puma.end()
        lynx.end()
    }

    @Test("fails with an error if the info is too long")
    func tooLong() async {
        let puma = Device("Puma", service: service, info: ["key": String(repeating: "x", count: 500)])
        puma.advertiser.startAdvertisingPeer()
        await puma.wait(for: .failed)
        #expect((puma.errors.first as? NSError)?.domain == MCErrorDomain)
    }
}
