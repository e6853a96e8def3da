import NighCore
import NighMDNS
import NighTCP

/// Announcements that are found and lost, and the peers that are reported to the session because of them, which are
/// computed here in the simplest way.
struct NeighboursTarget {
    private static let peers = (1...4).map { Identity.ephemeral(seed: UInt64($0)).peerID }
    private static let service: ServiceName = "fuzz"
    private static let names = ["Puma", "puma", "K\u{FC}che", "Ku\u{308}che", "a\u{7}b", ""]
    private static let addresses: [[UInt8]] = [
        [10, 0, 0, 7], [127, 0, 0, 1], [172, 17, 0, 1],
        [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [7],
    ]

    private var neighbours = Neighbours()
    private var reported: [PeerID: Advertisement] = [:]
    /// The announcements, in the order in which they were last made.
    private var announced: [(service: DiscoveredService, said: [PeerID: Advertisement])] = []
    private var absent: Set<PeerID> = []

    private var announcedPeers: Set<PeerID> { Set(announced.flatMap(\.said.keys)) }

    static func run(_ input: inout Input) throws {
        var target = NeighboursTarget()
        while !input.isAtEnd {
            switch input.number(below: 8) {
            case 0...3: try target.find(announcement(&input))
            case 4: try target.lose(key(&input))
            case 5: target.neighbours.own = input.pick(peers)
            default: try target.probe(input.pick(peers), opened: input.isUsual())
            }
        }
        for peer in target.announcedPeers {
            let addresses = target.neighbours.addresses(of: peer, ownHosts: [:], ownPort: nil)
            let areDistinct = !addresses.isEmpty && Set(addresses).count == addresses.count
            try expect(areDistinct, "\(addresses) of \(peer)")
            let areKnown = addresses.allSatisfy { target.neighbours.peers(at: $0.host).contains(peer) }
            try expect(areKnown, "nobody at \(addresses)")
        }
        for key in target.announced.map(\.service.key) { try target.lose(key) }
        try expect(
            target.neighbours.count == 0 && target.reported.isEmpty, "ghosts are left: \(target.reported)")
    }

    private static func key(_ input: inout Input) -> DiscoveredService.Key {
        DiscoveredService.Key(name: input.pick(names), interface: UInt32(input.number(below: 3)))
    }

    private static func announcement(_ input: inout Input) -> DiscoveredService {
        let key = key(&input)
        let places = (0...input.number(below: 2)).map { _ in
            let port = UInt16(1 + input.number(below: 3))
            let hosts = addresses[input.number(below: 4)...].compactMap {
                HostAddress(bytes: $0, interface: Int32(key.interface))
            }
            return DiscoveredService.Endpoint(host: "h.local", port: port, addresses: hosts)
        }
        let texts = (0...input.number(below: 2)).map { _ in
            let info = ["table": input.pick(["open", "shut"])]
            let advertisement = Advertisement(
                service: service, peer: input.pick(peers), name: DisplayName(fitting: "x"),
                info: (try? DiscoveryInfo(info)) ?? .none)
            let text = TextRecord(entries: AnnouncementText.entries(of: advertisement))
            return (TextRecord(data: input.edited(text.data)) ?? text).entries
        }
        return DiscoveredService(key: key, endpoints: places, texts: texts, isOwn: !input.isUsual(oneIn: 8))
    }

    private mutating func find(_ service: DiscoveredService) throws {
        var said: [PeerID: Advertisement] = [:]
        for text in service.texts.reversed() {
            let read = try? AnnouncementText.advertisement(in: text, of: Self.service, by: service.key.name)
            guard let read else { continue }
            let keys = Set(text.map(\.key))
            let isRight =
                read.info.byteCount <= DiscoveryInfo.maximumByteCount
                && read.info.pairs.keys.allSatisfy(keys.contains)
            try expect(isRight, "much info, or more than was announced")
            if read.peer != neighbours.own { said[read.peer] = read }
        }
        let before = announced.first { $0.service.key == service.key }
        announced.removeAll { $0.service.key == service.key }
        if !service.isOwn, !said.isEmpty {
            for peer in said.keys {
                let known = before?.said[peer] == nil ? [] : before?.service.endpoints.map(\.port) ?? []
                if !service.endpoints.allSatisfy({ known.contains($0.port) }) { absent.remove(peer) }
            }
            announced.append((service, said))
        }
        try apply(neighbours.update(service, of: Self.service))
    }

    private mutating func lose(_ key: DiscoveredService.Key) throws {
        announced.removeAll { $0.service.key == key }
        try apply(neighbours.remove(key))
    }

    private mutating func probe(_ peer: PeerID, opened: Bool) throws {
        if opened { absent.remove(peer) } else if announcedPeers.contains(peer) { absent.insert(peer) }
        try apply(neighbours.probed(peer, accepted: opened))
    }

    private mutating func apply(_ changes: [SightingChange]) throws {
        for change in changes {
            switch change {
            case .found(let sighting):
                try expect(try replace(sighting) == nil, "found twice: \(sighting)")
            case .changed(let sighting):
                let before = try replace(sighting)
                try expect(before != nil && before != sighting.advertisement, "no change: \(sighting)")
            case .lost(let address):
                let peer = try? TCPDestination(address).peer
                let wasThere = peer.map { reported.removeValue(forKey: $0) != nil } ?? false
                try expect(wasThere, "lost and not found: \(address)")
            }
        }
        absent.formIntersection(announcedPeers)
        var expected: [PeerID: Advertisement] = [:]
        for (peer, advertisement) in announced.flatMap(\.said) where !absent.contains(peer) {
            expected[peer] = advertisement
        }
        try expect(reported == expected, "\(reported) is reported, expected \(expected)")
        try expect(
            neighbours.reportedPeers == reported.keys.sorted(), "\(neighbours.reportedPeers) is listed")
        try expect(
            neighbours.count == announcedPeers.count, "\(neighbours.count) peers of \(announcedPeers.count)")
        try expect(neighbours.ignored.count <= Neighbours.ignoredRemembered, "much is remembered")
    }

    private mutating func replace(_ sighting: Sighting) throws -> Advertisement? {
        let peer = sighting.advertisement.peer
        try expect(sighting.address == TCPDestination.address(of: peer), "a wrong address: \(sighting)")
        return reported.updateValue(sighting.advertisement, forKey: peer)
    }
}
