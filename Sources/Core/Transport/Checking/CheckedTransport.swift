/// A transport around another one that holds it to its contract while it is used. A broken rule is named, and is the end of the
/// transport: a plugin that does what it must not cannot take a session down with it, nor do so unseen.
///
/// What it can look at is in ``ContractRule``. Everything is passed on both ways, until the first rule is broken. Then the
/// wrapped transport is cut off: from that moment nothing passes either way; in a later turn it is shut down, and whoever uses
/// this one is told that its routes are lost, that it is down (`transportChanged`, with a ``NighError`` of the cause
/// `contractBroken`), that its dials have failed and its pipes are closed. Calls made later are ignored; a dial fails with the
/// same error.
///
/// A session puts one around each of its transports where `SessionConfiguration.checksTransports` says so. It keeps the contract
/// itself, and allocates nothing for a message. That no call blocks it does not look at: time on a wall lies on a busy machine.
///
/// All state is confined to the loop from `start` on but for the first broken rule, which is guarded, since a transport that breaks
/// its contract may call on any thread; hence `@unchecked Sendable`.
public final class CheckedTransport: @unchecked Sendable {
    /// How long after its timeout a dial must have ended: loop time, counted from when the loop has seen to the timeout.
    public static let dialSlack = Duration.seconds(5)

    private enum Phase {
        case idle
        case passing
        /// A rule was broken in this turn; what that leads to follows in a later one.
        case broken(NighError)
        /// The wrapped transport has been shut down for what it did.
        case cutOff(NighError)
        case shutDown
    }

    private struct Running {
        let loop: any EventLoop
        let events: any TransportEvents
    }

    /// That of the wrapped transport when it was wrapped.
    public let scheme: String
    /// Those of the wrapped transport when it was wrapped.
    public let capabilities: TransportCapabilities

    let inner: any Transport
    private let firstBreach = Guarded<NighError?>(nil)
    private var phase = Phase.idle
    private var running: Running?
    private(set) var ledger: TransportLedger
    private var dialTimers: [DialID: LoopTimer] = [:]
    /// Dials made after the transport was cut off, whose failure has not been told yet.
    private var refusedDials: Set<DialID> = []
    private var pipes: [ObjectIdentifier: CheckedPipe] = [:]
    private var pipeCount = 0
    private var callDepth = CallDepth()

    /// Holds `inner` to its contract from `start` on; it is this one's from here, and nobody else may call it.
    public init(_ inner: any Transport) {
        self.inner = inner
        scheme = inner.scheme
        capabilities = inner.capabilities
        ledger = TransportLedger(scheme: scheme)
    }

    /// Checks `inner` together with other transports on the same loop. All that share a `callDepth` count their calls in it.
    package convenience init(_ inner: any Transport, callDepth: CallDepth) {
        self.init(inner)
        self.callDepth = callDepth
    }

    /// The first rule that was broken, as the program was told; nil as long as all is well. Callable anywhere. After `shutdown`
    /// nobody is told any more, and what is broken then is to be seen here alone.
    public var breach: NighError? { firstBreach.withLock { $0 } }

    /// The wrapped transport's pipe inside a checked pipe. Any other pipe is returned as it is.
    package static func pipe(inside pipe: any Pipe) -> any Pipe { (pipe as? CheckedPipe)?.inner ?? pipe }

    // MARK: For this transport's parts

    /// Whether what the wrapped transport does is believed.
    var isPassing: Bool { if case .passing = phase { true } else { false } }

    /// Runs a call of the session's, in which nothing may be told.
    @inline(__always)
    func calling<Result>(_ call: () -> Result) -> Result {
        callDepth.count &+= 1
        defer { callDepth.count &-= 1 }
        return call()
    }

    /// Checks all that has to hold whatever is told. False where it is to be ignored: the transport was cut off before.
    func mayTell(
        _ word: String, on loop: any EventLoop, alsoInsideCalls: Bool = false
    ) throws(ContractBreach) -> Bool {
        guard loop.isCurrent else {
            throw ContractBreach(.eventsOnTheLoop, "\(word) was told on another thread")
        }
        guard isBelieved else { return false }
        guard callDepth.count == 0 || alsoInsideCalls else {
            throw ContractBreach(.toldInALaterTurn, "\(word) was told from inside a call")
        }
        guard isPassing else {
            throw ContractBreach(.quietAfterShutdown, "\(word) was told after shutdown")
        }
        return true
    }

    /// Whether what the wrapped transport tells is listened to: also after its shutdown, when there should be nothing.
    private var isBelieved: Bool {
        switch phase {
        case .passing, .shutDown: true
        case .idle, .broken, .cutOff: false
        }
    }

    /// A rule is broken. Callable on any thread; only the first counts.
    func broke(_ breach: ContractBreach, on loop: any EventLoop) {
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

    /// The pipe is over, one way or the other.
    func forget(_ pipe: CheckedPipe) { pipes[pipe.key] = nil }

    // MARK: Cutting off

    /// Nothing more of the wrapped transport is believed: it is shut down, and what the session had of it is over.
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
        for pipe in open { if self.running != nil { pipe.tellCutOff(error) } }
    }

    /// What is to be told next; nothing once the session has shut this transport down, which it may do at any telling.
    private func next<Item>(_ take: (inout TransportLedger) -> Item?) -> Item? {
        running == nil ? nil : take(&ledger)
    }

    private func cancelTimers() {
        for timer in dialTimers.values { running?.loop.cancel(timer) }
        dialTimers = [:]
    }

    /// The error that all calls fail with now; nil while they are passed on.
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

    /// A loop that was held up may come to the timeout late, and so may the transport: what it may take longer is counted from
    /// when the loop got there. Work that the transport has queued by then has its turn first.
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
        broke(
            ContractBreach(
                .dialEndsInTime,
                "dial \(dial.number) had \(Moment.Span(timeout)), and its outcome was not told \(Self.dialSlack) later"
            ), on: loop)
    }

    private func stopWatching(_ dial: DialID) {
        if let timer = dialTimers.removeValue(forKey: dial) { running?.loop.cancel(timer) }
    }

    // MARK: What does not change

    /// Whether the transport still is what it was; that is looked at now and then.
    private func checkTraits() {
        guard isPassing, let loop = running?.loop else { return }
        let (scheme, capabilities) = calling { (inner.scheme, inner.capabilities) }
        guard scheme == self.scheme else {
            return broke(
                ContractBreach(.traitsConstant, "the scheme \"\(self.scheme)\" became \"\(scheme)\""),
                on: loop)
        }
        guard capabilities == self.capabilities else {
            return broke(
                ContractBreach(.traitsConstant, "the capabilities became \(capabilities)"), on: loop)
        }
    }

    private func checkWhatItIs(on loop: any EventLoop) {
        guard TransportSpec.isScheme(scheme) else {
            return broke(ContractBreach(.schemeWellFormed, "the scheme is \"\(scheme)\""), on: loop)
        }
        guard capabilities.typicalMTU > 0, capabilities.typicalLatency > .zero,
            capabilities.expectedConnectTime > .zero
        else {
            return broke(
                ContractBreach(.capabilitiesPossible, "the capabilities are \(capabilities)"), on: loop)
        }
    }
}

// What these do stands with the protocol.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension CheckedTransport: Transport {
    public func start(on loop: any EventLoop, events: any TransportEvents) {
        loop.checkIsolated()
        precondition(running == nil, "a transport was started twice")
        running = Running(loop: loop, events: events)
        phase = .passing
        calling { inner.start(on: loop, events: CheckedEvents(of: self, on: loop)) }
        checkWhatItIs(on: loop)
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
        calling { inner.places(behind: address) { answer.came($0) } }
    }

    public func shutdown() {
        let isShut = if case .cutOff = phase { true } else { running == nil }
        cancelTimers()
        refusedDials = []
        for pipe in pipes.values { pipe.abandon() }
        pipes = [:]
        phase = .shutDown
        running = nil
        if !isShut { calling { inner.shutdown() } }
    }
}

// What the wrapped transport tells, by way of `CheckedEvents`.
extension CheckedTransport {
    /// Checks what is told, and tells it if it is in order.
    @inline(__always)
    func hear(
        _ word: String, by transport: any Transport, on loop: any EventLoop,
        _ check: (inout TransportLedger) throws(ContractBreach) -> Void,
        tell: (any TransportEvents) -> Void
    ) {
        do throws(ContractBreach) {
            guard try mayTell(word, on: loop), let running else { return }
            guard transport === inner else {
                throw ContractBreach(.toldInItsOwnName, "\(word) was told in the name of another transport")
            }
            try check(&ledger)
            tell(running.events)
        } catch {
            broke(error, on: loop)
        }
    }

    func hearFailure(of dial: DialID, _ error: NighError, by transport: any Transport, on loop: any EventLoop)
    {
        hear("dialFailed", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.failed(dial, error)
        } tell: { events in
            stopWatching(dial)
            events.dialFailed(dial, error: error, by: self)
        }
    }

    /// A pipe that nobody is told of is closed.
    func hear(_ pipe: any Pipe, dial: DialID?, by transport: any Transport, on loop: any EventLoop) {
        var isTold = false
        hear("pipeOpened", by: transport, on: loop) { ledger throws(ContractBreach) in
            guard pipes[ObjectIdentifier(pipe)] == nil else {
                throw ContractBreach(.pipeOpenedOnce, "pipeOpened for a pipe that is open already")
            }
            try ledger.opened(dial)
            for address in calling({ [pipe.localAddress, pipe.remoteAddress] }) {
                if let address { try ledger.check(address, "pipeOpened") }
            }
        } tell: { events in
            isTold = true
            if let dial { stopWatching(dial) }
            pipeCount += 1
            let checked = CheckedPipe(pipe, number: pipeCount, of: self, on: loop)
            pipes[checked.key] = checked
            events.pipeOpened(checked, dial: dial, by: self)
            checkTraits()
        }
        guard !isTold else { return }
        let stray = Stray(pipe: pipe)
        loop.execute { self.calling { stray.pipe.close(.now) } }
    }

    /// `@unchecked Sendable`: only carries the pipe to the loop it belongs to.
    private struct Stray: @unchecked Sendable {
        let pipe: any Pipe
    }
}
