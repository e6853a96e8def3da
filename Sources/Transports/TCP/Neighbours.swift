import NighCore
import NighMDNS

/// Who is seen on the network, put together: a peer is announced on each interface by itself, under the old name and the new
/// one while it is renamed, and perhaps by a daemon and an embedded stack at once; it is one peer by its PeerID.
package struct Neighbours {
    private struct Announcement {
        let service: DiscoveredService
        let advertisement: Advertisement
        let order: UInt64
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
            announcement.service.addresses.contains {
                SocketAddress($0, port: announcement.service.port).host == host
            }
        }
        return Set(found.map(\.advertisement.peer)).sorted()
    }

    /// `service` is announced, or announced otherwise than before.
    package mutating func saw(_ service: DiscoveredService, of name: ServiceName) -> [SightingChange] {
        let before = announcements[service.key]
        let advertisement: Advertisement
        do throws(AnnouncementText.Problem) {
            advertisement = try AnnouncementText.advertisement(
                in: service.text, of: name, by: service.key.name)
        } catch {
            ignore(service.key.name, error)
            return lost(service.key)
        }
        var changes: [SightingChange] = []
        if let before, before.advertisement.peer != advertisement.peer { changes += lost(service.key) }
        guard !service.isOwn, advertisement.peer != own else { return changes + lost(service.key) }
        order += 1
        announcements[service.key] = Announcement(
            service: service, advertisement: advertisement, order: order)
        var peer = peers[advertisement.peer] ?? Peer()
        peer.keys.insert(service.key)
        // Whoever did not open may do so at another port. What another peer had announced there says nothing about this one.
        let known = before?.advertisement.peer == advertisement.peer ? before?.service.port : nil
        if known != service.port { peer.isAbsent = false }
        peers[advertisement.peer] = peer
        return changes + tell(advertisement.peer)
    }

    /// The service is announced no more.
    package mutating func lost(_ key: DiscoveredService.Key) -> [SightingChange] {
        guard let announcement = announcements.removeValue(forKey: key) else { return [] }
        let id = announcement.advertisement.peer
        peers[id]?.keys.remove(key)
        return tell(id)
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
        guard let advertisement = newest?.advertisement, !peer.isAbsent else {
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
    /// An address that this machine has as well (a bridge for containers has the same one everywhere) leads back to
    /// this machine, so it is left out, unless the peer has no other: then it is a program of this machine.
    ///
    /// - Parameters:
    ///   - ownHosts: the addresses of this machine.
    ///   - ownPort: where this very transport listens.
    package func addresses(
        of id: PeerID, ownHosts: Set<SocketAddress.Host>, ownPort: UInt16?
    ) -> [SocketAddress] {
        let services = (peers[id]?.keys ?? []).compactMap { announcements[$0] }
            .sorted { $0.order > $1.order }.map(\.service)
        let all = services.flatMap { service in
            service.addresses.map { SocketAddress($0, port: service.port) }
        }
        let elsewhere = all.filter { !ownHosts.contains($0.host) && !$0.isLoopback }
        guard elsewhere.isEmpty else { return elsewhere.inOrderOfPromise }
        return all.filter { $0.port != ownPort }.inOrderOfPromise
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
