import NighMemory
import NighTestKit

@testable import NighCore

/// A transport with guests, over memory: whoever dials in is the guest that the test has named for its address.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
final class GuestDesk: GuestTransport, TransportEventHandler, @unchecked Sendable {
    static let schemeName = "desk"

    private let inner: RelabelledTransport
    private var events: (any TransportEvents)?
    /// The guests by the addresses from which they dial.
    var guestsByAddress: [String: PeerID] = [:]
    private(set) var revoked: [PeerID] = []
    var invitation: GuestInvitation?
    private var pipes: [DeskPipe] = []

    init(on hub: MemoryHub, at address: String = "desk") {
        inner = RelabelledTransport(
            MemoryTransport(hub: hub, address: address), scheme: Self.schemeName, priority: 900)
    }

    /// Breaks the pipes of a guest without a goodbye.
    func cut(_ guest: PeerID) { for pipe in pipes where pipe.guest == guest { pipe.cut() } }

    /// How many pipes guests have opened so far.
    var pipeCount: Int { pipes.count }

    // MARK: Guests

    func makeInvitation(_ done: @escaping @Sendable (GuestInvitation?) -> Void) { done(invitation) }

    var onInvitationUsed: (() -> Void)?
    var guests: [Guest] {
        guestsByAddress.map { Guest(id: $0.value, address: $0.key, age: .zero, isHere: true) }
    }
    func revoke(_ guest: PeerID) {
        revoked.append(guest)
        cut(guest)
    }

    // MARK: Transport

    let scheme = GuestDesk.schemeName
    var capabilities: TransportCapabilities {
        var capabilities = inner.capabilities
        capabilities.suggestedGrace = .seconds(5 * 60)
        return capabilities
    }

    func start(on loop: any EventLoop, events: any TransportEvents) {
        self.events = events
        inner.start(on: loop, events: self)
    }
    func advertise(_ advertisement: Advertisement) { inner.advertise(advertisement) }
    func updateAdvertisement(_ advertisement: Advertisement) { inner.updateAdvertisement(advertisement) }
    func stopAdvertising() { inner.stopAdvertising() }
    func browse(_ service: ServiceName) {}
    func stopBrowsing() {}
    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        inner.dial(address, as: dial, timeout: timeout)
    }
    func cancelDial(_ dial: DialID) { inner.cancelDial(dial) }
    func diagnose() -> [Diagnosis] { inner.diagnose() }
    func shutdown() {
        inner.shutdown()
        events = nil
    }

    // MARK: Events

    func handle(_ event: TransportEvent, by transport: any Transport) {
        guard let events else { return }
        switch event {
        case .pipeOpened(let pipe, let dial):
            guard let guest = pipe.remoteAddress.flatMap({ guestsByAddress[$0.value] }) else {
                return pipe.close(.now)
            }
            let pipe = DeskPipe(pipe, of: guest)
            pipes.append(pipe)
            events.pipeOpened(pipe, dial: dial, by: self)
        case .listeningChanged, .advertised, .advertisingFailed, .dialFailed:
            event.report(to: events, by: self)
        default: break
        }
    }
}

/// A pipe whose other end is a guest.
private final class DeskPipe: GuestPipe, ForwardingPipe {
    let guest: PeerID
    let inner: any Pipe
    private weak var handler: (any PipeHandler)?
    private var isClosed = false

    init(_ inner: any Pipe, of guest: PeerID) {
        self.inner = inner
        self.guest = guest
    }

    func cut() {
        let last = isClosed ? nil : handler
        handler = nil
        inner.close(.now)
        last?.pipeClosed(self, error: nil)
    }

    func start(handler: any PipeHandler) {
        self.handler = handler
        inner.start(handler: PipeEventForwarder(from: self, to: handler))
    }
    func close(_ mode: PipeCloseMode) {
        isClosed = true
        inner.close(mode)
    }
}

/// Brings a desk to a session.
private final class DeskLayer: SessionLayer {
    let transports: [any Transport]

    init(_ desk: GuestDesk) { transports = [desk] }
}

/// A session that takes guests, its guests, and peers of the same network, in virtual time.
///
/// A guest here is a whole session without encryption, so it can try everything that a peer can do.
final class GuestHouse {
    /// The first wire is the peers', the second one is that of the guests and the desk.
    private let network = SimulatedNetwork(wires: [.init(), .init()])
    let desk: GuestDesk
    let host: SessionProbe
    let trust = TrustStore.ephemeral()

    static let deskAddress = TransportAddress(scheme: "memory", value: "desk")

    init(_ adjust: (inout SessionConfiguration) -> Void = { _ in }) throws {
        desk = GuestDesk(on: network.hub(of: 1))
        host = network.join("Host", on: [0], trust: trust, at: "Host", layers: [DeskLayer(desk)]) {
            $0.admitsUnencryptedGuests = true
            adjust(&$0)
        }
        try run(.seconds(1))
    }

    /// A session that a guest has entered.
    static func withGuest(
        _ adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (house: GuestHouse, guest: SessionProbe) {
        let house = try GuestHouse(adjust)
        let guest = house.visit()
        try house.enter(guest)
        return (house, guest)
    }

    /// Starts a session of the peers' network.
    func join(_ name: String, adjust: (inout SessionConfiguration) -> Void = { _ in }) -> SessionProbe {
        network.join(name, on: [0], at: name, adjust: adjust)
    }

    /// Starts a session of the peers' network, and connects it to the host.
    @discardableResult
    func welcome(
        _ name: String = "Peer", adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionProbe {
        let peer = join(name, adjust: adjust)
        try network.connect(peer, host)
        return peer
    }

    /// Starts a session that is a guest, and which the desk takes for `guest`: for itself unless told otherwise.
    func visit(
        _ name: String = "Guest", identity: Identity = .ephemeral(seed: 500), as guest: PeerID? = nil,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionProbe {
        desk.guestsByAddress[name] = guest ?? identity.peerID
        return network.join(name, on: [1], identity: identity, at: name) {
            $0.security = .none
            $0.datagrams = false
            adjust(&$0)
        }
    }

    func run(_ time: Duration) throws { try network.run(for: time) }

    /// Lets a guest invite the host, and time pass.
    func enter(_ guest: SessionProbe) throws {
        try network.invite(at: Self.deskAddress, from: guest)
    }
}
