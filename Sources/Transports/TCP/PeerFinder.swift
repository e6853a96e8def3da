import NighCore
import NighMDNS
import NighUV

/// Who a `PeerFinder` tells; never from inside a call to it.
protocol PeerFinderEvents: AnyObject {
    func neighboursChanged(_ changes: [SightingChange])
    func advertised(as name: DisplayName)
    func advertisingFailed(_ error: NighError)
    func browsingFailed(_ error: NighError)
}

/// Finds peers and lets them find this side: services on the network on one side, peers by their PeerIDs on the other. Loop
/// only.
///
/// `@unchecked Sendable`: confined to its loop.
final class PeerFinder: @unchecked Sendable {
    private let mode: ServiceDiscovery.Mode
    private let interface: String?
    private let loop: UVEventLoop
    private weak var events: (any PeerFinderEvents)?
    private let knock: (PeerID, @escaping (Bool) -> Void) -> Void

    private lazy var discovery = ServiceDiscovery(mode: mode, interface: interface, on: loop, events: self)
    private(set) lazy var presence = PresenceCheck(
        on: loop, isTalkedTo: { [unowned self] in (pipes[$0] ?? 0) > 0 },
        knock: { [unowned self] in knock($0, $1) },
        tell: { [unowned self] peer, opened in apply(neighbours.knocked(at: peer, opened: opened)) })
    private var neighbours = Neighbours()
    private var browsed: ServiceName?
    private var pipes: [PeerID: Int] = [:]

    /// - Parameter knock: tries whether a peer opens a connection.
    init(
        mode: ServiceDiscovery.Mode, interface: String?, on loop: UVEventLoop, events: any PeerFinderEvents,
        knock: @escaping (PeerID, @escaping (Bool) -> Void) -> Void
    ) {
        self.mode = mode
        self.interface = interface
        self.loop = loop
        self.events = events
        self.knock = knock
    }

    // MARK: What the transport calls

    /// Lets others find `advertisement` at `port`; called again, it replaces that, in place where it can.
    func publish(_ advertisement: Advertisement, port: UInt16) {
        neighbours.own = advertisement.peer
        discovery.publish(
            ServiceRegistration(
                type: ServiceType(tcp: advertisement.service), name: advertisement.name, port: port,
                text: AnnouncementText.entries(of: advertisement), identityKey: AnnouncementText.identityKey))
    }

    /// Is found no more.
    func unpublish() { discovery.unpublish() }

    /// Looks for peers of `service`, from scratch.
    func browse(_ service: ServiceName) {
        forgetNeighbours()
        browsed = service
        discovery.browse(ServiceType(tcp: service))
    }

    /// Looks no more; nothing is told of anybody.
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

    /// The machine has other addresses now.
    func addressesChanged() { discovery.addressesChanged() }

    /// Where a peer can be dialled.
    func addresses(
        of peer: PeerID, ownHosts: [SocketAddress.Host: Set<UInt32>], ownPort: UInt16?
    ) -> [SocketAddress] {
        neighbours.addresses(of: peer, ownHosts: ownHosts, ownPort: ownPort)
    }

    /// A pipe to a peer has opened.
    func pipeOpened(to peer: PeerID) { pipes[peer, default: 0] += 1 }

    /// A pipe has ended: one to `peer`, or one that came in from `host`. Whoever was at its other end may be gone, unless it
    /// said nothing: then it has knocked, and is there. Knocking back would have it knock again, and so on.
    func pipeEnded(to peer: PeerID?, host: SocketAddress.Host?, saidSomething: Bool) {
        if let peer {
            let left = (pipes[peer] ?? 1) - 1
            pipes[peer] = left > 0 ? left : nil
            presence.doubt(peer)
        } else if let host, saidSomething {
            for peer in neighbours.peers(at: host) { presence.doubt(peer) }
        }
    }

    /// For a person.
    func diagnose() -> [Diagnosis] {
        var lines = discovery.diagnose()
        guard browsed != nil else { return lines }
        lines.append(
            Diagnosis("peers", .pass, "\(neighbours.told.count) found, \(neighbours.count) announced"))
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

    /// Ends everything with goodbyes; nothing is told any more.
    func shutdown() {
        events = nil
        presence.stop()
        discovery.shutdown()
    }

    // MARK: What is told

    private func apply(_ changes: [SightingChange]) {
        for change in changes {
            if case .found(let sighting) = change { presence.add(sighting.advertisement.peer) }
        }
        if !changes.isEmpty { events?.neighboursChanged(changes) }
    }
}

extension PeerFinder: ServiceDiscoveryEvents {
    func serviceFoundOrChanged(_ service: DiscoveredService) {
        guard let browsed else { return }
        apply(neighbours.saw(service, of: browsed))
        // It may be another peer's now.
        presence.keep { neighbours.announces($0) }
    }

    func serviceLost(_ key: DiscoveredService.Key) {
        guard browsed != nil else { return }
        apply(neighbours.lost(key))
        presence.keep { neighbours.announces($0) }
    }

    func published(as name: String) { events?.advertised(as: DisplayName(fitting: name)) }

    func publishingFailed(_ error: NighError) { events?.advertisingFailed(error.overTCP) }

    func browsingFailed(_ error: NighError) { events?.browsingFailed(error.overTCP) }

    func discoveryChanged(_ condition: DiscoveryCondition) {
        // What it means for publishing and browsing is told by those; a person asks `diagnose`.
    }
}

extension NighError {
    fileprivate var overTCP: NighError {
        var error = self
        error.transport = TCPTransport.schemeName
        return error
    }
}
