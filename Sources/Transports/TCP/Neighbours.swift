import NighCore
import NighMDNS

/// Who is seen on the network, put together: a peer is announced on each interface by itself, under the old name and the new
/// one while it is renamed, and perhaps by a daemon and an embedded stack at once; it is one peer by its PeerID.
package struct Neighbours {
    private struct Announcement {
        let service: DiscoveredService
        /// What it says of each peer that it names: one peer, unless somebody forges records of that instance.
        let advertisements: [PeerID: Advertisement]
        let order: UInt64

        var ports: Set<UInt16> { Set(service.places.map(\.port)) }
    }

    private struct Peer {
        var keys: Set<DiscoveredService.Key> = []
        /// What the session was told last; nil while it counts the peer as gone.
        var told: Advertisement?
        /// Announced, but nobody opens there.
        var isAbsent = false
    }

    /// What was announced and is no session, and why; the last few, by name.
    package private(set) var ignored: [String: AnnouncementText.Problem] = [:]
    /// How many announcements were ignored.
    package private(set) var ignoredCount = 0
    package static let ignoredRemembered = 16
    /// The most announcements of a peer that are dialled. An honest peer has one on each interface; others are forged.
    package static let announcementLimit = 16

    /// Who is never seen: this side itself.
    package var own: PeerID?
    private var announcements: [DiscoveredService.Key: Announcement] = [:]
    private var peers: [PeerID: Peer] = [:]
    private var order: UInt64 = 0

    /// Nobody seen yet.
    package init(own: PeerID? = nil) { self.own = own }

    /// Those that the session was told of and not lost.
    package var told: [PeerID] { peers.filter { $0.value.told != nil }.keys.sorted() }

    /// How many peers are announced, present or not.
    package var count: Int { peers.count }

    /// Whether the peer is announced, present or not.
    package func announces(_ id: PeerID) -> Bool { peers[id] != nil }

    /// Who is announced at that address.
    package func peers(at host: SocketAddress.Host) -> [PeerID] {
        let found = announcements.values.filter { announcement in
            announcement.service.places.contains { place in
                place.addresses.contains { SocketAddress($0, port: place.port).host == host }
            }
        }
        return Set(found.flatMap(\.advertisements.keys)).sorted()
    }

    /// `service` is announced, or announced otherwise than before.
    package mutating func saw(_ service: DiscoveredService, of name: ServiceName) -> [SightingChange] {
        let advertisements = advertisements(in: service, of: name)
        guard !advertisements.isEmpty else { return lost(service.key) }
        order += 1
        return replace(
            service.key,
            with: Announcement(service: service, advertisements: advertisements, order: order))
    }

    /// The service is announced no more.
    package mutating func lost(_ key: DiscoveredService.Key) -> [SightingChange] { replace(key, with: nil) }

    private mutating func replace(
        _ key: DiscoveredService.Key, with new: Announcement?
    ) -> [SightingChange] {
        let old = announcements[key]
        announcements[key] = new
        let now = Set(new?.advertisements.keys.map(\.self) ?? [])
        let gone = Set(old?.advertisements.keys.map(\.self) ?? []).subtracting(now)
        for id in gone { peers[id]?.keys.remove(key) }
        for id in now {
            var peer = peers[id] ?? Peer()
            peer.keys.insert(key)
            // Whoever did not open may do so at another port. What another peer had announced there says nothing about this one.
            let known = old.flatMap { $0.advertisements[id] == nil ? nil : $0.ports } ?? []
            if let new, !new.ports.isSubset(of: known) { peer.isAbsent = false }
            peers[id] = peer
        }
        return (gone.sorted() + now.sorted()).flatMap { tell($0) }
    }

    /// What the service says of peers other than this side. Where two texts name the same peer, the first counts.
    private mutating func advertisements(
        in service: DiscoveredService, of name: ServiceName
    ) -> [PeerID: Advertisement] {
        var found: [PeerID: Advertisement] = [:]
        var problem: AnnouncementText.Problem?
        for text in service.texts {
            do throws(AnnouncementText.Problem) {
                let advertisement = try AnnouncementText.advertisement(
                    in: text, of: name, by: service.key.name)
                if found[advertisement.peer] == nil { found[advertisement.peer] = advertisement }
            } catch {
                problem = problem ?? error
            }
        }
        if found.isEmpty, let problem { ignore(service.key.name, problem) }
        if let own { found[own] = nil }
        return service.isOwn ? [:] : found
    }

    /// Somebody knocked: the peer opened, or it did not.
    package mutating func knocked(at id: PeerID, opened: Bool) -> [SightingChange] {
        guard peers[id] != nil else { return [] }
        peers[id]?.isAbsent = !opened
        return tell(id)
    }

    /// What the session has to be told about a peer, now that something about it is different.
    private mutating func tell(_ id: PeerID) -> [SightingChange] {
        guard let peer = peers[id] else { return [] }
        let address = TCPDestination.address(of: id)
        let newest = peer.keys.compactMap { announcements[$0] }.max { $0.order < $1.order }
        if newest == nil { peers[id] = nil }
        guard let advertisement = newest?.advertisements[id], !peer.isAbsent else {
            peers[id]?.told = nil
            return peer.told == nil ? [] : [.lost(address)]
        }
        guard peer.told != advertisement else { return [] }
        peers[id]?.told = advertisement
        let sighting = Sighting(address: address, advertisement: advertisement)
        return [peer.told == nil ? .found(sighting) : .changed(sighting)]
    }

    private mutating func ignore(_ name: String, _ problem: AnnouncementText.Problem) {
        guard ignored[name] != problem else { return }
        ignoredCount += 1
        if ignored.count < Self.ignoredRemembered || ignored[name] != nil { ignored[name] = problem }
    }

    /// Where a peer can be dialled, the most promising first.
    ///
    /// Anybody can announce any peer. So announcements take turns: a forged one pushes the true addresses back by a few places at
    /// most, however many addresses it has.
    ///
    /// An address that this machine has on another interface than the one where it was heard leads back to this machine: a
    /// bridge for containers has the same address everywhere. It is left out, unless the peer has only addresses of this machine.
    ///
    /// - Parameters:
    ///   - ownHosts: the addresses of this machine, and the interfaces that have them.
    ///   - ownPort: where this very transport listens, which is never dialled.
    package func addresses(
        of id: PeerID, ownHosts: [SocketAddress.Host: Set<UInt32>], ownPort: UInt16?
    ) -> [SocketAddress] {
        func isHere(_ address: SocketAddress) -> Bool {
            address.isLoopback || ownHosts[address.host] != nil
        }
        let services = (peers[id]?.keys ?? []).compactMap { announcements[$0] }
            .sorted { $0.order > $1.order }.ends(Self.announcementLimit).map(\.service)
        let turns = services.map { service in
            service.places.map { place in
                place.addresses.map { SocketAddress($0, port: place.port) }.inOrderOfPromise.map { address in
                    let isBridge = ownHosts[address.host]?.contains(service.key.interface) == false
                    return (address: address, isBridge: isBridge)
                }
            }.inTurns()
        }.inTurns().filter { !isHere($0.address) || $0.address.port != ownPort }
        let isElsewhere = !turns.allSatisfy { isHere($0.address) }
        return turns.filter { !isElsewhere || !$0.isBridge }.map(\.address).unique
    }
}

extension Array {
    /// The first of each, then the second of each, and so on.
    fileprivate func inTurns<Member>() -> [Member] where Element == [Member] {
        (0..<(map(\.count).max() ?? 0)).flatMap { turn in
            compactMap { turn < $0.count ? $0[turn] : nil }
        }
    }
}

extension SocketAddress {
    /// The port of a host that was found.
    package init(_ address: HostAddress, port: UInt16) {
        let bytes = address.bytes
        func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
        if bytes.count == 4 {
            self.init(.v4(UInt32(number(0..<4))), port: port)
        } else {
            self.init(.v6(high: number(0..<8), low: number(8..<16), scope: address.scope), port: port)
        }
    }
}
