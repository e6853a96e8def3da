import NighCore

/// A transport under test on its loop: calls it there, and records what it tells. A ``CheckedTransport`` around it sees to it
/// that it tells that by the contract.
///
/// What it records is guarded by the monitor; hence `@unchecked Sendable`.
final class Station: TransportEvents, @unchecked Sendable {
    /// What was told about routes of other stations.
    enum RouteWord: Equatable {
        case found(Sighting)
        case changed(Sighting)
        case lost(TransportAddress)
    }

    let number: Int
    let peer: PeerID
    let transport: CheckedTransport
    let loop: any EventLoop
    /// Kept, since a transport that breaks the contract may tell something at any time. The bench lets go of its stations.
    let bench: Bench
    /// Whether its pipes carry any bytes rather than patterns.
    let isRaw: Bool

    private let monitor: Monitor
    private var nextDial: UInt64 = 0
    private var isShutDown = false
    private var visible: [TransportAddress: Sighting] = [:]
    private var recordedRoutes: [RouteWord] = []
    private var recordedListening: [TransportAddress] = []
    private var listeningCount = 0
    private var accepted: [PipeProbe] = []
    private var dialMoments: [DialID: Moment] = [:]
    private var dialled: [DialID: PipeProbe] = [:]
    private var failed: [DialID: (error: NighError, after: Moment.Span)] = [:]
    private var recordedFailures: [NighError] = []
    private var recordedError: NighError?

    init(
        _ number: Int, bench: Bench, transport: CheckedTransport, loop: any EventLoop, isRaw: Bool
    ) {
        self.isRaw = isRaw
        self.number = number
        self.bench = bench
        self.transport = transport
        self.loop = loop
        monitor = bench.monitor
        var random = SeededGenerator(seed: bench.rig.seed &* 1000 &+ UInt64(number))
        peer = PeerID(bytes: (0..<PeerID.byteCount).map { _ in UInt8(truncatingIfNeeded: random.next()) })!
    }

    /// Where it listens.
    var listening: [TransportAddress] { monitor.read { recordedListening } }
    /// How often it said where.
    var listeningChanges: Int { monitor.read { listeningCount } }
    /// What it told about routes.
    var routes: [RouteWord] { monitor.read { recordedRoutes } }
    /// What it sees now.
    var sightings: [Sighting] { monitor.read { Array(visible.values) } }
    /// The pipes that came in.
    var acceptedPipes: [PipeProbe] { monitor.read { accepted } }
    /// Failures of advertising and browsing.
    var failures: [NighError] { monitor.read { recordedFailures } }

    /// The last error that the transport or a pipe of it told.
    var lastError: NighError? { monitor.read { recordedError } }

    func dialledPipe(_ dial: DialID) -> PipeProbe? { monitor.read { dialled[dial] } }
    func failure(_ dial: DialID) -> (error: NighError, after: Moment.Span)? { monitor.read { failed[dial] } }

    /// The one sighting of `station` that this one has now.
    func sighting(of station: Station) -> Sighting? {
        sightings.first { $0.advertisement.peer == station.peer }
    }

    func advertisement(_ name: String? = nil, info: DiscoveryInfo = .none) -> Advertisement {
        Advertisement(
            service: bench.rig.service, peer: peer, name: DisplayName(fitting: name ?? "Station \(number)"),
            info: info)
    }

    /// Runs `body` on the loop and waits for it.
    func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) throws -> Result {
        try bench.run(on: loop, body)
    }

    /// Calls the transport on the loop.
    func call<Result: Sendable>(_ body: @escaping @Sendable (any Transport) -> Result) throws -> Result {
        try run { [self] in body(transport) }
    }

    func advertise(_ advertisement: Advertisement? = nil) throws {
        let advertisement = advertisement ?? self.advertisement()
        try call { $0.advertise(advertisement) }
    }

    func browse() throws {
        let service = bench.rig.service
        try run { [self] in
            // A new search finds anew.
            monitor.change { visible = [:] }
            transport.browse(service)
        }
    }

    func stopBrowsing() throws {
        try run { [self] in
            transport.stopBrowsing()
            monitor.change { visible = [:] }
        }
    }

    func dial(_ address: TransportAddress, timeout: Duration? = nil) throws -> DialID {
        // Less than is waited for, so that a check which waits for the pipe says why there is none.
        let timeout = timeout ?? bench.rig.patience * 0.9
        return try run { [self] in
            let dial = beginDial(address)
            transport.dial(address, as: dial, timeout: timeout)
            return dial
        }
    }

    /// Dials and takes it back in the same turn.
    func dialAndCancel(_ address: TransportAddress) throws {
        let timeout = bench.rig.patience
        try run { [self] in
            let dial = beginDial(address)
            transport.dial(address, as: dial, timeout: timeout)
            transport.cancelDial(dial)
        }
    }

    func cancel(_ dial: DialID) throws {
        try run { [self] in
            transport.cancelDial(dial)
        }
    }

    func shutdown() throws {
        try run { [self] in
            guard !monitor.read({ isShutDown }) else { return }
            transport.shutdown()
            monitor.change { isShutDown = true }
            bench.release(self)
        }
    }

    /// Lets go of the pipes seen so far.
    func forgetPipes() {
        monitor.change {
            accepted = []
            dialled = [:]
        }
    }

    private func beginDial(_ address: TransportAddress) -> DialID {
        monitor.change {
            nextDial += 1
            let dial = DialID(number: nextDial * 100 + UInt64(number))
            dialMoments[dial] = loop.now
            return dial
        }
    }

    /// Records an error that the transport reported. Errors about a broken contract come from the checker, and are not recorded.
    func note(_ error: NighError) {
        if case .contractBroken = error.cause { return }
        monitor.change { recordedError = error }
    }

    /// Reports a broken contract to the bench, if there is one. After a shutdown the checker reports none, so the bench asks here.
    func noteBreach() {
        if let breach = transport.breach { bench.violated("transport \(number): \(breach.cause)") }
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) { saw(sighting, .found(sighting)) }

    func routeChanged(_ sighting: Sighting, by transport: any Transport) { saw(sighting, .changed(sighting)) }

    private func saw(_ sighting: Sighting, _ word: RouteWord) {
        // Oneself, and strangers on the same network, are nobody's concern.
        guard sighting.advertisement.peer != peer, bench.knows(sighting.advertisement.peer) else { return }
        monitor.change {
            visible[sighting.address] = sighting
            recordedRoutes.append(word)
        }
    }

    func routeLost(_ address: TransportAddress, by transport: any Transport) {
        monitor.change {
            guard visible.removeValue(forKey: address) != nil else { return }
            recordedRoutes.append(.lost(address))
        }
    }

    func addressKnown(_ address: TransportAddress, by transport: any Transport) {}

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        let probe = PipeProbe(pipe, station: self)
        monitor.change { if let dial { dialled[dial] = probe } else { accepted.append(probe) } }
        probe.start()
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        note(error)
        let now = loop.now
        monitor.change { failed[dial] = (error, now - (dialMoments[dial] ?? now)) }
    }

    func advertisingFailed(_ error: NighError, by transport: any Transport) { failed(error) }

    func browsingFailed(_ error: NighError, by transport: any Transport) { failed(error) }

    private func failed(_ error: NighError) {
        note(error)
        monitor.change { recordedFailures.append(error) }
    }

    func advertised(as name: DisplayName, by transport: any Transport) {}

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        monitor.change {
            recordedListening = addresses
            listeningCount += 1
        }
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        noteBreach()
        if case .down(let error) = condition { failed(error) }
    }
}
