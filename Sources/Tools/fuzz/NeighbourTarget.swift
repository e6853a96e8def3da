import NighCore
import NighMDNS
import NighTCP

/// Announcements that are found and lost, and the peers that are reported to the session because of them.
enum NeighbourTarget {
    private static let peers = (1...4).map { Identity.ephemeral(seed: UInt64($0)).peerID }
    private static let service: ServiceName = "fuzz"
    private static let names = ["Puma", "puma", "K\u{FC}che", "Ku\u{308}che", "a\u{7}b", ""]
    private static let addresses: [[UInt8]] = [
        [10, 0, 0, 7], [127, 0, 0, 1], [172, 17, 0, 1],
        [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [7],
    ]

    static func run(_ mutator: inout Mutator) throws {
        var checker = Checker()
        for _ in 0...mutator.number(below: 30) {
            switch mutator.number(below: 12) {
            case 0...6: try checker.recordFound(announcement(&mutator), service)
            case 7, 8: try checker.recordLost(key(&mutator))
            case 9: if mutator.oneIn(8) { checker.own = mutator.pick(peers) }
            default: try checker.recordProbe(at: mutator.pick(peers), opened: mutator.oneIn(2))
            }
        }
        try checker.loseAll()
    }

    private static func key(_ mutator: inout Mutator) -> DiscoveredService.Key {
        DiscoveredService.Key(name: mutator.pick(names), interface: UInt32(mutator.number(below: 3)))
    }

    private static func announcement(_ mutator: inout Mutator) -> DiscoveredService {
        let key = key(&mutator)
        return DiscoveredService(
            key: key, places: (0...mutator.number(below: 2)).map { _ in place(on: key.interface, &mutator) },
            texts: (0...mutator.number(below: 2)).map { _ in text(&mutator) }, isOwn: mutator.oneIn(12))
    }

    private static func text(_ mutator: inout Mutator) -> [TextEntry] {
        let info = ["table": ["open", "shut"][mutator.number(below: 2)]]
        let advertisement = Advertisement(
            service: service, peer: mutator.pick(peers), name: DisplayName(fitting: "x"),
            info: (try? DiscoveryInfo(info)) ?? .none)
        var text = TextRecord(entries: AnnouncementText.entries(of: advertisement))
        if mutator.oneIn(3) {
            var data = text.data
            for _ in 0...mutator.number(below: 2) {
                mutator.change(&data, with: [text.data] + RecordTarget.data)
            }
            text = TextRecord(data: data) ?? text
        }
        return text.entries
    }

    private static func place(on interface: UInt32, _ mutator: inout Mutator) -> DiscoveredService.Place {
        let start = mutator.number(below: addresses.count)
        return DiscoveredService.Place(
            host: "h.local", port: UInt16(1 + mutator.number(below: 3)),
            addresses: addresses[start...].compactMap {
                HostAddress(bytes: $0, interface: Int32(interface))
            })
    }

    /// Takes in what is reported, and remembers the announcements in the simplest way.
    private struct Checker {
        private var neighbours = Neighbours()
        private var reported: [PeerID: Advertisement] = [:]
        /// The announcements, in the order in which they were last made.
        private var announced: [(service: DiscoveredService, said: [PeerID: Advertisement])] = []
        private var absent: Set<PeerID> = []

        var own: PeerID? {
            get { neighbours.own }
            set { neighbours.own = newValue }
        }

        mutating func recordFound(_ service: DiscoveredService, _ name: ServiceName) throws {
            var said: [PeerID: Advertisement] = [:]
            for text in service.texts.reversed() {
                let advertisement = try? AnnouncementText.advertisement(
                    in: text, of: name, by: service.key.name)
                guard let advertisement else { continue }
                try check(advertisement, in: text)
                if advertisement.peer != own { said[advertisement.peer] = advertisement }
            }
            let before = announced.first { $0.service.key == service.key }
            announced.removeAll { $0.service.key == service.key }
            if !service.isOwn, !said.isEmpty {
                for peer in said.keys {
                    let known = before?.said[peer] == nil ? [] : before?.service.places.map(\.port) ?? []
                    if !service.places.allSatisfy({ known.contains($0.port) }) { absent.remove(peer) }
                }
                announced.append((service, said))
            }
            try apply(neighbours.update(service, of: name))
        }

        mutating func recordLost(_ key: DiscoveredService.Key) throws {
            announced.removeAll { $0.service.key == key }
            try apply(neighbours.remove(key))
        }

        mutating func recordProbe(at peer: PeerID, opened: Bool) throws {
            if opened { absent.remove(peer) } else if isAnnounced(peer) { absent.insert(peer) }
            try apply(neighbours.probed(peer, accepted: opened))
        }

        mutating func loseAll() throws {
            try checkAddresses()
            for key in announced.map(\.service.key) { try recordLost(key) }
            if neighbours.count > 0 || !reported.isEmpty { throw Finding("a ghost is left: \(reported)") }
        }

        private func checkAddresses() throws {
            for peer in Set(announced.flatMap(\.said.keys)) {
                let addresses = neighbours.addresses(of: peer, ownHosts: [:], ownPort: nil)
                if addresses.isEmpty || Set(addresses).count != addresses.count {
                    throw Finding("\(addresses) of \(peer)")
                }
                if !addresses.allSatisfy({ neighbours.peers(at: $0.host).contains(peer) }) {
                    throw Finding("nobody at \(addresses)")
                }
            }
        }

        private func isAnnounced(_ peer: PeerID) -> Bool {
            announced.contains { $0.said[peer] != nil }
        }

        private func check(_ advertisement: Advertisement, in text: [TextEntry]) throws {
            if advertisement.info.byteCount > DiscoveryInfo.maximumByteCount { throw Finding("much info") }
            let said = Set(text.map(\.key))
            if !advertisement.info.pairs.keys.allSatisfy(said.contains) { throw Finding("unannounced info") }
        }

        private mutating func apply(_ changes: [SightingChange]) throws {
            for change in changes {
                switch change {
                case .found(let sighting):
                    if try recordReport(sighting) != nil { throw Finding("found twice: \(sighting)") }
                case .changed(let sighting):
                    let before = try recordReport(sighting)
                    if before == nil || before == sighting.advertisement {
                        throw Finding("no change: \(sighting)")
                    }
                case .lost(let address):
                    guard let peer = try? TCPDestination(address).peer,
                        reported.removeValue(forKey: peer) != nil
                    else { throw Finding("lost and not found: \(address)") }
                }
            }
            absent = absent.filter(isAnnounced)
            try checkReported()
        }

        private mutating func recordReport(_ sighting: Sighting) throws -> Advertisement? {
            let peer = sighting.advertisement.peer
            if sighting.address != TCPDestination.address(of: peer) {
                throw Finding("a wrong address: \(sighting)")
            }
            return reported.updateValue(sighting.advertisement, forKey: peer)
        }

        private func checkReported() throws {
            var expected: [PeerID: Advertisement] = [:]
            for (peer, advertisement) in announced.flatMap(\.said) where !absent.contains(peer) {
                expected[peer] = advertisement
            }
            if reported != expected { throw Finding("\(reported) is reported, expected \(expected)") }
            if neighbours.reportedPeers != reported.keys.sorted() {
                throw Finding("\(neighbours.reportedPeers) is listed as reported")
            }
            let peers = Set(announced.flatMap(\.said.keys))
            if neighbours.count != peers.count {
                throw Finding("\(neighbours.count) peers of \(peers.count)")
            }
            if neighbours.ignored.count > Neighbours.ignoredRemembered { throw Finding("much is remembered") }
        }
    }
}
