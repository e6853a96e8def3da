import NighCore

/// A transport under test on its loop: calls it there, records what it tells, and checks that it tells it by the
/// contract.
///
/// What it records is guarded by the monitor; `isInCall` is confined to the loop.
final class Station: TransportEvents, @unchecked Sendable {
    /// Shared by all stations of one loop: whether that loop is inside a call to a transport or a pipe.
    final class CallGuard {
        var isInCall = false
    }

    /// What was told about routes of other stations.
    enum RouteWord: Equatable {
        case found(Sighting)
        case changed(Sighting)
        case lost(TransportAddress)
    }

    let number: Int
    let peer: PeerID
    let transport: any Transport
    let loop: any EventLoop
    /// Kept, since a transport that breaks the contract may tell something at any time. The bench lets go of its stations.
    let bench: Bench
    /// Whether its pipes carry any bytes rather than patterns.
    let isRaw: Bool

    private let callGuard: CallGuard
    private let monitor: Monitor
    private var nextDial: UInt64 = 0
    private var isShutDown = false
    private var isBrowsing = false
    private var visible: [TransportAddress: Sighting] = [:]
    private var recordedRoutes: [RouteWord] = []
    private var recordedListening: [TransportAddress] = []
    private var listeningCount = 0
    private var accepted: [PipeProbe] = []
    private var openDials: [DialID: Moment] = [:]
    private var dialled: [DialID: PipeProbe] = [:]
    private var failed: [DialID: (error: NighError, after: Moment.Span)] = [:]
    private var recordedFailures: [NighError] = []
    private var recordedError: NighError?

    init(
        _ number: Int, bench: Bench, transport: any Transport, loop: any EventLoop, callGuard: CallGuard,
        isRaw: Bool
    ) {
        self.isRaw = isRaw
        self.number = number
        self.bench = bench
        self.transport = transport
        self.loop = loop
        self.callGuard = callGuard
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

    /// Runs `body` on the loop as a call to the transport, in which nothing may be told.
    func call<Result: Sendable>(_ body: @escaping @Sendable (any Transport) -> Result) throws -> Result {
        try run { [self] in guarding { body(transport) } }
    }

    func guarding<Result>(_ body: () -> Result) -> Result {
        let before = callGuard.isInCall
        callGuard.isInCall = true
        defer { callGuard.isInCall = before }
        return body()
    }

    func advertise(_ advertisement: Advertisement? = nil) throws {
        let advertisement = advertisement ?? self.advertisement()
        try call { $0.advertise(advertisement) }
    }

    func browse() throws {
        let service = bench.rig.service
        try run { [self] in
            // A new search finds anew.
            monitor.change {
                isBrowsing = true
                visible = [:]
            }
            guarding { transport.browse(service) }
        }
    }

    func stopBrowsing() throws {
        try run { [self] in
            guarding { transport.stopBrowsing() }
            monitor.change {
                isBrowsing = false
                visible = [:]
            }
        }
    }

    func dial(_ address: TransportAddress, timeout: Duration? = nil) throws -> DialID {
        // Less than is waited for, so that a check which waits for the pipe says why there is none.
        let timeout = timeout ?? bench.rig.patience * 0.9
        return try run { [self] in
            let dial = beginDial(address)
            guarding { transport.dial(address, as: dial, timeout: timeout) }
            return dial
        }
    }

    /// Dials and takes it back in the same turn.
    func dialAndCancel(_ address: TransportAddress) throws {
        let timeout = bench.rig.patience
        try run { [self] in
            let dial = beginDial(address)
            guarding {
                transport.dial(address, as: dial, timeout: timeout)
                transport.cancelDial(dial)
            }
            monitor.change { openDials[dial] = nil }
        }
    }

    func cancel(_ dial: DialID) throws {
        try run { [self] in
            guarding { transport.cancelDial(dial) }
            monitor.change { openDials[dial] = nil }
        }
    }

    func shutdown() throws {
        try run { [self] in
            guard !monitor.read({ isShutDown }) else { return }
            guarding { transport.shutdown() }
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
            openDials[dial] = loop.now
            return dial
        }
    }

    /// False when nothing may be told now; that is noted.
    func enter(_ what: String) -> Bool {
        guard loop.isCurrent else {
            bench.violated("\(what) off the loop")
            return false
        }
        if callGuard.isInCall { bench.violated("\(what) from inside a call") }
        guard !monitor.read({ isShutDown }) else {
            bench.violated("\(what) after shutdown")
            return false
        }
        return true
    }

    func checkError(_ error: NighError) {
        monitor.change { recordedError = error }
        if error.transport != transport.scheme {
            bench.violated("an error without its transport's scheme: \(error)")
        }
    }

    private func checkIdentity(_ transport: any Transport) {
        if transport !== self.transport { bench.violated("events came in the name of another transport") }
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) {
        seen("routeFound", sighting, by: transport) { known in
            if known != nil { bench.violated("routeFound for \(sighting.address), which was found before") }
            visible[sighting.address] = sighting
            recordedRoutes.append(.found(sighting))
        }
    }

    func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        seen("routeChanged", sighting, by: transport) { known in
            if known == nil {
                bench.violated("routeChanged for \(sighting.address), which was not found before")
            }
            visible[sighting.address] = sighting
            recordedRoutes.append(.changed(sighting))
        }
    }

    private func seen(
        _ what: String, _ sighting: Sighting, by transport: any Transport, _ note: (Sighting?) -> Void
    ) {
        guard enter(what) else { return }
        checkIdentity(transport)
        // Oneself, and strangers on the same network, are nobody's fault.
        guard sighting.advertisement.peer != peer, bench.knows(sighting.advertisement.peer) else { return }
        monitor.change {
            if !isBrowsing { bench.violated("\(what) without browsing") }
            if sighting.advertisement.service != bench.rig.service {
                bench.violated("\(what) of the service \(sighting.advertisement.service)")
            }
            note(visible[sighting.address])
        }
    }

    func routeLost(_ address: TransportAddress, by transport: any Transport) {
        guard enter("routeLost") else { return }
        checkIdentity(transport)
        monitor.change {
            guard visible.removeValue(forKey: address) != nil else { return }
            recordedRoutes.append(.lost(address))
        }
    }

    func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        guard enter("addressKnown") else { return }
        checkIdentity(transport)
        if address.scheme != transport.scheme { bench.violated("addressKnown with another scheme") }
        monitor.change { if !isBrowsing { bench.violated("addressKnown without browsing") } }
    }

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        guard enter("pipeOpened") else { return }
        checkIdentity(transport)
        for address in [pipe.localAddress, pipe.remoteAddress]
        where address.map({ $0.scheme != transport.scheme }) == true {
            bench.violated("a pipe's address has another scheme")
        }
        let probe = PipeProbe(pipe, station: self)
        monitor.change {
            if let dial {
                if openDials.removeValue(forKey: dial) == nil {
                    bench.violated("pipeOpened for a dial that is over, cancelled or unknown")
                }
                dialled[dial] = probe
            } else {
                accepted.append(probe)
            }
        }
        probe.start()
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        guard enter("dialFailed") else { return }
        checkIdentity(transport)
        checkError(error)
        let now = loop.now
        monitor.change {
            guard let begin = openDials.removeValue(forKey: dial) else {
                return bench.violated("dialFailed for a dial that is over, cancelled or unknown")
            }
            failed[dial] = (error, now - begin)
        }
    }

    func advertisingFailed(_ error: NighError, by transport: any Transport) {
        failed("advertisingFailed", error)
    }

    func browsingFailed(_ error: NighError, by transport: any Transport) { failed("browsingFailed", error) }

    private func failed(_ what: String, _ error: NighError) {
        guard enter(what) else { return }
        checkError(error)
        monitor.change { recordedFailures.append(error) }
    }

    func advertised(as name: DisplayName, by transport: any Transport) {
        guard enter("advertised") else { return }
        checkIdentity(transport)
    }

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        guard enter("listeningChanged") else { return }
        checkIdentity(transport)
        monitor.change {
            recordedListening = addresses
            listeningCount += 1
        }
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        guard enter("transportChanged") else { return }
        if case .down(let error) = condition { failed("transportChanged", error) }
    }
}
