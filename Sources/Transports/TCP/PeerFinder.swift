import NighCore
import NighMDNS
import NighUV

/// Receives the events of a `PeerFinder`, never from inside a call to it.
protocol PeerFinderEvents: AnyObject {
    func neighboursChanged(_ changes: [SightingChange])
    func advertised(as name: DisplayName)
    func advertisingFailed(_ error: NighError)
    func browsingFailed(_ error: NighError)
}

/// Finds peers and lets them find this side. On the network it sees services; to the transport it reports peers by
/// their PeerIDs. Loop only.
final class PeerFinder {
    private let mode: ServiceDiscovery.Mode
    private let interface: String?
    private let loop: UVEventLoop
    private weak var events: (any PeerFinderEvents)?
    private let probe: (PeerID, @escaping (Bool?) -> Void) -> Void

    private lazy var discovery = ServiceDiscovery(mode: mode, interface: interface, on: loop, events: self)
    private(set) lazy var presence = PresenceCheck(
        on: loop, hasOpenPipe: { [unowned self] in (pipes[$0] ?? 0) > 0 },
        probe: { [unowned self] in probe($0, $1) },
        report: { [unowned self] peer, accepted in
            apply(neighbours.probed(peer, accepted: accepted))
        })
    private var neighbours = Neighbours()
    private var browsed: ServiceName?
    private var pipes: [PeerID: Int] = [:]

    /// - Parameter probe: tries whether a peer accepts a connection; see `PresenceCheck`.
    init(
        mode: ServiceDiscovery.Mode, interface: String?, on loop: UVEventLoop, events: any PeerFinderEvents,
        probe: @escaping (PeerID, @escaping (Bool?) -> Void) -> Void
    ) {
        self.mode = mode
        self.interface = interface
        self.loop = loop
        self.events = events
        self.probe = probe
    }

    // MARK: Calls by the transport

    /// Announces `advertisement` at `port`. Called again, it replaces the announcement, in place if possible.
    func publish(_ advertisement: Advertisement, port: UInt16) {
        neighbours.own = advertisement.peer
        discovery.publish(
            ServiceRegistration(
                type: ServiceType(tcp: advertisement.service), name: advertisement.name, port: port,
                text: AnnouncementText.entries(of: advertisement), identityKey: AnnouncementText.identityKey))
    }

    /// Withdraws the announcement.
    func unpublish() { discovery.unpublish() }

    /// Looks for peers of `service`, from scratch.
    func browse(_ service: ServiceName) {
        forgetNeighbours()
        browsed = service
        discovery.browse(ServiceType(tcp: service))
    }

    /// Stops looking. Nothing is reported about any peer.
    func stopBrowsing() {
        guard browsed != nil else { return }
        browsed = nil
        discovery.stopBrowsing()
        forgetNeighbours()
    }

    private func forgetNeighbours() {
        presence.stop()
        neighbours = Neighbours(own: neighbours.own)
    }

    /// Reports all peers that are announced and present as found, because the session has forgotten them.
    func reportAgain() { events?.neighboursChanged(neighbours.reportedSightings.map { .found($0) }) }

    /// Tells discovery that the machine's addresses have changed.
    func addressesChanged() { discovery.addressesChanged() }

    /// Returns the addresses at which a peer can be dialled.
    func addresses(
        of peer: PeerID, ownHosts: [SocketAddress.Host: Set<UInt32>], ownPort: UInt16?
    ) -> [SocketAddress] {
        neighbours.addresses(of: peer, ownHosts: ownHosts, ownPort: ownPort)
    }

    /// Counts a pipe to a peer that has opened.
    func pipeOpened(to peer: PeerID) { pipes[peer, default: 0] += 1 }

    /// Handles the end of a pipe: one to `peer`, or an inbound one from `host`. The peer at its other end may be gone,
    /// so it is probed. An inbound pipe on which nothing was received is the exception: that was a probe, so the peer
    /// is there. Probing back would make it probe again, and so on.
    func pipeEnded(to peer: PeerID?, host: SocketAddress.Host?, saidSomething: Bool) {
        if let peer {
            let left = (pipes[peer] ?? 1) - 1
            pipes[peer] = left > 0 ? left : nil
            presence.probeSoon(peer)
        } else if let host, saidSomething {
            for peer in neighbours.peers(at: host) { presence.probeSoon(peer) }
        }
    }

    /// Returns the diagnosis of discovery.
    func diagnose() -> [Diagnosis] {
        var lines = discovery.diagnose()
        guard browsed != nil else { return lines }
        lines.append(
            Diagnosis(
                "peers", .pass, "\(neighbours.reportedPeers.count) found, \(neighbours.count) announced"))
        if neighbours.ignoredCount > 0 {
            let some = neighbours.ignored.sorted { $0.key < $1.key }.map { "\"\($0.key)\" has \($0.value)" }
            lines.append(
                Diagnosis(
                    "announcements", .warn,
                    "\(neighbours.ignoredCount) ignored: \(some.joined(separator: ", "))",
                    advice: "another kind of program uses the same service name"))
        }
        return lines
    }

    /// Ends everything and sends goodbyes. Nothing is reported any more.
    func shutdown() {
        events = nil
        presence.stop()
        discovery.shutdown()
    }

    // MARK: Reports

    private func apply(_ changes: [SightingChange]) {
        for change in changes {
            if case .found(let sighting) = change { presence.add(sighting.advertisement.peer) }
        }
        for peer in neighbours.takeUnannounced() { presence.remove(peer) }
        if !changes.isEmpty { events?.neighboursChanged(changes) }
    }
}

extension PeerFinder: ServiceDiscoveryEvents {
    func serviceFoundOrChanged(_ service: DiscoveredService) {
        guard let browsed else { return }
        // The service may belong to another peer now.
        apply(neighbours.update(service, of: browsed))
    }

    func serviceLost(_ key: DiscoveredService.Key) {
        guard browsed != nil else { return }
        apply(neighbours.remove(key))
    }

    func published(as name: String) { events?.advertised(as: DisplayName(fitting: name)) }

    func publishingFailed(_ error: NighError) { events?.advertisingFailed(error.overTCP) }

    func browsingFailed(_ error: NighError) { events?.browsingFailed(error.overTCP) }

    func discoveryChanged(_ condition: DiscoveryCondition) {
        // Publishing and browsing report the effects on them. `diagnose` shows it to a person.
    }
}

extension NighError {
    fileprivate var overTCP: NighError {
        var error = self
        error.transport = TCPTransport.schemeName
        return error
    }
}
