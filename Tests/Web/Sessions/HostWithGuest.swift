import Glibc
import NighMemory
import NighTestKit
import NighUV

@testable import NighCore
@testable import NighTCP
@testable import NighWeb

/// A session that takes guests and peers, with one of each connected, both of which ping it all the time if asked to.
final class HostWithGuest {
    private let loops = (0..<3).map { _ in UVEventLoop() }
    private let wire = GuestWire()
    let web: WebTransport
    let host: SessionProbe
    private let peer: SessionProbe
    let guest: SessionProbe
    /// The PeerID that the host has given to the guest.
    let guestID: PeerID
    private var pingers: [Pinger] = []
    private(set) var port: UInt16 = 0
    private static let key = [UInt8](repeating: 77, count: 32)

    init?(pings: Bool) {
        var options = WebOptions()
        options.interface = "lo"
        options.port = 0
        web = WebTransport(options)
        web.page = Server.page
        func session(
            _ name: String, seed: UInt64, _ transports: [any Transport], on loop: UVEventLoop,
            isGuest: Bool = false
        ) -> SessionProbe {
            var configuration = SessionConfiguration(service: "attack", name: DisplayName(fitting: name))
            configuration.admitsUnencryptedGuests = true
            configuration.security = isGuest ? .none : .encrypted
            let session = Session(
                configuration, identity: .ephemeral(seed: seed), transports: transports, loop: loop)
            let faulty = transports.lazy.compactMap { $0 as? FaultyTransport }.first
            return SessionProbe(
                number: Int(seed), session: session,
                faults: faulty?.control ?? FaultyTransport(MemoryTransport(hub: MemoryHub())).control)
        }
        func tcp() -> TCPTransport { TCPTransport(TCPOptions(interface: "lo", discovery: .off)) }
        host = session("Host", seed: 1, [web, tcp()], on: loops[0])
        peer = session("Peer", seed: 2, [tcp()], on: loops[1])
        guest = session(
            "Guest", seed: 3, [FaultyTransport(GuestClient(on: wire, key: Self.key))], on: loops[2],
            isGuest: true)
        // The guest is who the host says it is.
        guard let entry = GuestEntry([1] + Self.key) else { return nil }
        guestID = entry.peer
        guest.session.driver.machine.hello.peer = entry.peer
        for probe in [host, peer, guest] { probe.start(reading: .handler, accepting: true) }
        guard connect() else { return nil }
        if pings { pingers = [Pinger(peer, host.id), Pinger(guest, host.id)] }
    }

    private func addresses(_ scheme: String) -> [TransportAddress] {
        host.events.compactMap { event in
            if case .listening(scheme, let addresses) = event { addresses } else { nil }
        }.last ?? []
    }

    private func connect() -> Bool {
        guard host.wait({ _ in !addresses("web").isEmpty && !addresses("tcp").isEmpty }),
            let first = addresses("web").first, let atTCP = addresses("tcp").first
        else { return false }
        port = first.value.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
        wire.note(addresses("web"), of: web, on: loops[0])
        peer.session.invite(at: atTCP) { [peer] in peer.outcomes.append($0) }
        guest.session.invite(at: first) { [guest] in guest.outcomes.append($0) }
        return host.wait { [guestID, peer] in
            $0.state(of: peer.id) == .connected && $0.state(of: guestID) == .connected
        } && guest.wait { [host] in $0.state(of: host.id) == .connected }
    }

    /// How long an answer to a ping has taken at most since the last call, and how many came. A ping without an answer
    /// counts with its age.
    func takeWorst() -> (time: Duration, count: Int) {
        let all = pingers.map { $0.takeWorst() }
        return (all.map(\.time).max() ?? .zero, all.map(\.count).reduce(0, +))
    }

    /// Whether both are still connected, and were all the time.
    var isUndisturbed: Bool {
        !host.events.contains { event in
            switch event {
            case .reconnecting, .disconnected: true
            default: false
            }
        }
    }

    /// Makes an invitation, and returns its token.
    func invite() -> [UInt8] { loops[0].call { [web] in web.makeToken() } }

    func stop() {
        for pinger in pingers { pinger.stop() }
        for probe in [guest, peer, host] {
            _ = try? waitForReply { reply in probe.session.close { reply(true) } }
        }
        for loop in loops { loop.shutdown() }
    }
}

/// Pings a peer all the time, and notes the longest time that an answer took.
///
/// `@unchecked Sendable`: the monitor guards what it notes.
private final class Pinger: @unchecked Sendable {
    private let probe: SessionProbe
    private let host: PeerID
    private let monitor = Monitor()
    private let clock = ContinuousClock()
    private var worst = Duration.zero
    private var count = 0
    private var sentAt: ContinuousClock.Instant?
    private var isStopped = false

    init(_ probe: SessionProbe, _ host: PeerID) {
        self.probe = probe
        self.host = host
        ping()
    }

    private func ping() {
        let isOver = monitor.change { () -> Bool in
            if !isStopped { sentAt = clock.now }
            return isStopped
        }
        guard !isOver else { return }
        probe.session.ping(host) { [self] _ in
            monitor.change {
                if let sentAt { worst = max(worst, clock.now - sentAt) }
                sentAt = nil
                count += 1
            }
            let loop = probe.session.loop
            loop.schedule(at: loop.now + .milliseconds(20)) { [self] in ping() }
        }
    }

    func takeWorst() -> (time: Duration, count: Int) {
        monitor.change {
            let result = (max(worst, sentAt.map { clock.now - $0 } ?? .zero), count)
            (worst, count) = (.zero, 0)
            return result
        }
    }

    func stop() { monitor.change { isStopped = true } }
}
