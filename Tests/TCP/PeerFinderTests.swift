import NighCore
import NighMDNS
import NighTestKit
import NighUV
import Testing

@testable import NighTCP

struct PeerFinderTests {
    /// `@unchecked Sendable`: used on the loop; the monitor guards what tests read.
    private final class Finding: PeerFinderEvents, @unchecked Sendable {
        let monitor = Monitor()
        var probeCount: Int?
        var changes: [SightingChange] = []

        func neighboursChanged(_ changes: [SightingChange]) { self.changes += changes }
        func advertised(as name: DisplayName) {}
        func advertisingFailed(_ error: NighError) {}
        func browsingFailed(_ error: NighError) {}
    }

    private func place(_ last: UInt8) -> DiscoveredService.Place {
        DiscoveredService.Place(
            host: "h.local", port: 4000,
            addresses: [HostAddress(bytes: [10, 0, 0, last], interface: 2)].compactMap { $0 })
    }

    /// An instance that claims to be another peer each time must not leave a growing number of peers to probe.
    @Test func onlyPeersStillAnnouncedAreProbed() throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let finding = Finding()
        loop.execute {
            // An interface that does not exist keeps the finder off the network.
            let finder = PeerFinder(mode: .embedded, interface: "nowhere0", on: loop, events: finding) {
                _, tell in
                tell(true)
            }
            finder.browse("game")
            for seed in 1...50 as ClosedRange<UInt64> {
                let peer = Identity.ephemeral(seed: seed).peerID
                let text = [("v", "1"), ("id", peer.description)].compactMap {
                    TextEntry(key: $0.0, value: $0.1)
                }
                finder.serviceFoundOrChanged(
                    DiscoveredService(
                        key: DiscoveredService.Key(name: "Puma", interface: 2), places: [place(7)],
                        texts: [text], isOwn: false))
            }
            finding.monitor.change { finding.probeCount = finder.presence.count }
            finder.shutdown()
        }
        try #require(finding.monitor.wait(within: .seconds(20)) { finding.probeCount != nil })
        // Each of them was found, and all but the last were lost.
        #expect(finding.changes.count == 99)
        #expect(finding.probeCount == 1)
    }

    /// Announces each peer under a name and at a place of its own.
    private func announce(_ peers: [PeerID], to finder: PeerFinder) {
        for (number, peer) in peers.enumerated() {
            let text = [("v", "1"), ("id", peer.description)].compactMap {
                TextEntry(key: $0.0, value: $0.1)
            }
            finder.serviceFoundOrChanged(
                DiscoveredService(
                    key: DiscoveredService.Key(name: "Puma \(number)", interface: 2),
                    places: [place(UInt8(number))], texts: [text], isOwn: false))
        }
    }

    /// While the one interface of the transport is down, the session forgets all peers, and nobody announces them anew.
    @Test func peersThatAreStillAnnouncedAreFoundAgain() throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let finding = Finding()
        let peers = (1...3 as ClosedRange<UInt64>).map { Identity.ephemeral(seed: $0).peerID }
        loop.execute {
            let finder = PeerFinder(mode: .embedded, interface: "nowhere0", on: loop, events: finding) {
                _, tell in
                tell(true)
            }
            finder.reportAgain()
            finder.browse("game")
            announce(peers, to: finder)
            finder.serviceLost(DiscoveredService.Key(name: "Puma 0", interface: 2))
            finding.changes = []
            finder.reportAgain()
            finding.monitor.change { finding.probeCount = finder.presence.count }
            finder.shutdown()
        }
        try #require(finding.monitor.wait(within: .seconds(20)) { finding.probeCount != nil })
        let found = finding.changes.compactMap { change in
            if case .found(let sighting) = change { sighting.advertisement } else { nil }
        }
        #expect(found.map(\.peer) == peers.dropFirst().sorted())
        #expect(Set(found.map(\.name.description)) == ["Puma 1", "Puma 2"])
        #expect(finding.probeCount == 2)
    }

    /// Without this rule, two peers that have found each other, but have no conversation, would probe each other
    /// forever.
    @Test func aPeerThatOnlyProbedIsNotProbed() throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let finding = Finding()
        let probed = Probed()
        // In the order in which they are probed when they are due.
        let peers = (1...2 as ClosedRange<UInt64>).map { Identity.ephemeral(seed: $0).peerID }.sorted()
        loop.execute {
            let finder = PeerFinder(mode: .embedded, interface: "nowhere0", on: loop, events: finding) {
                peer, tell in
                finding.monitor.change { probed.peers.append(peer) }
                tell(true)
            }
            probed.finder = finder
            finder.browse("game")
            announce(peers, to: finder)
            finder.pipeEnded(to: nil, host: .v4(0x0A00_0000), saidSomething: false)
            finder.pipeEnded(to: nil, host: .v4(0x0A00_0001), saidSomething: true)
        }
        try #require(finding.monitor.wait(within: .seconds(20)) { !probed.peers.isEmpty })
        #expect(probed.peers == [peers[1]])
        loop.execute { probed.finder?.shutdown() }
    }

    /// `@unchecked Sendable`: guarded by the monitor; the finder is used on the loop.
    private final class Probed: @unchecked Sendable {
        var peers: [PeerID] = []
        var finder: PeerFinder?
    }
}
