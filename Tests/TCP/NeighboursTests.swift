import NighCore
import Testing

@testable import NighMDNS
@testable import NighTCP

struct NeighboursTests {
    private let puma = Identity.ephemeral().peerID
    private let lynx = Identity.ephemeral().peerID

    private func text(_ peer: PeerID, _ pairs: [(String, String)] = []) -> [TextEntry] {
        ([("v", "1"), ("id", peer.description)] + pairs).compactMap { TextEntry(key: $0.0, value: $0.1) }
    }

    private func place(
        _ addresses: [[UInt8]], port: UInt16 = 4000, on interface: UInt32 = 2
    ) -> DiscoveredService.Endpoint {
        DiscoveredService.Endpoint(
            host: "somewhere.local", port: port,
            addresses: addresses.compactMap { HostAddress(bytes: $0, interface: Int32(interface)) })
    }

    private func service(
        _ name: String, _ text: [TextEntry], on interface: UInt32 = 2, port: UInt16 = 4000,
        addresses: [[UInt8]] = [[10, 0, 0, 7]], isOwn: Bool = false
    ) -> DiscoveredService {
        DiscoveredService(
            key: DiscoveredService.Key(name: name, interface: interface),
            endpoints: [place(addresses, port: port, on: interface)], texts: [text], isOwn: isOwn)
    }

    /// An instance that may have forged records beside the true ones.
    private func service(
        _ name: String, texts: [[TextEntry]], places: [DiscoveredService.Endpoint]? = nil
    ) -> DiscoveredService {
        DiscoveredService(
            key: DiscoveredService.Key(name: name, interface: 2),
            endpoints: places ?? [place([[10, 0, 0, 7]])],
            texts: texts, isOwn: false)
    }

    /// Forty addresses at which nobody listens.
    private let forged = (1...40).map { [10, 9, 0, UInt8($0)] as [UInt8] }

    private func sighting(_ peer: PeerID, _ name: String, _ info: [String: String] = [:]) throws -> Sighting {
        Sighting(
            address: TransportAddress(scheme: "tcp", value: "\(peer).mdns"),
            advertisement: Advertisement(
                service: "game", peer: peer, name: DisplayName(fitting: name), info: try DiscoveryInfo(info)))
    }

    /// The hosts to dial for a peer. `own` are this machine's addresses on interface 2, where the services are found;
    /// `bridges` are those on another interface.
    private func hosts(
        _ neighbours: Neighbours, _ peer: PeerID, own: [String] = [], bridges: [String] = [],
        port: UInt16? = nil
    ) -> [String] {
        var hosts: [SocketAddress.Host: Set<UInt32>] = [:]
        for (texts, index) in [(own, 2 as UInt32), (bridges, 5)] {
            for text in texts {
                if let address = SocketAddress(numeric: text, port: 0) { hosts[address.host] = [index] }
            }
        }
        return neighbours.addresses(of: peer, ownHosts: hosts, ownPort: port).map(\.hostDescription)
    }

    @Test func `A peer on two interfaces is reported once`() throws {
        var neighbours = Neighbours()
        let first = neighbours.update(service("Puma", text(puma)), of: "game")
        #expect(try first == [.found(sighting(puma, "Puma"))])
        let wireless = service("Puma", text(puma), on: 3, addresses: [[10, 0, 1, 7]])
        #expect(neighbours.update(wireless, of: "game") == [])
        #expect(Set(hosts(neighbours, puma)) == ["10.0.0.7", "10.0.1.7"])
        #expect(neighbours.remove(wireless.key) == [])
        #expect(hosts(neighbours, puma) == ["10.0.0.7"])
        let address = try sighting(puma, "Puma").address
        #expect(neighbours.remove(service("Puma", []).key) == [.lost(address)])
        #expect(neighbours.remove(service("Puma", []).key) == [])
    }

    @Test func `Two peers with one name are distinct`() throws {
        var neighbours = Neighbours()
        _ = neighbours.update(service("Puma", text(puma)), of: "game")
        let other = neighbours.update(service("Puma", text(lynx), on: 3), of: "game")
        #expect(try other == [.found(sighting(lynx, "Puma"))])
        #expect(neighbours.reportedPeers == [puma, lynx].sorted())
    }

    @Test func `A renamed peer changes and is not lost`() throws {
        var neighbours = Neighbours()
        _ = neighbours.update(service("Puma", text(puma)), of: "game")
        let renamed = neighbours.update(service("Panther", text(puma)), of: "game")
        #expect(try renamed == [.changed(sighting(puma, "Panther"))])
        #expect(neighbours.remove(service("Puma", []).key) == [])
        let said = neighbours.update(service("Panther", text(puma, [("table", "open")])), of: "game")
        #expect(try said == [.changed(sighting(puma, "Panther", ["table": "open"]))])
    }

    @Test func `A peer that becomes full changes and changes back`() throws {
        var neighbours = Neighbours()
        _ = neighbours.update(service("Puma", text(puma)), of: "game")
        let mark = try #require(TextEntry(key: "full", value: nil))
        var full = try sighting(puma, "Puma")
        full.advertisement.isFull = true
        #expect(neighbours.update(service("Puma", text(puma) + [mark]), of: "game") == [.changed(full)])
        #expect(
            try neighbours.update(service("Puma", text(puma)), of: "game") == [
                .changed(sighting(puma, "Puma"))
            ])
        #expect(neighbours.update(service("Puma", text(puma, [("full", "1")])), of: "game").count == 1)
        #expect(neighbours.update(service("Puma", text(puma, [("full", "1")]) + [mark]), of: "game") == [])
    }

    @Test func `An instance taken over by another peer is reported as that peer`() throws {
        var neighbours = Neighbours()
        _ = neighbours.update(service("Puma", text(puma)), of: "game")
        let changes = neighbours.update(service("Puma", text(lynx)), of: "game")
        #expect(try changes == [.lost(sighting(puma, "").address), .found(sighting(lynx, "Puma"))])
    }

    @Test func `Own services are ignored`() {
        var neighbours = Neighbours(own: puma)
        #expect(neighbours.update(service("Puma", text(puma)), of: "game") == [])
        #expect(neighbours.update(service("Lynx", text(lynx), isOwn: true), of: "game") == [])
        #expect(neighbours.count == 0)
    }

    @Test func `Services that are not sessions are ignored and counted`() {
        var neighbours = Neighbours()
        let wrong: [[(String, String)]] = [
            [], [("v", "1")], [("v", ""), ("id", puma.description)], [("v", "01"), ("id", puma.description)],
            [("v", "1"), ("id", "puma")], [("v", "1"), ("id", puma.description.uppercased())],
        ]
        for (index, pairs) in wrong.enumerated() {
            let entries = pairs.compactMap { TextEntry(key: $0.0, value: $0.1) }
            #expect(neighbours.update(service("Printer \(index)", entries), of: "game") == [])
            #expect(neighbours.update(service("Printer \(index)", entries), of: "game") == [])
        }
        #expect(neighbours.ignoredCount == wrong.count)
        #expect(neighbours.ignored["Printer 0"] == .noVersion)
        #expect(neighbours.ignored["Printer 1"] == .noIdentity)
        #expect(neighbours.ignored["Printer 4"] == .badIdentity("puma"))
    }

    @Test func `A text that becomes invalid loses the peer`() throws {
        var neighbours = Neighbours()
        _ = neighbours.update(service("Puma", text(puma)), of: "game")
        #expect(neighbours.update(service("Puma", []), of: "game") == [.lost(try sighting(puma, "").address)])
    }

    @Test func `Invalid pairs are left out`() throws {
        var neighbours = Neighbours()
        let long = String(repeating: "x", count: 200)
        var entries = text(puma, [("table", "open"), ("first", long), ("second", long)])
        entries += [TextEntry(key: "raw", value: [0xFF, 0xFE]), TextEntry(key: "flag", value: nil)].compactMap
        { $0 }
        let changes = neighbours.update(service("Puma", entries), of: "game")
        #expect(try changes == [.found(sighting(puma, "Puma", ["table": "open", "first": long]))])
    }

    @Test func `An unreachable peer is lost until it is reachable`() throws {
        var neighbours = Neighbours()
        _ = neighbours.update(service("Puma", text(puma)), of: "game")
        let found = SightingChange.found(try sighting(puma, "Puma"))
        let lost = SightingChange.lost(try sighting(puma, "").address)
        #expect(neighbours.probed(puma, accepted: true) == [])
        #expect(neighbours.probed(puma, accepted: false) == [lost])
        #expect(neighbours.probed(puma, accepted: false) == [])
        #expect(neighbours.update(service("Puma", text(puma, [("a", "b")])), of: "game") == [])
        #expect(
            neighbours.probed(puma, accepted: true) == [.found(try sighting(puma, "Puma", ["a": "b"]))])
        _ = neighbours.probed(puma, accepted: false)
        // After a restart it listens on another port, so it is found again without waiting for the next probe.
        #expect(neighbours.update(service("Puma", text(puma), port: 4001), of: "game") == [found])
        #expect(neighbours.probed(lynx, accepted: true) == [])
    }

    @Test func `A peer that takes over an instance is not absent`() throws {
        var neighbours = Neighbours()
        _ = neighbours.update(service("Puma", text(puma)), of: "game")
        _ = neighbours.update(service("Lynx", text(lynx)), of: "game")
        _ = neighbours.probed(lynx, accepted: false)
        let changes = neighbours.update(service("Puma", text(lynx)), of: "game")
        #expect(try changes == [.lost(sighting(puma, "").address), .found(sighting(lynx, "Puma"))])
    }

    @Test func `An address that this machine also has is not dialled`() {
        var neighbours = Neighbours()
        let bridge: [UInt8] = [172, 17, 0, 1]
        _ = neighbours.update(
            service("Puma", text(puma), addresses: [bridge, [10, 0, 0, 7]]), of: "game")
        #expect(hosts(neighbours, puma, own: ["10.0.0.1"], bridges: ["172.17.0.1"]) == ["10.0.0.7"])
        // A program on this machine has only addresses of this machine.
        _ = neighbours.update(
            service("Lynx", text(lynx), addresses: [bridge, [10, 0, 0, 1]]), of: "game")
        let own = hosts(neighbours, lynx, own: ["10.0.0.1"], bridges: ["172.17.0.1"])
        #expect(own == ["172.17.0.1", "10.0.0.1"])
        // At this program's own port, only this program itself can be reached.
        #expect(hosts(neighbours, lynx, own: ["10.0.0.1"], bridges: ["172.17.0.1"], port: 4000) == [])
    }

    // MARK: Forged announcements

    @Test func `A forged text beside the true one is reported as another peer`() throws {
        var neighbours = Neighbours()
        _ = neighbours.update(service("Puma", text(puma)), of: "game")
        let both = neighbours.update(service("Puma", texts: [text(lynx), text(puma)]), of: "game")
        #expect(try both == [.found(sighting(lynx, "Puma"))])
        #expect(hosts(neighbours, puma) == ["10.0.0.7"])
        // Now the forged text is the older one.
        #expect(neighbours.update(service("Puma", texts: [text(puma), text(lynx)]), of: "game") == [])
        let alone = neighbours.update(service("Puma", text(puma)), of: "game")
        #expect(try alone == [.lost(sighting(lynx, "").address)])
        #expect(try neighbours.remove(service("Puma", []).key) == [.lost(sighting(puma, "").address)])
        #expect(neighbours.count == 0)
    }

    @Test func `An invalid forged text does not hide a peer`() throws {
        var neighbours = Neighbours(own: lynx)
        let nonsense = [TextEntry(key: "v", value: "1")].compactMap { $0 }
        let changes = neighbours.update(
            service("Puma", texts: [nonsense, text(lynx), text(puma)]), of: "game")
        #expect(try changes == [.found(sighting(puma, "Puma"))])
        #expect(neighbours.ignoredCount == 0)
        #expect(neighbours.reportedPeers == [puma])
    }

    @Test(arguments: [false, true])
    func `Many forged addresses do not displace the true ones`(isFirst: Bool) {
        var neighbours = Neighbours()
        let true6 = [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [7]
        let lie = service("Evil", text(puma), addresses: forged)
        if isFirst { _ = neighbours.update(lie, of: "game") }
        _ = neighbours.update(service("Puma", text(puma), addresses: [true6, [10, 0, 0, 7]]), of: "game")
        if !isFirst { _ = neighbours.update(lie, of: "game") }
        let found = hosts(neighbours, puma)
        #expect(Set(found.prefix(4)).isSuperset(of: ["10.0.0.7"]))
        #expect(found.prefix(4).contains { $0.hasPrefix("fe80::7") })
        #expect(found.count == 42)
        _ = neighbours.remove(lie.key)
        #expect(hosts(neighbours, puma).count == 2)
    }

    @Test func `A forged host does not displace the true address`() {
        var neighbours = Neighbours()
        let places = [place(forged, port: 1), place([[10, 0, 0, 7]])]
        _ = neighbours.update(service("Puma", texts: [text(puma)], places: places), of: "game")
        let found = neighbours.addresses(of: puma, ownHosts: [:], ownPort: nil).map(\.description)
        #expect(found.prefix(3) == ["10.9.0.1:1", "10.0.0.7:4000", "10.9.0.2:1"])
        #expect(found.count == 41)
    }

    @Test(arguments: [0, 100])
    func `Many forged announcements do not displace the true address`(before: Int) {
        var neighbours = Neighbours()
        for number in 0..<100 {
            if number == before { _ = neighbours.update(service("Puma", text(puma)), of: "game") }
            _ = neighbours.update(service("Evil \(number)", text(puma), addresses: forged), of: "game")
        }
        if before == 100 { _ = neighbours.update(service("Puma", text(puma)), of: "game") }
        #expect(hosts(neighbours, puma).prefix(2).contains("10.0.0.7"))
    }

    /// The peer does not count as absent because nobody opens a pipe at the forged addresses: it
    /// is probed where it is dialled.
    @Test func `A local peer is dialled despite forged addresses`() {
        var neighbours = Neighbours()
        let own = ["10.0.0.1"]
        let here: [UInt8] = [10, 0, 0, 1]
        _ = neighbours.update(service("Puma", text(puma), addresses: [here]), of: "game")
        let lie = service("Evil", text(puma), addresses: forged)
        _ = neighbours.update(lie, of: "game")
        #expect(hosts(neighbours, puma, own: own).prefix(2).contains("10.0.0.1"))
        #expect(!hosts(neighbours, puma, own: own, port: 4000).contains("10.0.0.1"))
        // Forged as addresses of the peer's own host.
        _ = neighbours.remove(lie.key)
        _ = neighbours.update(service("Puma", text(puma), addresses: forged.dropLast(9) + [here]), of: "game")
        #expect(hosts(neighbours, puma, own: own).prefix(32).contains("10.0.0.1"))
        #expect(!hosts(neighbours, puma, own: own, port: 4000).contains("10.0.0.1"))
    }

    @Test func `An unreachable peer stays absent when a forged port is removed`() throws {
        var neighbours = Neighbours()
        let places = [place(forged, port: 1), place([[10, 0, 0, 7]])]
        _ = neighbours.update(service("Puma", texts: [text(puma)], places: places), of: "game")
        _ = neighbours.probed(puma, accepted: false)
        #expect(neighbours.update(service("Puma", text(puma)), of: "game") == [])
        let anew = [place([[10, 0, 0, 7]], port: 4001), places[1]]
        let back = neighbours.update(service("Puma", texts: [text(puma)], places: anew), of: "game")
        #expect(try back == [.found(sighting(puma, "Puma"))])
    }
}
