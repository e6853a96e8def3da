/// Wraps a transport and checks it against its contract while it is in use. The first broken rule is reported and ends
/// the transport. So a faulty plugin can neither take a session down nor break the contract unnoticed.
///
/// ``ContractRule`` lists what is checked. Everything passes in both directions until the first rule is broken. Then
/// the wrapped transport is cut off: from that moment nothing passes in either direction. In a later turn it is shut
/// down, and the user of this transport gets these reports: its routes are lost, it is down (`transportChanged`, with a
/// ``NighError`` whose cause is `contractBroken`), its dials have failed and its pipes are closed. Later calls are
/// ignored, except that `dial` and `places` fail with the same error and `diagnose` shows it.
///
/// A session wraps each of its transports if `SessionConfiguration.checksTransports` is set. A checked transport keeps
/// the contract itself, and allocates nothing for a message. It does not check that calls do not block, because on a
/// busy machine measured time proves nothing.
///
/// All state is confined to the loop from `start` on, except the first broken rule. That is behind a lock, because a
/// transport that breaks its contract may call on any thread; hence `@unchecked Sendable`.
public final class CheckedTransport: @unchecked Sendable {
    /// The time after its timeout within which a dial must have ended. It is loop time, counted from when the loop has
    /// handled the timeout.
    public static let dialSlack = Duration.seconds(5)

    private enum Phase {
        case idle
        case passing
        /// A rule was broken in this turn. The consequences follow in a later one.
        case broken(NighError)
        /// The wrapped transport has been shut down because it broke a rule.
        case cutOff(NighError)
        case shutDown
    }

    private struct Running {
        let loop: any EventLoop
        let events: any TransportEvents
    }

    /// The scheme of the wrapped transport, read when it was wrapped.
    public let scheme: String
    /// The capabilities of the wrapped transport, read when it was wrapped.
    public let capabilities: TransportCapabilities

    let inner: any Transport
    private let firstBreach = Guarded<NighError?>(nil)
    private var phase = Phase.idle
    private var running: Running?
    private(set) var ledger: TransportLedger
    private var dialTimers: [DialID: LoopTimer] = [:]
    /// Dials made after a rule was broken, whose failure has not been reported yet.
    private var refusedDials: Set<DialID> = []
    /// The requests for places that are not answered, in the order in which they were made.
    private var openAnswers: [PlacesAnswer] = []
    private var pipes: [ObjectIdentifier: CheckedPipe] = [:]
    private var pipeCount = 0
    private var callDepth = CallDepth()

    /// Creates a transport that checks `inner` from `start` on. From now on only this transport may call `inner`.
    public init(_ inner: any Transport) {
        self.inner = inner
        scheme = inner.scheme
        capabilities = inner.capabilities
        ledger = TransportLedger(scheme: scheme)
    }

    /// Creates a transport that checks `inner` together with others on the same loop. All transports that share a
    /// `callDepth` count their calls in it.
    package convenience init(_ inner: any Transport, callDepth: CallDepth) {
        self.init(inner)
        self.callDepth = callDepth
    }

    /// The error of the first broken rule, as the program received it; nil while no rule is broken. May be read on any
    /// thread. After `shutdown` nothing is reported any more, so a rule broken then shows only here.
    public var breach: NighError? { firstBreach.withLock { $0 } }

    /// The wrapped transport's pipe inside a checked pipe. Any other pipe is returned as it is.
    package static func pipe(inside pipe: any Pipe) -> any Pipe { (pipe as? CheckedPipe)?.inner ?? pipe }

    /// The wrapped transport inside a checked one. Any other transport is returned as it is.
    package static func transport(inside transport: any Transport) -> any Transport {
        (transport as? CheckedTransport)?.inner ?? transport
    }

    // MARK: For the other checking types

    /// Whether calls and reports are passed on.
    var isPassing: Bool { if case .passing = phase { true } else { false } }

    /// Runs a call to the wrapped transport or to a pipe of it. Nothing may be reported while it runs.
    @inline(__always)
    func calling<Result>(_ call: () -> Result) -> Result {
        callDepth.count &+= 1
        defer { callDepth.count &-= 1 }
        return call()
    }

    /// Checks the rules that hold for any report. Returns false if the report has to be ignored, because a rule was
    /// broken before.
    func checkMayReport(
        _ event: String, on loop: any EventLoop, alsoInsideCalls: Bool = false
    ) throws(ContractBreach) -> Bool {
        guard loop.isCurrent else {
            throw ContractBreach(.eventsOnTheLoop, "\(event) was reported on another thread")
        }
        guard checksReports else { return false }
        guard callDepth.count == 0 || alsoInsideCalls else {
            throw ContractBreach(.toldInALaterTurn, "\(event) was reported from inside a call")
        }
        guard isPassing else {
            throw ContractBreach(.quietAfterShutdown, "\(event) was reported after shutdown")
        }
        return true
    }

    /// Whether reports of the wrapped transport are checked. They still are after its shutdown, when none may come.
    private var checksReports: Bool {
        switch phase {
        case .passing, .shutDown: true
        case .idle, .broken, .cutOff: false
        }
    }

    /// Notes a broken rule and cuts the transport off. Callable on any thread; only the first call counts.
    func handleBreach(_ breach: ContractBreach, on loop: any EventLoop) {
        let error = breach.error(of: scheme)
        let isFirst = firstBreach.withLock { first in
            guard first == nil else { return false }
            first = error
            return true
        }
        guard isFirst else { return }
        if loop.isCurrent, isPassing { phase = .broken(error) }
        loop.execute { self.cutOff(error) }
    }

    /// Removes a pipe that is over, whichever side ended it.
    func forget(_ pipe: CheckedPipe) { pipes[pipe.key] = nil }

    // MARK: Cutting off

    /// Shuts the wrapped transport down, and reports to the session that everything it had from that transport is over.
    private func cutOff(_ error: NighError) {
        switch phase {
        case .passing, .broken: break
        case .idle, .cutOff, .shutDown: return
        }
        guard let running else { return }
        phase = .cutOff(error)
        cancelTimers()
        let open = pipes.values.sorted { $0.number < $1.number }
        pipes = [:]
        calling {
            for pipe in open { pipe.cutOff() }
            inner.shutdown()
        }
        let events = running.events
        while let address = next({ $0.takeRoute() }) { events.routeLost(address, by: self) }
        if ledger.listens, self.running != nil { events.listeningChanged([], by: self) }
        if self.running != nil { events.transportChanged(.down(error), by: self) }
        while let dial = next({ $0.takeDial() }) { events.dialFailed(dial, error: error, by: self) }
        for pipe in open { if self.running != nil { pipe.reportCutOff(error) } }
        while self.running != nil, let answer = openAnswers.first { answer.fail(error) }
    }

    /// Notes that a request for places is answered.
    func noteAnswered(_ answer: PlacesAnswer) { openAnswers.removeAll { $0 === answer } }

    /// Takes the next item to report. Returns nil once the session has shut this transport down, which it may do in
    /// response to any report.
    private func next<Item>(_ take: (inout TransportLedger) -> Item?) -> Item? {
        running == nil ? nil : take(&ledger)
    }

    private func cancelTimers() {
        for timer in dialTimers.values { running?.loop.cancel(timer) }
        dialTimers = [:]
    }

    /// The error that calls fail with because a rule was broken; nil if there is none.
    private var fault: NighError? {
        switch phase {
        case .broken(let error), .cutOff(let error): error
        case .idle, .passing, .shutDown: nil
        }
    }

    // MARK: Dials

    private func refuse(_ dial: DialID, _ error: NighError) {
        refusedDials.insert(dial)
        running?.loop.execute {
            guard self.refusedDials.remove(dial) != nil else { return }
            self.running?.events.dialFailed(dial, error: error, by: self)
        }
    }

    /// Watches that a dial ends in time. If the loop was held up, it comes to the timeout late, and so may the
    /// transport. So the extra time is counted from when the loop got there. Work that the transport has queued by the
    /// end of it runs first.
    private func watch(_ dial: DialID, _ timeout: Duration) {
        guard let loop = running?.loop else { return }
        let due = loop.now + Moment.Span(timeout)
        guard due != .never else { return }
        dialTimers[dial] = loop.schedule(at: due) {
            self.dialTimers[dial] = loop.schedule(at: loop.now + Moment.Span(Self.dialSlack)) {
                self.dialTimers[dial] = nil
                loop.execute { self.dialIsOverdue(dial, timeout, on: loop) }
            }
        }
    }

    private func dialIsOverdue(_ dial: DialID, _ timeout: Duration, on loop: any EventLoop) {
        guard isPassing, ledger.isOpen(dial) else { return }
        handleBreach(
            ContractBreach(
                .dialEndsInTime,
                "dial \(dial.number) has no outcome \(Self.dialSlack) after its timeout of "
                    + "\(Moment.Span(timeout))"
            ), on: loop)
    }

    private func stopWatching(_ dial: DialID) {
        if let timer = dialTimers.removeValue(forKey: dial) { running?.loop.cancel(timer) }
    }

    // MARK: Scheme and capabilities

    /// Checks that scheme and capabilities are still the same. Called in `start`, `advertise`, `browse` and `dial`, and
    /// when a pipe opens.
    private func checkTraits() {
        guard isPassing, let loop = running?.loop else { return }
        let (scheme, capabilities) = calling { (inner.scheme, inner.capabilities) }
        guard scheme == self.scheme else {
            return handleBreach(
                ContractBreach(.traitsConstant, "the scheme \"\(self.scheme)\" became \"\(scheme)\""),
                on: loop)
        }
        guard capabilities == self.capabilities else {
            return handleBreach(
                ContractBreach(.traitsConstant, "the capabilities became \(capabilities)"), on: loop)
        }
    }

    private func checkInitialTraits(on loop: any EventLoop) {
        guard TransportSpec.isScheme(scheme) else {
            return handleBreach(ContractBreach(.schemeWellFormed, "the scheme is \"\(scheme)\""), on: loop)
        }
        guard capabilities.typicalMTU > 0, capabilities.typicalLatency > .zero,
            capabilities.expectedConnectTime > .zero
        else {
            return handleBreach(
                ContractBreach(.capabilitiesPossible, "the capabilities are \(capabilities)"), on: loop)
        }
    }
}

// The protocol documents these members.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension CheckedTransport: Transport {
    public func prepare(for peer: PeerID, of identity: PeerID) { inner.prepare(for: peer, of: identity) }

    public func start(on loop: any EventLoop, events: any TransportEvents) {
        loop.checkIsolated()
        precondition(running == nil, "a transport was started twice")
        running = Running(loop: loop, events: events)
        phase = .passing
        calling { inner.start(on: loop, events: CheckedEvents(of: self, on: loop)) }
        checkInitialTraits(on: loop)
        checkTraits()
    }

    public func advertise(_ advertisement: Advertisement) {
        checkTraits()
        guard isPassing else { return }
        ledger.advertise()
        calling { inner.advertise(advertisement) }
    }

    public func updateAdvertisement(_ advertisement: Advertisement) {
        guard isPassing else { return }
        calling { inner.updateAdvertisement(advertisement) }
    }

    public func stopAdvertising() {
        ledger.stopAdvertising()
        guard isPassing else { return }
        calling { inner.stopAdvertising() }
    }

    public func browse(_ service: ServiceName) {
        checkTraits()
        guard isPassing else { return }
        ledger.browse(service)
        calling { inner.browse(service) }
    }

    public func stopBrowsing() {
        ledger.stopBrowsing()
        guard isPassing else { return }
        calling { inner.stopBrowsing() }
    }

    public func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        checkTraits()
        if let fault { return refuse(dial, fault) }
        guard isPassing else { return }
        ledger.dial(dial)
        watch(dial, timeout)
        calling { inner.dial(address, as: dial, timeout: timeout) }
    }

    public func cancelDial(_ dial: DialID) {
        refusedDials.remove(dial)
        ledger.cancel(dial)
        stopWatching(dial)
        guard isPassing else { return }
        calling { inner.cancelDial(dial) }
    }

    public func diagnose() -> [Diagnosis] {
        if let breach {
            return [Diagnosis("contract", .fail, "\(breach.cause)", advice: breach.advice)]
        }
        return calling { inner.diagnose() }
    }

    public func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) {
        if let fault { return found(.failure(fault)) }
        guard isPassing, let loop = running?.loop else { return }
        let answer = PlacesAnswer(of: address, from: self, on: loop, found)
        openAnswers.append(answer)
        calling { inner.places(behind: address) { answer.receive($0) } }
    }

    public func mayDial(_ address: TransportAddress, introducedBy introducer: TransportAddress?) -> Bool {
        isPassing && calling { inner.mayDial(address, introducedBy: introducer) }
    }

    public func shutdown() {
        let isShut = if case .cutOff = phase { true } else { running == nil }
        cancelTimers()
        refusedDials = []
        openAnswers = []
        for pipe in pipes.values { pipe.abandon() }
        pipes = [:]
        phase = .shutDown
        running = nil
        if !isShut { calling { inner.shutdown() } }
    }
}

// The reports of the wrapped transport, which come through `CheckedEvents`.
extension CheckedTransport {
    /// Checks a report of the wrapped transport, and passes it on if it keeps the contract.
    @inline(__always)
    func relay(
        _ event: String, by transport: any Transport, on loop: any EventLoop,
        _ check: (inout TransportLedger) throws(ContractBreach) -> Void,
        report: (any TransportEvents) -> Void
    ) {
        do throws(ContractBreach) {
            guard try checkMayReport(event, on: loop), let running else { return }
            guard transport === inner else {
                throw ContractBreach(
                    .toldInItsOwnName, "\(event) was reported in the name of another transport")
            }
            try check(&ledger)
            report(running.events)
        } catch {
            handleBreach(error, on: loop)
        }
    }

    func relayDialFailure(
        _ dial: DialID, _ error: NighError, by transport: any Transport, on loop: any EventLoop
    ) {
        relay("dialFailed", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.failed(dial, error)
        } report: { events in
            stopWatching(dial)
            events.dialFailed(dial, error: error, by: self)
        }
    }

    /// Checks the report of an open pipe and passes it on. A pipe that is not passed on is closed.
    func relayPipe(_ pipe: any Pipe, dial: DialID?, by transport: any Transport, on loop: any EventLoop) {
        var isReported = false
        relay("pipeOpened", by: transport, on: loop) { ledger throws(ContractBreach) in
            guard pipes[ObjectIdentifier(pipe)] == nil else {
                throw ContractBreach(.pipeOpenedOnce, "pipeOpened for a pipe that is open already")
            }
            try ledger.opened(dial)
            for address in calling({ [pipe.localAddress, pipe.remoteAddress] }) {
                if let address { try ledger.check(address, "pipeOpened") }
            }
        } report: { events in
            isReported = true
            if let dial { stopWatching(dial) }
            pipeCount += 1
            let checked = CheckedPipe(pipe, number: pipeCount, of: self, on: loop)
            pipes[checked.key] = checked
            events.pipeOpened(checked, dial: dial, by: self)
            checkTraits()
        }
        guard !isReported else { return }
        LoopBound(pipe, on: loop).execute { pipe in self.calling { pipe.close(.now) } }
    }
}
