import NighCore

/// A transport under test: calls it on its loop, and records its events. A ``CheckedTransport`` around it enforces the
/// contract.
///
/// The monitor guards what it records; hence `@unchecked Sendable`.
final class TransportProbe: TransportEventHandler, @unchecked Sendable {
    /// An event about a route to another transport.
    enum RouteEvent: Equatable {
        case found(Sighting)
        case changed(Sighting)
        case lost(TransportAddress)
    }

    let number: Int
    let peer: PeerID
    let transport: CheckedTransport
    let loop: any EventLoop
    /// Held strongly, because a transport that breaks the contract may report something at any time. The testbed
    /// releases its transport probes at the end.
    let testbed: Testbed
    /// Whether its pipes carry any bytes instead of patterns.
    let isRaw: Bool

    private let monitor: Monitor
    private var nextDial: UInt64 = 0
    private var isShutDown = false
    private var visible: [TransportAddress: Sighting] = [:]
    private var recordedRoutes: [RouteEvent] = []
    private var recordedListening: [TransportAddress] = []
    private var listeningCount = 0
    private var accepted: [PipeProbe] = []
    private var dialMoments: [DialID: Moment] = [:]
    private var dialled: [DialID: PipeProbe] = [:]
    private var failed: [DialID: (error: NighError, after: Moment.Span)] = [:]
    private var recordedFailures: [NighError] = []
    private var recordedError: NighError?

    init(
        _ number: Int, testbed: Testbed, transport: CheckedTransport, loop: any EventLoop, isRaw: Bool
    ) {
        self.isRaw = isRaw
        self.number = number
        self.testbed = testbed
        self.transport = transport
        self.loop = loop
        monitor = testbed.monitor
        var random = SeededGenerator(seed: testbed.rig.seed &* 1000 &+ UInt64(number))
        peer = PeerID(bytes: (0..<PeerID.byteCount).map { _ in UInt8(truncatingIfNeeded: random.next()) })!
    }

    /// The addresses at which it listens.
    var listening: [TransportAddress] { monitor.read { recordedListening } }
    /// The number of `listeningChanged` events.
    var listeningChanges: Int { monitor.read { listeningCount } }
    /// The events about routes so far.
    var routes: [RouteEvent] { monitor.read { recordedRoutes } }
    /// The current sightings.
    var sightings: [Sighting] { monitor.read { Array(visible.values) } }
    /// The pipes that came in.
    var acceptedPipes: [PipeProbe] { monitor.read { accepted } }
    /// The errors with which advertising or browsing failed, or the transport went down.
    var failures: [NighError] { monitor.read { recordedFailures } }

    /// The last error that the transport or one of its pipes reported.
    var lastError: NighError? { monitor.read { recordedError } }

    func dialledPipe(_ dial: DialID) -> PipeProbe? { monitor.read { dialled[dial] } }
    func failure(_ dial: DialID) -> (error: NighError, after: Moment.Span)? { monitor.read { failed[dial] } }

    /// Returns the current sighting of `other`; nil if there is none.
    func sighting(of other: TransportProbe) -> Sighting? {
        sightings.first { $0.advertisement.peer == other.peer }
    }

    func advertisement(
        _ name: String? = nil, info: DiscoveryInfo = .none, isFull: Bool = false, identity: PeerID? = nil
    ) -> Advertisement {
        Advertisement(
            service: testbed.rig.service, peer: peer, name: DisplayName(fitting: name ?? "Station \(number)"),
            info: info, isFull: isFull, identity: identity)
    }

    /// Runs `body` on the loop, and waits for its result.
    func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) throws -> Result {
        try testbed.run(on: loop, body)
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
        let service = testbed.rig.service
        try run { [self] in
            // A new search reports all routes again.
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
        // Shorter than the testbed waits, so that a check that waits for the pipe reports why there is none.
        let timeout = timeout ?? testbed.rig.timeout * 0.9
        return try run { [self] in
            let dial = beginDial(address)
            transport.dial(address, as: dial, timeout: timeout)
            return dial
        }
    }

    /// Dials, and cancels the dial in the same turn.
    func dialAndCancel(_ address: TransportAddress) throws {
        let timeout = testbed.rig.timeout
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
            testbed.freeEnd(of: self)
        }
    }

    /// Releases the pipes seen so far.
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

    /// Records an error that the transport reported. Errors about a broken contract come from the checker, and are not
    /// recorded.
    func note(_ error: NighError) {
        if case .contractBroken = error.cause { return }
        monitor.change { recordedError = error }
    }

    /// Reports a broken contract to the testbed, if there is one. After a shutdown the checker reports none, so the
    /// testbed asks here.
    func noteBreach() {
        if let breach = transport.breach { testbed.recordViolation("transport \(number): \(breach.cause)") }
    }

    func handle(_ event: TransportEvent, by transport: any Transport) {
        switch event {
        case .routeFound(let sighting): record(sighting, .found(sighting))
        case .routeChanged(let sighting): record(sighting, .changed(sighting))
        case .routeLost(let address):
            monitor.change {
                guard visible.removeValue(forKey: address) != nil else { return }
                recordedRoutes.append(.lost(address))
            }
        case .pipeOpened(let pipe, let dial):
            let probe = PipeProbe(pipe, owner: self)
            monitor.change { if let dial { dialled[dial] = probe } else { accepted.append(probe) } }
            probe.start()
        case .dialFailed(let dial, let error):
            note(error)
            let now = loop.now
            monitor.change { failed[dial] = (error, now - (dialMoments[dial] ?? now)) }
        case .advertisingFailed(let error), .browsingFailed(let error): failed(error)
        case .listeningChanged(let addresses):
            monitor.change {
                recordedListening = addresses
                listeningCount += 1
            }
        case .transportChanged(let condition):
            noteBreach()
            if case .down(let error) = condition { failed(error) }
        case .addressKnown, .advertised: break
        }
    }

    private func record(_ sighting: Sighting, _ event: RouteEvent) {
        // Ignores this transport itself, and strangers on the same network.
        guard sighting.advertisement.peer != peer, testbed.knows(sighting.advertisement.peer) else { return }
        monitor.change {
            visible[sighting.address] = sighting
            recordedRoutes.append(event)
        }
    }

    private func failed(_ error: NighError) {
        note(error)
        monitor.change { recordedFailures.append(error) }
    }
}
