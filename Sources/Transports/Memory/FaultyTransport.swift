import NighCore

/// Adds faults to any transport, for tests and for trying how a program behaves on a bad line.
///
/// It passes everything on to the transport that it wraps, and has the same scheme and capabilities. It adds the faults
/// of its ``FaultPlan`` and its ``FaultControl`` to dials, to the bytes of pipes and to their datagrams. Discovery
/// stays as it is. Faults are added at this end only: wrap both ends to have them at both.
///
/// Bytes that are held back count as waiting. From 1 MiB of them on, a direction counts as backed up; with a `rate`,
/// from half a second's worth on (4 to 256 KiB). Packets never count as waiting: one that is held for too long, or
/// while bytes are stalled or blocked, is lost.
public final class FaultyTransport: @unchecked Sendable {
    /// Changes the faults while the transport runs.
    public let control: FaultControl

    /// The capabilities of the wrapped transport, which do not reflect the faults.
    public var capabilities: TransportCapabilities { inner.capabilities }

    private struct Dial {
        let address: TransportAddress
        let deadline: Moment
        /// Set while the dial is held here and not in the wrapped transport.
        var timer: LoopTimer?
    }

    private let inner: any Transport
    private var loop: (any EventLoop)?
    private var events: (any TransportEvents)?
    private var dials: [DialID: Dial] = [:]

    /// Creates a transport that adds the faults of `plan` to `inner`.
    public init(_ inner: any Transport, plan: FaultPlan = .none) {
        self.inner = inner
        control = FaultControl(plan: plan)
    }

    /// Returns an entry like `entry` whose transports all have the faults of `plan`.
    public static func registryEntry(
        wrapping entry: TransportRegistry.Entry, plan: FaultPlan
    ) -> TransportRegistry.Entry {
        TransportRegistry.Entry(
            scheme: entry.scheme, summary: "\(entry.summary), with faults", options: entry.options,
            needsOptions: entry.needsOptions,
            make: { spec throws(NighError) in FaultyTransport(try entry.make(spec), plan: plan) })
    }

    private func begin(_ dial: DialID) {
        guard let loop, let record = dials[dial] else { return }
        let left = record.deadline - loop.now
        guard left > .zero else { return fail(dial, .timedOut) }
        dials[dial]?.timer = nil
        inner.dial(record.address, as: dial, timeout: left.duration)
    }

    private func hold(_ dial: DialID, until moment: Moment, _ then: @escaping @Sendable () -> Void) {
        dials[dial]?.timer = loop?.schedule(at: moment, then)
    }

    private func fail(_ dial: DialID, _ cause: NighError.Cause) {
        guard let events, dials.removeValue(forKey: dial) != nil else { return }
        let error = NighError(.connecting, cause, transport: scheme, advice: "this fault was requested")
        events.dialFailed(dial, error: error, by: self)
    }

    private func adopt(_ pipe: any Pipe, _ dial: DialID?) {
        guard let loop, let events else { return pipe.close(.now) }
        let record = dial.flatMap { dials[$0] }
        let wrapped = control.wrap(pipe, isInbound: dial == nil, scheme: scheme, on: loop)
        switch control.blockedDials(to: record?.address ?? pipe.remoteAddress) {
        case .timeOut:
            wrapped.orphan()
            if let dial, let record { hold(dial, until: record.deadline) { self.fail(dial, .timedOut) } }
        case .refuse:
            wrapped.abandon()
            if let dial { fail(dial, .refused) }
        case nil:
            if let dial { dials[dial] = nil }
            events.pipeOpened(wrapped, dial: dial, by: self)
        }
    }
}

// The protocol documents these members.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension FaultyTransport: Transport {
    public var scheme: String { inner.scheme }

    public func prepare(for peer: PeerID, of identity: PeerID) { inner.prepare(for: peer, of: identity) }

    public func start(on loop: any EventLoop, events: any TransportEvents) {
        self.loop = loop
        self.events = events
        control.loop = loop
        inner.start(on: loop, events: Listener(owner: self))
    }

    public func advertise(_ advertisement: Advertisement) { inner.advertise(advertisement) }

    public func updateAdvertisement(_ advertisement: Advertisement) {
        inner.updateAdvertisement(advertisement)
    }

    public func stopAdvertising() { inner.stopAdvertising() }

    public func browse(_ service: ServiceName) { inner.browse(service) }

    public func stopBrowsing() { inner.stopBrowsing() }

    public func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        guard let loop else { return }
        let now = loop.now
        let deadline = now + Moment.Span(timeout)
        dials[dial] = Dial(address: address, deadline: deadline)
        let start = min(now + Moment.Span(control.plan.dialDelay), deadline)
        let blocked = control.blockedDials(to: address)
        if blocked == .refuse || (blocked == nil && control.happens(control.plan.refuse)) {
            hold(dial, until: start) { self.fail(dial, .refused) }
        } else if blocked == .timeOut || control.happens(control.plan.hang) {
            hold(dial, until: deadline) { self.fail(dial, .timedOut) }
        } else if start > now {
            hold(dial, until: start) { self.begin(dial) }
        } else {
            inner.dial(address, as: dial, timeout: timeout)
        }
    }

    public func cancelDial(_ dial: DialID) {
        guard let record = dials.removeValue(forKey: dial) else { return }
        if let timer = record.timer { loop?.cancel(timer) } else { inner.cancelDial(dial) }
    }

    public func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) { inner.places(behind: address, found: found) }

    public func mayDial(_ address: TransportAddress, introducedBy introducer: TransportAddress?) -> Bool {
        inner.mayDial(address, introducedBy: introducer)
    }

    public func diagnose() -> [Diagnosis] {
        let plan = control.plan == .none ? "none planned" : "\(control.plan)"
        return inner.diagnose() + [Diagnosis("faults", .warn, plan, advice: "leave out the faults")]
    }

    public func shutdown() {
        events = nil
        for dial in dials.values { if let timer = dial.timer { loop?.cancel(timer) } }
        dials = [:]
        control.abandonAll()
        inner.shutdown()
        control.loop = nil
    }
}

extension FaultyTransport {
    /// Receives the events of the wrapped transport and passes them on as this transport's. The reference cycle ends
    /// when the wrapped transport shuts down.
    private final class Listener: TransportEvents {
        private let owner: FaultyTransport

        init(owner: FaultyTransport) { self.owner = owner }

        func routeFound(_ sighting: Sighting, by transport: any Transport) {
            owner.events?.routeFound(sighting, by: owner)
        }

        func routeChanged(_ sighting: Sighting, by transport: any Transport) {
            owner.events?.routeChanged(sighting, by: owner)
        }

        func routeLost(_ address: TransportAddress, by transport: any Transport) {
            owner.events?.routeLost(address, by: owner)
        }

        func addressKnown(_ address: TransportAddress, by transport: any Transport) {
            owner.events?.addressKnown(address, by: owner)
        }

        func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
            owner.adopt(pipe, dial)
        }

        func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
            owner.control.lastError = error
            guard owner.dials.removeValue(forKey: dial) != nil else { return }
            owner.events?.dialFailed(dial, error: error, by: owner)
        }

        func advertisingFailed(_ error: NighError, by transport: any Transport) {
            owner.control.lastError = error
            owner.events?.advertisingFailed(error, by: owner)
        }

        func browsingFailed(_ error: NighError, by transport: any Transport) {
            owner.control.lastError = error
            owner.events?.browsingFailed(error, by: owner)
        }

        func advertised(as name: DisplayName, by transport: any Transport) {
            owner.events?.advertised(as: name, by: owner)
        }

        func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
            owner.events?.listeningChanged(addresses, by: owner)
        }

        func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
            if case .down(let error) = condition { owner.control.lastError = error }
            owner.events?.transportChanged(condition, by: owner)
        }
    }
}
