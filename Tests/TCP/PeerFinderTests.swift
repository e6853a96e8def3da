import NighCore
import NighMDNS
import NighTestKit
import NighUV
import Testing

@testable import NighTCP

struct PeerFinderTests {
    /// A finder on a loop of its own, which looks for peers and finds each of them accepting.
    ///
    /// `@unchecked Sendable`: used on the loop; the monitor guards the probes.
    private final class Ground: PeerFinderEvents, @unchecked Sendable {
        private let loop = UVEventLoop()
        private let monitor = Monitor()
        private var finder: PeerFinder!
        private(set) var changes: [SightingChange] = []
        private(set) var probes: [PeerID] = []

        init() {
            call { [self] in
                // An interface that does not exist keeps the finder off the network.
                finder = PeerFinder(mode: .embedded, interface: "nowhere0", on: loop, events: self) {
                    [unowned self] peer, reply in
                    monitor.change { probes.append(peer) }
                    reply(true)
                }
                finder.reportAgain()
                finder.browse("game")
            }
        }

        deinit {
            loop.call { [finder] in finder?.shutdown() }
            loop.shutdown()
        }

        func call(_ body: @escaping () -> Void) { loop.call(body) }

        /// Calls the finder on the loop. Returns the number of peers that it then probes.
        func probedCount(after body: @escaping (PeerFinder) -> Void) -> Int {
            loop.call { [self] in
                body(finder)
                return finder.presence.count
            }
        }

        /// Announces each peer at an address of its own, as the instance that `name` gives its number.
        static func announce(
            _ peers: [PeerID], to finder: PeerFinder, name: (Int) -> String = { "Puma \($0)" }
        ) {
            for (number, peer) in peers.enumerated() {
                let address = HostAddress(bytes: [10, 0, 0, UInt8(number)], interface: 2)
                finder.serviceFoundOrChanged(
                    DiscoveredService(
                        key: DiscoveredService.Key(name: name(number), interface: 2),
                        endpoints: [.init(host: "h.local", port: 4000, addresses: [address!])],
                        texts: [[("v", "1"), ("id", "\(peer)")].map { TextEntry(key: $0.0, value: $0.1)! }],
                        isOwn: false))
            }
        }

        func waitForProbe() -> Bool { monitor.wait(within: .seconds(20)) { !probes.isEmpty } }

        func forgetChanges() { changes = [] }

        func neighboursChanged(_ changes: [SightingChange]) { self.changes += changes }
        func advertised(as name: DisplayName) {}
        func advertisingFailed(_ error: NighError) {}
        func browsingFailed(_ error: NighError) {}
    }

    private static func peers(_ count: UInt64) -> [PeerID] {
        (1...count).map { Identity.ephemeral(seed: $0).peerID }
    }

    @Test func `An instance that claims to be another peer each time leaves one peer to probe`() {
        let ground = Ground()
        let count = ground.probedCount { Ground.announce(Self.peers(50), to: $0) { _ in "Puma" } }
        #expect(count == 1)
        // Each of them was found, and all but the last were lost.
        #expect(ground.changes.count == 99)
    }

    /// While the one interface of the transport is down, the session forgets all peers, and nobody announces them anew.
    @Test func `Peers that are still announced are reported again on request`() {
        let ground = Ground()
        let peers = Self.peers(3)
        let count = ground.probedCount {
            Ground.announce(peers, to: $0)
            $0.serviceLost(DiscoveredService.Key(name: "Puma 0", interface: 2))
            ground.forgetChanges()
            $0.reportAgain()
        }
        let found = ground.changes.compactMap { change in
            if case .found(let sighting) = change { sighting.advertisement } else { nil }
        }
        #expect(found.map(\.peer) == peers.dropFirst().sorted())
        #expect(Set(found.map(\.name.description)) == ["Puma 1", "Puma 2"])
        #expect(count == 2)
    }

    /// Without this rule, two peers that have found each other, but have no conversation, would probe each other
    /// forever.
    @Test func `A peer that only probed is not probed`() {
        let ground = Ground()
        // In the order in which they are probed when they are due.
        let peers = Self.peers(2).sorted()
        _ = ground.probedCount {
            Ground.announce(peers, to: $0)
            $0.pipeEnded(to: nil, host: .v4(0x0A00_0000), saidSomething: false)
            $0.pipeEnded(to: nil, host: .v4(0x0A00_0001), saidSomething: true)
        }
        #expect(ground.waitForProbe())
        #expect(ground.probes == [peers[1]])
    }
}
