import NighCore
import NighTestKit

/// One session that sees very many peers, in virtual time. The peers are sightings only: nobody is there.
///
/// Each method makes every peer do one thing, and returns how many of them the session then has in that state.
/// `@unchecked Sendable`: confined to the thread that runs it.
package final class Crowd: @unchecked Sendable {
    private static let service: ServiceName = "crowd"
    /// How many sightings one turn of the loop reports.
    private static let sightingsInTurn = 256

    private let loop = VirtualEventLoop(workLimit: .max)
    private let transport = CrowdTransport()
    private let session: Session
    private let peers: [PeerID]
    /// The peers that the session has reported as available, and the changes that it has reported.
    private var present = 0
    private var changes = 0
    private var listed = 0

    /// Pieces of work that the loop has done.
    package var workDone: Int { loop.workDone }

    /// Makes a session that sees nobody yet.
    package init(of size: Int) {
        var random = SeededGenerator(seed: 1)
        peers = (0..<size).map { _ in PeerID(random: &random) }
        var configuration = SessionConfiguration(
            service: Self.service, name: DisplayName(fitting: "one of many"), role: .client)
        configuration.seed = 1
        configuration.limits.knownPeers = size
        session = Session(
            configuration, identity: .ephemeral(seed: 1), transports: [transport], loop: loop)
        session.start(
            onEvent: { [unowned self] event in
                switch event {
                case .peerFound: present += 1
                case .peerLost: present -= 1
                case .peerChanged: changes += 1
                default: break
                }
            }, onMessage: { _, _ in })
        run()
    }

    /// Every peer begins to advertise.
    package func appear() -> Int {
        report { .found($0) }
        return present
    }

    /// Every peer is seen again, under a name that begins with `name`. Returns how many changes the session has
    /// reported.
    package func announceAll(as name: String) -> Int {
        changes = 0
        report(naming: name) { .changed($0) }
        return changes
    }

    /// Asks for the list of all peers. Returns its length.
    package func list() -> Int {
        listed = 0
        listed = session.peers.count
        run()
        return listed
    }

    /// Every peer stops advertising.
    package func leave() -> Int {
        report { .lost($0.address) }
        return present
    }

    /// Ends the session.
    package func end() {
        session.crash()
        run()
    }

    private func report(naming name: String = "peer", _ change: (Sighting) -> SightingChange) {
        for first in stride(from: 0, to: peers.count, by: Self.sightingsInTurn) {
            let changes = (first..<min(first + Self.sightingsInTurn, peers.count)).map { index in
                change(
                    Sighting(
                        address: TransportAddress(scheme: transport.scheme, value: "p\(index)"),
                        advertisement: Advertisement(
                            service: Self.service, peer: peers[index],
                            name: DisplayName(fitting: "\(name) \(index)"))))
            }
            transport.report(changes)
            run()
        }
    }

    private func run() { try? loop.runQueued() }
}

/// A transport that reports the sightings it is given, and opens no pipe.
///
/// `@unchecked Sendable`: confined to the loop.
private final class CrowdTransport: Transport, @unchecked Sendable {
    let scheme = "crowd"
    let capabilities = TransportCapabilities(
        datagrams: false, typicalMTU: 1_448, typicalLatency: .milliseconds(1),
        expectedConnectTime: .milliseconds(1), priority: 1)
    private var loop: (any EventLoop)?
    private var events: (any TransportEvents)?

    /// Reports changes of sightings in the next turn of the loop.
    func report(_ changes: [SightingChange]) {
        loop?.execute { [self] in
            for change in changes { events?.report(change, by: self) }
        }
    }

    func start(on loop: any EventLoop, events: any TransportEvents) {
        self.loop = loop
        self.events = events
    }

    func advertise(_ advertisement: Advertisement) {}

    func updateAdvertisement(_ advertisement: Advertisement) {}

    func stopAdvertising() {}

    func browse(_ service: ServiceName) {}

    func stopBrowsing() {}

    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        loop?.execute { [self] in
            let error = NighError(.connecting, .refused, transport: scheme)
            events?.dialFailed(dial, error: error, by: self)
        }
    }

    func cancelDial(_ dial: DialID) {}

    func diagnose() -> [Diagnosis] { [] }

    func shutdown() { events = nil }
}

extension PeerID {
    /// Draws an identifier that belongs to no key: for peers that are only seen.
    package init(random: inout SeededGenerator) {
        let bytes = (0..<4).flatMap { _ in
            let word = random.next()
            return (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
        }
        self = PeerID(bytes: bytes).unsafelyUnwrapped
    }
}
