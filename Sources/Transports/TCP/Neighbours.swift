import NighCore
import NighMDNS

/// Combines announcements into peers. A peer is announced on each interface separately, under the old name and the new
/// one while it is renamed, and perhaps by a daemon and an embedded stack at once. Its PeerID makes it one peer.
package struct Neighbours {
    private struct Announcement {
        let service: DiscoveredService
        /// The advertisement of each peer that the announcement names. That is one peer, unless somebody forges records
        /// of this instance.
        let advertisements: [PeerID: Advertisement]
        let order: UInt64

        var ports: Set<UInt16> { Set(service.endpoints.map(\.port)) }
    }

    private struct Peer {
        var keys: Set<DiscoveredService.Key> = []
        /// The advertisement last reported to the session; nil while the session counts the peer as gone.
        var reported: Advertisement?
        /// Whether the peer is announced, but accepts no connections.
        var isAbsent = false
    }

    /// Announcements that are not of a Nigh session, by name, and why. Only the first few names are kept.
    package private(set) var ignored: [String: AnnouncementText.Problem] = [:]
    /// How many announcements were ignored.
    package private(set) var ignoredCount = 0
    package static let ignoredRemembered = 16
    /// The most announcements of a peer that are dialled. An honest peer has one on each interface; the others are
    /// forged.
    package static let announcementLimit = 16

    /// The peer that is never seen: this side itself.
    package var own: PeerID?
    private var announcements: [DiscoveredService.Key: Announcement] = [:]
    private var peers: [PeerID: Peer] = [:]
    /// The peers whose last announcement has ended since somebody asked.
    private var unannounced: [PeerID] = []
    private var order: UInt64 = 0

    /// Creates a value that has seen nobody.
    package init(own: PeerID? = nil) { self.own = own }

    /// The peers that were reported to the session and not lost since.
    package var reportedPeers: [PeerID] { peers.filter { $0.value.reported != nil }.keys.sorted() }

    /// The sighting last reported of each of those peers.
    package var reportedSightings: [Sighting] {
        reportedPeers.compactMap { id in
            peers[id]?.reported.map { Sighting(address: TCPDestination.address(of: id), advertisement: $0) }
        }
    }

    /// How many peers are announced, present or not.
    package var count: Int { peers.count }

    /// Returns whether the peer is announced, present or not.
    package func announces(_ id: PeerID) -> Bool { peers[id] != nil }

    /// Returns the peers that are no longer announced, and were when this was last called.
    package mutating func takeUnannounced() -> [PeerID] {
        defer { unannounced = [] }
        return unannounced.filter { !announces($0) }
    }

    /// Returns the peers that are announced at that address.
    package func peers(at host: SocketAddress.Host) -> [PeerID] {
        let found = announcements.values.filter { announcement in
            announcement.service.endpoints.contains { endpoint in
                endpoint.addresses.contains { SocketAddress($0, port: endpoint.port).host == host }
            }
        }
        return Set(found.flatMap(\.advertisements.keys)).sorted()
    }

    /// Takes an announcement of `service` that is new or has changed. Returns the changes for the session.
    package mutating func update(_ service: DiscoveredService, of name: ServiceName) -> [SightingChange] {
        let advertisements = advertisements(in: service, of: name)
        guard !advertisements.isEmpty else { return remove(service.key) }
        order += 1
        return replace(
            service.key,
            with: Announcement(service: service, advertisements: advertisements, order: order))
    }

    /// Takes the end of an announcement. Returns the changes for the session.
    package mutating func remove(_ key: DiscoveredService.Key) -> [SightingChange] { replace(key, with: nil) }

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
            // A peer that accepted no connection may accept one at another port. Another peer's announcement there says
            // nothing about this peer.
            let known = old.flatMap { $0.advertisements[id] == nil ? nil : $0.ports } ?? []
            if let new, !new.ports.isSubset(of: known) { peer.isAbsent = false }
            peers[id] = peer
        }
        return (gone.sorted() + now.sorted()).flatMap { reportChanges(of: $0) }
    }

    /// Returns the service's advertisements of peers other than this side. If two texts name the same peer, the first
    /// counts.
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

    /// Takes the result of a probe: whether the peer accepted a connection. Returns the changes for the session.
    package mutating func probed(_ id: PeerID, accepted: Bool) -> [SightingChange] {
        guard peers[id] != nil else { return [] }
        peers[id]?.isAbsent = !accepted
        return reportChanges(of: id)
    }

    /// Returns the reports to the session about a peer after something about it has changed.
    private mutating func reportChanges(of id: PeerID) -> [SightingChange] {
        guard let peer = peers[id] else { return [] }
        let address = TCPDestination.address(of: id)
        let newest = peer.keys.compactMap { announcements[$0] }.max { $0.order < $1.order }
        if newest == nil {
            peers[id] = nil
            unannounced.append(id)
        }
        guard let advertisement = newest?.advertisements[id], !peer.isAbsent else {
            peers[id]?.reported = nil
            return peer.reported == nil ? [] : [.lost(address)]
        }
        guard peer.reported != advertisement else { return [] }
        peers[id]?.reported = advertisement
        let sighting = Sighting(address: address, advertisement: advertisement)
        return [peer.reported == nil ? .found(sighting) : .changed(sighting)]
    }

    private mutating func ignore(_ name: String, _ problem: AnnouncementText.Problem) {
        guard ignored[name] != problem else { return }
        ignoredCount += 1
        if ignored.count < Self.ignoredRemembered || ignored[name] != nil { ignored[name] = problem }
    }

    /// Returns the addresses at which a peer can be dialled, the most promising first.
    ///
    /// Anybody can announce any peer. So announcements take turns: a forged one pushes the true addresses back by a few
    /// places at most, however many addresses it has.
    ///
    /// An address that this machine has on another interface than the one where it was announced leads back to this
    /// machine: a bridge for containers has the same address everywhere. It is left out, unless the peer has only
    /// addresses of this machine.
    ///
    /// - Parameters:
    ///   - ownHosts: the addresses of this machine, and the interfaces that have them.
    ///   - ownPort: the port on which this very transport listens, which is never dialled.
    package func addresses(
        of id: PeerID, ownHosts: [SocketAddress.Host: Set<UInt32>], ownPort: UInt16?
    ) -> [SocketAddress] {
        func isHere(_ address: SocketAddress) -> Bool {
            address.isLoopback || ownHosts[address.host] != nil
        }
        let services = (peers[id]?.keys ?? []).compactMap { announcements[$0] }
            .sorted { $0.order > $1.order }.takingFromBothEnds(Self.announcementLimit).map(\.service)
        let turns = services.map { service in
            service.endpoints.map { endpoint in
                endpoint.addresses.map { SocketAddress($0, port: endpoint.port) }.inDialOrder.map { address in
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
    /// Returns the first element of each array, then the second of each, and so on.
    fileprivate func inTurns<Member>() -> [Member] where Element == [Member] {
        (0..<(map(\.count).max() ?? 0)).flatMap { turn in
            compactMap { turn < $0.count ? $0[turn] : nil }
        }
    }
}

extension SocketAddress {
    /// Creates the address of a port on a host that was found.
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
