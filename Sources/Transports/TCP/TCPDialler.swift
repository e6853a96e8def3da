import NighCore
import NighUV

/// The dials of TCP: from an address, through a name server or the announcements of a peer, to a race of connections.
/// Loop only.
final class TCPDialler {
    /// A connection, and the discovered peer that it was meant to reach, if any.
    typealias Opened = (connection: TCPConnection, peer: PeerID?)

    /// The most places that are reported for an address.
    static let placeLimit = 64

    private let loop: UVEventLoop
    private let interface: String?
    private let addresses: (PeerID) -> [SocketAddress]
    private let dials: Dials<Opened>
    private lazy var probes = Dials<Opened>(scheme: TCPTransport.schemeName, on: loop) {
        [unowned self] id, outcome in
        let report = probeCallbacks.removeValue(forKey: id)
        switch outcome {
        case .success(let opened):
            opened.connection.pipe.finish()
            report?(true)
        case .failure(let error): report?(Self.isShortage(error) ? nil : false)
        }
    }
    private var probeCallbacks: [DialID: (Bool?) -> Void] = [:]
    private var probeCount: UInt64 = 0
    private var isStopped = false

    /// - Parameters:
    ///   - interface: the interface to connect through.
    ///   - addresses: returns where a peer that was found can be reached now.
    ///   - ended: receives each outcome, never from inside a call.
    init(
        on loop: UVEventLoop, interface: String?, addresses: @escaping (PeerID) -> [SocketAddress],
        ended: @escaping (DialID, Result<Opened, NighError>) -> Void
    ) {
        self.loop = loop
        self.interface = interface
        self.addresses = addresses
        dials = Dials(scheme: TCPTransport.schemeName, on: loop, ended: ended)
    }

    /// Begins a dial. The outcome comes within `timeout`.
    func dial(_ address: TransportAddress, as id: DialID, timeout: Duration) {
        do throws(NighError) {
            begin(id, of: dials, to: try TCPDestination(address), timeout)
            dials.follow(id) {
                NighError(
                    .connecting, .timedOut, peer: address.description, transport: TCPTransport.schemeName,
                    advice: "no name server has answered; an IP address works too")
            }
        } catch {
            dials.refuse(id, error)
        }
    }

    /// Cancels a dial; nothing is reported.
    func cancel(_ id: DialID) { dials.cancel(id) }

    /// Tries whether a peer that was found accepts a connection, closes that at once, and reports the result in a later
    /// turn: nil if this side had no descriptor left, which says nothing about the peer.
    func probe(_ peer: PeerID, timeout: Duration, _ report: @escaping (Bool?) -> Void) {
        probeCount += 1
        let id = DialID(number: probeCount)
        probeCallbacks[id] = report
        begin(id, of: probes, to: .found(peer), timeout)
    }

    private static func isShortage(_ error: NighError) -> Bool {
        if case .system(let number, _) = error.cause, SocketFault(number).isShortage { return true }
        return error.attempts.contains(where: isShortage)
    }

    /// Finds the places behind `address`, in the order in which a dial tries the first of them, and up to `placeLimit`.
    func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) {
        do throws(NighError) {
            switch try TCPDestination(address) {
            case .number(let number): found(.success([number.transportAddress]))
            case .found(let peer): found(.success(Self.places(addresses(peer))))
            case .name(let name, let port):
                NameLookup.start(name, port: port, on: loop) { [weak self] result in
                    guard self?.isStopped == false else { return }
                    found(result.map { Self.places($0.inDialOrder) })
                }
            }
        } catch {
            found(.failure(error))
        }
    }

    private static func places(_ addresses: [SocketAddress]) -> [TransportAddress] {
        addresses.prefix(placeLimit).map(\.transportAddress)
    }

    /// Cancels everything; nothing is reported.
    func stop() {
        isStopped = true
        dials.cancelAll()
        probes.cancelAll()
    }

    private func begin(
        _ id: DialID, of dials: Dials<Opened>, to destination: TCPDestination, _ timeout: Duration
    ) {
        dials.begin(id, timeout: timeout)
        loop.later { self.start(id, of: dials, to: destination) }
    }

    private func start(_ id: DialID, of dials: Dials<Opened>, to destination: TCPDestination) {
        guard dials.isInProgress(id) else { return }
        switch destination {
        case .number(let address): race([address], id, of: dials, to: nil)
        case .found(let peer):
            let addresses = addresses(peer)
            guard addresses.isEmpty else { return race(addresses, id, of: dials, to: peer) }
            let error = NighError(
                .connecting, .unreachable, peer: peer.short, transport: TCPTransport.schemeName,
                advice: "it is no longer visible on the network")
            dials.end(id, .failure(error))
        case .name(let name, let port):
            NameLookup.start(name, port: port, on: loop) { [weak self] result in
                guard let self, dials.isInProgress(id) else { return }
                switch result {
                case .success(let addresses): race(addresses.inDialOrder, id, of: dials, to: nil)
                case .failure(let error): dials.end(id, .failure(error))
                }
            }
        }
    }

    private func race(
        _ addresses: [SocketAddress], _ id: DialID, of dials: Dials<Opened>, to peer: PeerID?
    ) {
        let race = ConnectionRace(addresses, by: interface, on: loop) { [weak dials] result in
            dials?.end(id, result.map { ($0, peer) })
        }
        dials.follow(id, timedOut: race.failureOfTimeout, stop: race.stop)
        race.start()
    }
}
