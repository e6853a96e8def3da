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

    private func service(
        _ name: String, _ text: [TextEntry], on interface: UInt32 = 2, port: UInt16 = 4000,
        addresses: [[UInt8]] = [[10, 0, 0, 7]], isOwn: Bool = false
    ) -> DiscoveredService {
        DiscoveredService(
            key: DiscoveredService.Key(name: name, interface: interface), host: "somewhere.local", port: port,
            text: text,
            addresses: addresses.compactMap { HostAddress(bytes: $0, interface: Int32(interface)) },
            isOwn: isOwn)
    }

    private func sighting(_ peer: PeerID, _ name: String, _ info: [String: String] = [:]) throws -> Sighting {
        Sighting(
            address: TransportAddress(scheme: "tcp", value: "\(peer).mdns"),
            advertisement: Advertisement(
                service: "game", peer: peer, name: DisplayName(fitting: name), info: try DiscoveryInfo(info)))
    }

    private func hosts(_ neighbours: Neighbours, _ peer: PeerID, own: [String] = [], port: UInt16? = nil)
        -> [String]
    {
        let own = Set(own.compactMap { SocketAddress(numeric: $0, port: 0)?.host })
        return neighbours.addresses(of: peer, ownHosts: own, ownPort: port).map(\.hostDescription)
    }

    @Test func aPeerOnTwoInterfacesIsOne() throws {
        var neighbours = Neighbours()
        let first = neighbours.saw(service("Puma", text(puma)), of: "game")
        #expect(try first == [.found(sighting(puma, "Puma"))])
        let wireless = service("Puma", text(puma), on: 3, addresses: [[10, 0, 1, 7]])
        #expect(neighbours.saw(wireless, of: "game") == [])
        #expect(Set(hosts(neighbours, puma)) == ["10.0.0.7", "10.0.1.7"])
        #expect(neighbours.lost(wireless.key) == [])
        #expect(hosts(neighbours, puma) == ["10.0.0.7"])
        let address = try sighting(puma, "Puma").address
        #expect(neighbours.lost(service("Puma", []).key) == [.lost(address)])
        #expect(neighbours.lost(service("Puma", []).key) == [])
    }

    @Test func twoOfOneNameAreTwo() throws {
        var neighbours = Neighbours()
        _ = neighbours.saw(service("Puma", text(puma)), of: "game")
        let other = neighbours.saw(service("Puma", text(lynx), on: 3), of: "game")
        #expect(try other == [.found(sighting(lynx, "Puma"))])
        #expect(neighbours.told == [puma, lynx].sorted())
    }

    @Test func aRenamedPeerChangesAndIsNotLost() throws {
        var neighbours = Neighbours()
        _ = neighbours.saw(service("Puma", text(puma)), of: "game")
        let renamed = neighbours.saw(service("Panther", text(puma)), of: "game")
        #expect(try renamed == [.changed(sighting(puma, "Panther"))])
        #expect(neighbours.lost(service("Puma", []).key) == [])
        let said = neighbours.saw(service("Panther", text(puma, [("table", "open")])), of: "game")
        #expect(try said == [.changed(sighting(puma, "Panther", ["table": "open"]))])
    }

    @Test func anInstanceTakenOverByAnotherPeerIsThatPeer() throws {
        var neighbours = Neighbours()
        _ = neighbours.saw(service("Puma", text(puma)), of: "game")
        let changes = neighbours.saw(service("Puma", text(lynx)), of: "game")
        #expect(try changes == [.lost(sighting(puma, "").address), .found(sighting(lynx, "Puma"))])
    }

    @Test func oneselfIsNeverSeen() {
        var neighbours = Neighbours(own: puma)
        #expect(neighbours.saw(service("Puma", text(puma)), of: "game") == [])
        #expect(neighbours.saw(service("Lynx", text(lynx), isOwn: true), of: "game") == [])
        #expect(neighbours.count == 0)
    }

    @Test func whatIsNoSessionIsIgnoredAndCounted() {
        var neighbours = Neighbours()
        let wrong: [[(String, String)]] = [
            [], [("v", "1")], [("v", ""), ("id", puma.description)], [("v", "01"), ("id", puma.description)],
            [("v", "1"), ("id", "puma")], [("v", "1"), ("id", puma.description.uppercased())],
        ]
        for (index, pairs) in wrong.enumerated() {
            let entries = pairs.compactMap { TextEntry(key: $0.0, value: $0.1) }
            #expect(neighbours.saw(service("Printer \(index)", entries), of: "game") == [])
            #expect(neighbours.saw(service("Printer \(index)", entries), of: "game") == [])
        }
        #expect(neighbours.ignoredCount == wrong.count)
        #expect(neighbours.ignored["Printer 0"] == .noVersion)
        #expect(neighbours.ignored["Printer 1"] == .noIdentity)
        #expect(neighbours.ignored["Printer 4"] == .badIdentity("puma"))
    }

    @Test func aTextThatBecomesWrongLosesThePeer() throws {
        var neighbours = Neighbours()
        _ = neighbours.saw(service("Puma", text(puma)), of: "game")
        #expect(neighbours.saw(service("Puma", []), of: "game") == [.lost(try sighting(puma, "").address)])
    }

    @Test func pairsThatCanBeNoneAreLeftOut() throws {
        var neighbours = Neighbours()
        var entries = text(puma, [("table", "open"), ("averylongkey", "x")])
        entries += [TextEntry(key: "raw", value: [0xFF, 0xFE]), TextEntry(key: "flag", value: nil)].compactMap
        { $0 }
        let changes = neighbours.saw(service("Puma", entries), of: "game")
        #expect(try changes == [.found(sighting(puma, "Puma", ["table": "open"]))])
    }

    @Test func aPeerThatDoesNotOpenIsLostUntilItDoes() throws {
        var neighbours = Neighbours()
        _ = neighbours.saw(service("Puma", text(puma)), of: "game")
        let found = SightingChange.found(try sighting(puma, "Puma"))
        let lost = SightingChange.lost(try sighting(puma, "").address)
        #expect(neighbours.knocked(at: puma, opened: true) == [])
        #expect(neighbours.knocked(at: puma, opened: false) == [lost])
        #expect(neighbours.knocked(at: puma, opened: false) == [])
        #expect(neighbours.saw(service("Puma", text(puma, [("a", "b")])), of: "game") == [])
        #expect(
            neighbours.knocked(at: puma, opened: true) == [.found(try sighting(puma, "Puma", ["a": "b"]))])
        _ = neighbours.knocked(at: puma, opened: false)
        // Started anew, it listens elsewhere: it need not wait for the next knock.
        #expect(neighbours.saw(service("Puma", text(puma), port: 4001), of: "game") == [found])
        #expect(neighbours.knocked(at: lynx, opened: true) == [])
    }

    @Test func whoTakesOverAnInstanceIsNotTakenForAbsent() throws {
        var neighbours = Neighbours()
        _ = neighbours.saw(service("Puma", text(puma)), of: "game")
        _ = neighbours.saw(service("Lynx", text(lynx)), of: "game")
        _ = neighbours.knocked(at: lynx, opened: false)
        let changes = neighbours.saw(service("Puma", text(lynx)), of: "game")
        #expect(try changes == [.lost(sighting(puma, "").address), .found(sighting(lynx, "Puma"))])
    }

    @Test func anAddressThatIsOnesOwnTooIsNotDialled() {
        var neighbours = Neighbours()
        let bridge: [UInt8] = [172, 17, 0, 1]
        _ = neighbours.saw(
            service("Puma", text(puma), addresses: [bridge, [10, 0, 0, 7]]), of: "game")
        #expect(hosts(neighbours, puma, own: ["172.17.0.1", "10.0.0.1"]) == ["10.0.0.7"])
        // A program of this machine has no other addresses than this machine.
        _ = neighbours.saw(
            service("Lynx", text(lynx), on: 1, addresses: [bridge, [127, 0, 0, 1]]), of: "game")
        #expect(hosts(neighbours, lynx, own: ["172.17.0.1", "127.0.0.1"]) == ["127.0.0.1", "172.17.0.1"])
        // At one's own port nobody but oneself can be.
        #expect(hosts(neighbours, lynx, own: ["172.17.0.1", "127.0.0.1"], port: 4000) == [])
    }
}
