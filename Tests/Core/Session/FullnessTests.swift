import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite("A session that accepts no more peers") struct FullnessTests {
    private func isFull(_ host: SessionProbe, seenBy browser: SessionProbe) -> Bool? {
        let machine = browser.session.driver.machine
        return machine.peers[host.id].map { machine.snapshot(of: $0).isFull }
    }

    /// How often a browser was told that the peer became full or has room again.
    private func changes(of host: SessionProbe, seenBy browser: SessionProbe) -> Int {
        var seen: [Bool] = []
        for event in browser.events {
            guard case .peerChanged(let peer) = event, peer.id == host.id, seen.last != peer.isFull else {
                continue
            }
            seen.append(peer.isFull)
        }
        return seen.count
    }

    @Test("says so to browsers before they ask, and takes it back when there is room")
    func isSeen() throws {
        let place = Neighbourhood()
        let host = place.join("Host") { $0.limits.peers = 2 }
        let guests = (0..<2).map { place.join("Guest \($0)", role: .client) }
        let browser = place.join("Browser", role: .client)
        try place.run(.seconds(1))
        guests[0].invite(host)
        try place.run(.seconds(2))
        #expect(isFull(host, seenBy: browser) == false)
        guests[1].invite(host)
        try place.run(.seconds(2))
        #expect(isFull(host, seenBy: browser) == true)
        browser.invite(host)
        try place.run(.seconds(1))
        #expect(browser.failure?.cause == .full)
        guests[0].session.disconnect(host.id)
        try place.run(.seconds(2))
        #expect(isFull(host, seenBy: browser) == false)
        browser.invite(host)
        try place.run(.seconds(2))
        #expect(browser.outcomes.last == .success(host.id))
        #expect(isFull(host, seenBy: browser) == true)
        // A session that nobody holds any more leaves.
        withExtendedLifetime(guests) {}
    }

    /// A host with room for one peer, and two that see it.
    private func meet() throws -> (
        place: Neighbourhood, host: Neighbourhood.Member, guest: Neighbourhood.Member,
        browser: Neighbourhood.Member
    ) {
        let place = Neighbourhood()
        let host = place.join("Host") { $0.limits.peers = 1 }
        let (guest, browser) = (
            place.join("Guest", role: .client), place.join("Browser", role: .client)
        )
        try place.run(.seconds(1))
        return (place, host, guest, browser)
    }

    @Test("keeps saying so when its discovery info changes")
    func infoChanges() throws {
        let (place, host, guest, browser) = try meet()
        guest.invite(host)
        try place.run(.seconds(2))
        host.session.update(info: try DiscoveryInfo(["table": "busy"]))
        try place.run(.seconds(1))
        #expect(isFull(host, seenBy: browser) == true)
        #expect(browser.session.driver.machine.peers[host.id]?.info["table"] == "busy")
    }

    @Test("is full also while the link of a peer is broken")
    func reconnecting() throws {
        let (place, host, guest, browser) = try meet()
        guest.invite(host)
        try place.run(.seconds(2))
        guest.faults.block()
        guest.faults.cut()
        try place.run(.seconds(2))
        #expect(host.session.driver.machine.peers[guest.id]?.state == .reconnecting)
        #expect(isFull(host, seenBy: browser) == true)
        #expect(changes(of: host, seenBy: browser) == 1)
    }

    @Test(
        "announces a change at most once a second, however often a peer comes and goes, and always the last")
    func isBounded() throws {
        let (place, host, guest, browser) = try meet()
        for _ in 0..<20 {
            guest.invite(host)
            try place.run(.milliseconds(50))
            guest.session.disconnect(host.id)
            try place.run(.milliseconds(50))
        }
        #expect(guest.outcomes.count == 20 && guest.failure == nil)
        #expect((1...4).contains(changes(of: host, seenBy: browser)))
        try place.run(.seconds(2))
        #expect(isFull(host, seenBy: browser) == false)
        guest.invite(host)
        try place.run(.seconds(2))
        #expect(isFull(host, seenBy: browser) == true)
    }

    @Test("stays full for those who see it twice and lose sight of it once")
    func seenTwice() throws {
        let browser = try ScriptedPeer()
        let advertisement = Advertisement(
            service: "test", peer: ScriptedPeer.peer, name: ScriptedPeer.hello.name, isFull: true)
        let sightings = ["here", "there"].map {
            Sighting(address: ScriptedTransport.address($0), advertisement: advertisement)
        }
        let events = try #require(browser.transport.events)
        let machine = browser.session.driver.machine
        for sighting in sightings { events.routeFound(sighting, by: browser.transport) }
        let peer = try #require(machine.peers[ScriptedPeer.peer])
        #expect(machine.snapshot(of: peer).isFull)
        events.routeLost(sightings[0].address, by: browser.transport)
        #expect(machine.snapshot(of: peer).isFull)
    }

    @Test("is not full any more for those who know its address and no longer see it")
    func unseen() throws {
        let browser = try ScriptedPeer()
        let advertisement = Advertisement(
            service: "test", peer: ScriptedPeer.peer, name: ScriptedPeer.hello.name, isFull: true)
        try browser.beginConversation()
        let sighting = Sighting(
            address: ScriptedTransport.address("elsewhere"), advertisement: advertisement)
        let events = try #require(browser.transport.events)
        let machine = browser.session.driver.machine
        events.routeFound(sighting, by: browser.transport)
        let peer = try #require(machine.peers[ScriptedPeer.peer])
        #expect(machine.snapshot(of: peer).isFull)
        events.routeLost(sighting.address, by: browser.transport)
        #expect(!machine.snapshot(of: peer).isFull && !peer.routes.isEmpty)
    }

    @Test("announces a change a second after the one before, and not later")
    func pause() throws {
        let (place, host, guest, browser) = try meet()
        guest.invite(host)
        for _ in 0..<1_000 where isFull(host, seenBy: browser) == false { try place.run(.milliseconds(1)) }
        #expect(isFull(host, seenBy: browser) == true)
        guest.session.disconnect(host.id)
        try place.run(.milliseconds(900))
        #expect(isFull(host, seenBy: browser) == true)
        try place.run(.milliseconds(110))
        #expect(isFull(host, seenBy: browser) == false)
    }
}
