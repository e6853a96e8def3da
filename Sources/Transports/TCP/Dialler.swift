import NighCore
import NighUV

/// The dials that are under way: from what an address says, by way of a name server or of what is known about a peer, to
/// a race of connections. Each ends with exactly one outcome, within its time. Loop only.
///
/// `@unchecked Sendable`: confined to its loop.
final class Dialler: @unchecked Sendable {
    /// How a dial ended: with a pipe, and whom it was to reach if that was somebody found, or with the reason why not.
    enum Outcome {
        case opened(TCPPipe, PeerID?)
        case failed(NighError)
    }

    /// The most places that are told for an address.
    static let placeLimit = 64

    private enum Key: Hashable {
        case dial(DialID)
        case knock(UInt64)
    }

    /// `@unchecked Sendable`: confined to the loop.
    private final class Attempt: @unchecked Sendable {
        let target: String
        let peer: PeerID?
        let whenOver: (Outcome) -> Void
        var race: ConnectionRace?
        var timer: LoopTimer?

        init(_ target: String, peer: PeerID?, whenOver: @escaping (Outcome) -> Void) {
            self.target = target
            self.peer = peer
            self.whenOver = whenOver
        }
    }

    private let loop: UVEventLoop
    private let interface: String?
    private let addresses: (PeerID) -> [SocketAddress]
    private let ended: (DialID, Outcome) -> Void
    private var attempts: [Key: Attempt] = [:]
    private var knockCount: UInt64 = 0

    /// - Parameters:
    ///   - interface: the one to leave by.
    ///   - addresses: where somebody found can be reached now.
    ///   - ended: hears each outcome, never from inside a call.
    init(
        on loop: UVEventLoop, interface: String?,
        addresses: @escaping (PeerID) -> [SocketAddress], ended: @escaping (DialID, Outcome) -> Void
    ) {
        self.loop = loop
        self.interface = interface
        self.addresses = addresses
        self.ended = ended
    }

    /// Begins; the outcome comes within `timeout`.
    func dial(_ address: TransportAddress, as id: DialID, timeout: Duration) {
        let ended = ended
        let key = Key.dial(id)
        do throws(NighError) {
            let destination = try TCPDestination(address)
            let attempt = Attempt(address.description, peer: destination.peer) { ended(id, $0) }
            begin(key, attempt, to: destination, timeout: Moment.Span(timeout))
        } catch {
            attempts[key] = Attempt(address.description, peer: nil) { ended(id, $0) }
            loop.execute { self.finish(key, .failed(error)) }
        }
    }

    /// Gives a dial up; nothing is told.
    func cancel(_ id: DialID) { forget(.dial(id))?.race?.stop() }

    /// Tries whether somebody found opens a connection, which is closed again at once, and tells that in a later turn.
    func knock(at peer: PeerID, timeout: Moment.Span, _ tell: @escaping (Bool) -> Void) {
        knockCount += 1
        let attempt = Attempt(peer.short, peer: peer) { outcome in
            guard case .opened(let pipe, _) = outcome else { return tell(false) }
            pipe.finish()
            tell(true)
        }
        begin(.knock(knockCount), attempt, to: .found(peer), timeout: timeout)
    }

    /// The places that a dial of `address` would try, in its order, and up to `placeLimit` of them.
    func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) {
        do throws(NighError) {
            switch try TCPDestination(address) {
            case .number(let number): found(.success([number.transportAddress]))
            case .found(let peer): found(.success(Self.places(addresses(peer))))
            case .name(let name, let port):
                NameLookup.start(name, port: port, on: loop) { result in
                    found(result.map { Self.places($0.inOrderOfPromise) })
                }
            }
        } catch {
            found(.failure(error))
        }
    }

    private static func places(_ addresses: [SocketAddress]) -> [TransportAddress] {
        addresses.prefix(placeLimit).map(\.transportAddress)
    }

    /// Gives all up; nothing is told.
    func stop() {
        let all = attempts.keys
        for key in all { forget(key)?.race?.stop() }
    }

    private func begin(_ key: Key, _ attempt: Attempt, to destination: TCPDestination, timeout: Moment.Span) {
        attempts[key] = attempt
        attempt.timer = loop.schedule(at: loop.now + timeout) { self.ranOutOfTime(key) }
        loop.execute { self.go(key, attempt, to: destination) }
    }

    private func go(_ key: Key, _ attempt: Attempt, to destination: TCPDestination) {
        guard attempts[key] === attempt else { return }
        switch destination {
        case .number(let address): race([address], key, attempt)
        case .found(let peer):
            let addresses = addresses(peer)
            guard addresses.isEmpty else { return race(addresses, key, attempt) }
            let error = NighError(
                .connecting, .unreachable, peer: peer.short, transport: TCPTransport.schemeName,
                advice: "it is not seen on the network any more")
            finish(key, .failed(error))
        case .name(let name, let port):
            NameLookup.start(name, port: port, on: loop) { [weak self] result in
                guard let self, attempts[key] === attempt else { return }
                switch result {
                case .success(let addresses): race(addresses.inOrderOfPromise, key, attempt)
                case .failure(let error): finish(key, .failed(error))
                }
            }
        }
    }

    private func race(_ addresses: [SocketAddress], _ key: Key, _ attempt: Attempt) {
        // The attempt holds the race, so the race must not hold the attempt.
        let (loop, interface, peer) = (loop, interface, attempt.peer)
        let race = ConnectionRace(addresses, on: loop) { address throws(UVError) in
            try TCPPipe(family: address.family, interface: interface, on: loop)
        } whenOver: { [weak self] result in
            switch result {
            case .success(let pipe): self?.finish(key, .opened(pipe, peer))
            case .failure(let error): self?.finish(key, .failed(error))
            }
        }
        attempt.race = race
        race.start()
    }

    private func ranOutOfTime(_ key: Key) {
        guard let attempt = attempts[key] else { return }
        let error =
            attempt.race?.failureOfTimeout()
            ?? NighError(
                .connecting, .timedOut, peer: attempt.target, transport: TCPTransport.schemeName,
                advice: "no name server has answered; an address in numbers works too")
        attempt.race?.stop()
        finish(key, .failed(error))
    }

    private func finish(_ key: Key, _ outcome: Outcome) {
        if let attempt = forget(key) { return attempt.whenOver(outcome) }
        if case .opened(let pipe, _) = outcome { pipe.finish() }
    }

    private func forget(_ key: Key) -> Attempt? {
        guard let attempt = attempts.removeValue(forKey: key) else { return nil }
        if let timer = attempt.timer { loop.cancel(timer) }
        return attempt
    }
}
