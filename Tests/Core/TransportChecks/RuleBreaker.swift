import Glibc
import NighCore

/// Behaves like another transport, but breaks one rule of the contract once it is told to misbehave: by itself, or at
/// the next call that gives it the opportunity.
///
/// CoreTests use it around the memory transport, and a plugin around its own transport. So it uses only public
/// interfaces.
final class RuleBreaker: Transport, @unchecked Sendable {
    // Confined to the loop, except for what it reports on a wrong thread.
    let rule: ContractRule?
    private let inner: any Transport
    private var loop: (any EventLoop)?
    private var events: (any TransportEvents)?
    private var misbehaves = false
    private var pipes: [RuleBreakingPipe] = []
    private var seen: Sighting?
    private(set) var isShutDown = false

    /// Called on the loop whenever a pipe has received something.
    var onReceive: ((RuleBreaker) -> Void)?

    var nowhere: TransportAddress { TransportAddress(scheme: inner.scheme, value: "nowhere") }

    init(_ rule: ContractRule?, around inner: any Transport) {
        self.rule = rule
        self.inner = inner
    }

    var scheme: String { rule == .schemeWellFormed ? "\(inner.scheme)!" : inner.scheme }

    var capabilities: TransportCapabilities {
        var capabilities = inner.capabilities
        if rule == .capabilitiesPossible { capabilities.typicalMTU = 0 }
        if rule == .traitsConstant, misbehaves { capabilities.priority += 1 }
        return capabilities
    }

    /// Breaks the rule, if it can be broken without a call from the session.
    func misbehave() {
        guard let rule, let events else { return }
        misbehaves = true
        for pipe in pipes { pipe.misbehave(rule) }
        switch rule {
        case .eventsOnTheLoop: reportOnAnotherThread()
        case .toldInItsOwnName: events.listeningChanged([], by: inner)
        case .addressesCarryTheScheme:
            events.addressKnown(TransportAddress(scheme: "elsewhere", value: "x"), by: self)
        case .errorsCarryTheScheme: events.browsingFailed(NighError(.browsing, .timedOut), by: self)
        case .dialIsKnown: events.dialFailed(DialID(number: .max), error: failure, by: self)
        case .dialEndsOnce, .dialEndsInTime, .dialQuietAfterCancel:
            events.addressKnown(nowhere, by: self)
        case .routeFoundOnce: if let seen { events.routeFound(seen, by: self) }
        case .routeFoundFirst: events.routeLost(nowhere, by: self)
        case .routeOfTheService: reportChange { $0.advertisement.service = "another" }
        case .qualityInRange: reportChange { $0.quality = 1.5 }
        case .pipeOpenedOnce: events.pipeOpened(pipes[0], dial: nil, by: self)
        // Broken at the next opportunity, or from the start.
        case .toldInALaterTurn, .quietAfterShutdown, .schemeWellFormed, .traitsConstant,
            .capabilitiesPossible, .placesToldOnce, .routeWhileBrowsing, .inboundWhileAdvertising,
            .listeningWhileAdvertising:
            break
        // Broken by the pipe.
        case .pipeQuietAfterClose, .pipeClosedIsLast, .pipeEndsOnce, .nothingAfterTheEnd, .noEmptySlices,
            .pipeDrainsOnce, .pausedPipeIsQuiet, .writeTakesAll, .writableWhenTold, .countsWhatItTells,
            .countsWhatItTakes:
            break
        }
    }

    /// Returns once it has reported.
    private func reportOnAnotherThread() {
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let breaker = Unmanaged<RuleBreaker>.fromOpaque(context).takeUnretainedValue()
                breaker.events?.listeningChanged([], by: breaker)
                return nil
            }, Unmanaged.passUnretained(self).toOpaque())
        precondition(status == 0, "no thread could be made: \(status)")
        pthread_join(thread, nil)
    }

    private func breaks(_ rule: ContractRule) -> Bool { misbehaves && self.rule == rule }

    private var failure: NighError { NighError(.connecting, .refused, transport: scheme) }

    private func reportChange(_ change: (inout Sighting) -> Void) {
        guard var sighting = seen else { return }
        change(&sighting)
        events?.routeChanged(sighting, by: self)
    }

    private func later(_ report: @escaping @Sendable (RuleBreaker, any TransportEvents) -> Void) {
        loop?.execute { if let events = self.events { report(self, events) } }
    }

    func start(on loop: any EventLoop, events: any TransportEvents) {
        self.loop = loop
        self.events = events
        inner.start(on: loop, events: self)
    }

    func advertise(_ advertisement: Advertisement) { inner.advertise(advertisement) }

    func updateAdvertisement(_ advertisement: Advertisement) {
        inner.updateAdvertisement(advertisement)
        if breaks(.toldInALaterTurn) { events?.listeningChanged([], by: self) }
    }

    func stopAdvertising() {
        inner.stopAdvertising()
        if breaks(.listeningWhileAdvertising) { later { $1.listeningChanged([$0.nowhere], by: $0) } }
        guard breaks(.inboundWhileAdvertising), let pipe = pipes.first else { return }
        later { [stray = RuleBreakingPipe(around: pipe)] in $1.pipeOpened(stray, dial: nil, by: $0) }
    }

    func browse(_ service: ServiceName) { inner.browse(service) }

    func stopBrowsing() {
        inner.stopBrowsing()
        guard breaks(.routeWhileBrowsing), let seen else { return }
        later { $1.routeFound(seen, by: $0) }
    }

    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        // No event for this dial ever comes.
        if breaks(.dialEndsInTime) || breaks(.dialQuietAfterCancel) { return }
        inner.dial(address, as: dial, timeout: timeout)
    }

    func cancelDial(_ dial: DialID) {
        inner.cancelDial(dial)
        if breaks(.dialQuietAfterCancel) { later { $1.dialFailed(dial, error: $0.failure, by: $0) } }
    }

    func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) {
        found(.success([address]))
        if breaks(.placesToldOnce) { found(.success([address])) }
    }

    func diagnose() -> [Diagnosis] { inner.diagnose() }

    func shutdown() {
        isShutDown = true
        inner.shutdown()
        if breaks(.quietAfterShutdown) { later { $1.listeningChanged([], by: $0) } }
    }
}

extension RuleBreaker: TransportEvents {
    func routeFound(_ sighting: Sighting, by transport: any Transport) {
        seen = sighting
        events?.routeFound(sighting, by: self)
    }

    func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        seen = sighting
        events?.routeChanged(sighting, by: self)
    }

    func routeLost(_ address: TransportAddress, by transport: any Transport) {
        events?.routeLost(address, by: self)
    }

    func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        events?.addressKnown(address, by: self)
    }

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        guard let loop else { return }
        let breaking = RuleBreakingPipe(pipe, on: loop)
        breaking.onReceive = { [unowned self] in onReceive?(self) }
        if misbehaves, let rule { breaking.misbehave(rule) }
        pipes.append(breaking)
        events?.pipeOpened(breaking, dial: dial, by: self)
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        events?.dialFailed(dial, error: error, by: self)
        if breaks(.dialEndsOnce) { events?.dialFailed(dial, error: error, by: self) }
    }

    func advertised(as name: DisplayName, by transport: any Transport) {
        events?.advertised(as: name, by: self)
    }

    func advertisingFailed(_ error: NighError, by transport: any Transport) {
        events?.advertisingFailed(error, by: self)
    }

    func browsingFailed(_ error: NighError, by transport: any Transport) {
        events?.browsingFailed(error, by: self)
    }

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        events?.listeningChanged(addresses, by: self)
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        events?.transportChanged(condition, by: self)
    }
}

/// A pipe of a `RuleBreaker`.
final class RuleBreakingPipe: Pipe, PipeHandler, @unchecked Sendable {
    // Confined to the loop, except for what it reports on a wrong thread.
    private let inner: any Pipe
    private let loop: any EventLoop
    private var handler: (any PipeHandler)?
    private var rule: ContractRule?
    private var isClosed = false
    var onReceive: (() -> Void)?

    init(_ inner: any Pipe, on loop: any EventLoop) {
        self.inner = inner
        self.loop = loop
    }

    /// A pipe that was never opened, beside one that was.
    convenience init(around other: RuleBreakingPipe) { self.init(other.inner, on: other.loop) }

    var localAddress: TransportAddress? { inner.localAddress }
    var remoteAddress: TransportAddress? { inner.remoteAddress }
    var writableBytes: Int { rule == .writableWhenTold ? 0 : inner.writableBytes }

    var counters: PipeCounters {
        var counters = inner.counters
        if rule == .countsWhatItTells { counters.bytesReceived -= 1 }
        if rule == .countsWhatItTakes { counters.bytesWritten += 7 }
        return counters
    }

    func misbehave(_ rule: ContractRule) {
        self.rule = rule
        switch rule {
        case .noEmptySlices: handler?.pipe(self, received: ByteSlice([]))
        case .writableWhenTold: handler?.pipeBecameWritable(self)
        case .pipeDrainsOnce: handler?.pipeDrained(self)
        case .pipeEndsOnce:
            let receiver = handler
            receiver?.pipeEnded(self)
            receiver?.pipeEnded(self)
        case .nothingAfterTheEnd:
            let receiver = handler
            receiver?.pipeEnded(self)
            receiver?.pipe(self, received: ByteSlice([1]))
        case .pipeClosedIsLast:
            let receiver = handler
            receiver?.pipeClosed(self, error: nil)
            receiver?.pipeEnded(self)
        default: break
        }
    }

    func start(handler: any PipeHandler) {
        self.handler = handler
        inner.start(handler: self)
    }

    func write(_ queue: inout ByteQueue) {
        guard rule == .writeTakesAll, queue.byteCount > 1 else { return inner.write(&queue) }
        var taken = ByteQueue()
        while queue.byteCount > 1, let slice = queue.popFirst(atMost: queue.byteCount - 1) {
            taken.append(slice)
        }
        inner.write(&taken)
    }

    func pauseReading() { if rule != .pausedPipeIsQuiet { inner.pauseReading() } }

    func resumeReading() { inner.resumeReading() }

    func close(_ mode: PipeCloseMode) {
        inner.close(mode)
        guard rule == .pipeQuietAfterClose else {
            if mode == .now, !isClosed { handler = nil }
            isClosed = true
            return
        }
        loop.execute {
            self.handler?.pipeClosed(self, error: nil)
            self.handler = nil
        }
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        handler?.pipe(self, received: bytes)
        onReceive?()
    }

    func pipeBecameWritable(_ pipe: any Pipe) { handler?.pipeBecameWritable(self) }
    func pipeEnded(_ pipe: any Pipe) { handler?.pipeEnded(self) }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        let receiver = handler
        handler = nil
        receiver?.pipeClosed(self, error: error)
    }

    func pipeDrained(_ pipe: any Pipe) {
        let receiver = handler
        handler = nil
        receiver?.pipeDrained(self)
    }
}
