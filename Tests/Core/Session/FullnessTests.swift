import NighTestKit
import Testing

@testable import NighCore

/// Tests a session that accepts no more peers: how it refuses them, and how it says so before they ask.
@Suite struct FullnessTests {
    private let network = SimulatedNetwork()
    private let host: SessionProbe
    private let guest: SessionProbe
    private let browser: SessionProbe

    /// A host with room for one peer, and two that see it.
    init() throws {
        host = network.join("Host") { $0.limits.peers = 1 }
        (guest, browser) = (network.join("Guest", role: .client), network.join("Browser", role: .client))
        try network.run(for: .seconds(1))
    }

    private func enter(_ guest: SessionProbe) throws {
        try network.invite(host, from: guest)
        try network.run(for: .seconds(1))
    }

    /// Whether the browser sees that the host is full.
    private var isSeenFull: Bool? {
        browser.machine.peers[host.id].map { browser.machine.snapshot(of: $0).isFull }
    }

    /// How often the browser was told that the host became full or has room again.
    private var changes: Int {
        var seen: [Bool] = []
        for event in browser.events {
            guard case .peerChanged(let peer) = event, peer.id == host.id, seen.last != peer.isFull else {
                continue
            }
            seen.append(peer.isFull)
        }
        return seen.count
    }

    @Test func `A full session refuses invitations, says so before, and takes it back when there is room`()
        throws
    {
        #expect(isSeenFull == false)
        try enter(guest)
        #expect(isSeenFull == true)
        try enter(browser)
        #expect(browser.failure?.cause == .full && browser.failure?.retryAfter == .seconds(2))
        #expect(host.statistics.refusals["full"] == 1)
        guest.session.disconnect(host.id)
        try network.run(for: .seconds(2))
        #expect(isSeenFull == false)
        try enter(browser)
        #expect(browser.outcomes.last == .success(host.id) && isSeenFull == true)
    }

    @Test func `A session with two places is full with two peers`() throws {
        let host = network.join("Table") { $0.limits.peers = 2 }
        try network.run(for: .seconds(1))
        for (visitor, isFull) in [(guest, false), (self.host, true)] {
            try network.invite(host, from: visitor)
            try network.run(for: .seconds(1))
            #expect(browser.peer(host.id)?.isFull == isFull)
        }
    }

    @Test func `A full session keeps saying so when its discovery info changes`() throws {
        try enter(guest)
        host.session.update(info: try DiscoveryInfo(["table": "busy"]))
        try network.run(for: .seconds(1))
        #expect(isSeenFull == true && browser.machine.peers[host.id]?.info["table"] == "busy")
    }

    @Test func `A session is full also while the link of a peer is broken`() throws {
        try enter(guest)
        guest.faults.block()
        guest.faults.cut()
        try network.run(for: .seconds(2))
        #expect(host.state(of: guest.id) == .reconnecting)
        #expect(isSeenFull == true && changes == 1)
    }

    @Test func `A change is announced at most once a second, however often peers come and go`() throws {
        for _ in 0..<20 {
            guest.invite(host)
            try network.run(for: .milliseconds(50))
            guest.session.disconnect(host.id)
            try network.run(for: .milliseconds(50))
        }
        #expect(guest.outcomes.count == 20 && guest.failure == nil)
        #expect((1...4).contains(changes))
        try network.run(for: .seconds(2))
        #expect(isSeenFull == false, "the last change counts")
        try enter(guest)
        #expect(isSeenFull == true)
    }

    @Test func `A change is announced a second after the one before, and not later`() throws {
        guest.invite(host)
        _ = try network.time { isSeenFull == true }
        #expect(isSeenFull == true)
        guest.session.disconnect(host.id)
        try network.run(for: .milliseconds(900))
        #expect(isSeenFull == true)
        try network.run(for: .milliseconds(110))
        #expect(isSeenFull == false)
    }

    @Test(arguments: [true, false])
    func `A full peer counts as full for as long as it is seen anywhere`(isSeenTwice: Bool) throws {
        let browser = try ScriptedPeer.connected()
        let sightings = ["here", "there"].prefix(isSeenTwice ? 2 : 1).map {
            browser.find(at: ScriptedTransport.address($0), isFull: true)
        }
        let peer = try #require(browser.machine.peers[ScriptedPeer.peer])
        #expect(browser.machine.snapshot(of: peer).isFull)
        browser.transport.events?.routeLost(sightings[0].address, by: browser.transport)
        // The address of the conversation is still known, and says nothing about fullness.
        #expect(browser.machine.snapshot(of: peer).isFull == isSeenTwice && !peer.routes.isEmpty)
    }
}
