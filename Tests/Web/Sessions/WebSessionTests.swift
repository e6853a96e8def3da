import Glibc
import NighTestKit
import Testing

@testable import NighCore

@Suite("A session and its guest, over WebSockets") struct WebSessionTests {
    @Test
    func `go on where they were after the connection has broken, and every message arrives exactly once`()
        throws
    {
        let place = try #require(HostWithGuest(pings: false))
        defer { place.stop() }
        let (host, guest) = (place.host, place.guest)
        var sent: [String] = []
        for round in 0..<4 {
            for number in 0..<50 {
                let text = "\(round)-\(number)"
                sent.append(text)
                try guest.session.trySend(Array(text.utf8), to: host.id)
                try host.session.trySend(Array(text.utf8), to: place.guestID)
            }
            guest.session.loop.execute { guest.faults.cut() }
            #expect(host.wait { $0.texts.count == sent.count })
            #expect(guest.wait { $0.texts.count == sent.count })
        }
        #expect(host.texts == sent && guest.texts == sent)
        #expect(host.peer(place.guestID)?.trust == .guest)
        let cuts = host.events.count { if case .reconnected = $0 { true } else { false } }
        #expect((1...4).contains(cuts))
    }

    @Test func `end when the session sends the guest away, which does not come back`() throws {
        let place = try #require(HostWithGuest(pings: false))
        defer { place.stop() }
        place.host.session.revokeGuest(place.guestID)
        let partings = { (host: SessionProbe) in
            host.events.count { if case .disconnected = $0 { true } else { false } }
        }
        #expect(place.host.wait { partings($0) == 1 })
        let isAway = { (host: SessionProbe) in host.state(of: place.guestID) != .connected }
        #expect(place.host.wait(isAway))
        #expect(place.guest.wait { $0.state(of: place.host.id) != .connected })
        usleep(500_000)
        #expect(place.guest.state(of: place.host.id) != .connected && isAway(place.host))
    }
}
