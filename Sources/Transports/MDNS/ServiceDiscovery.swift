import NighCore
import NighUV

/// Receives the events of a `ServiceDiscovery`. All calls come on its loop, never from inside a call to it.
public protocol ServiceDiscoveryEvents: AnyObject {
    /// A service was found, or has changed.
    func serviceFoundOrChanged(_ service: DiscoveredService)
    /// A service that was found is gone from that interface.
    func serviceLost(_ key: DiscoveredService.Key)
    /// The service is visible to others under this name, which is another than the wanted one if that was taken.
    func published(as name: String)
    /// Nothing is published, for this reason. The attempt is repeated automatically.
    func publishingFailed(_ error: NighError)
    /// Services are not found, or not all of them, for this reason. The attempt is repeated automatically.
    func browsingFailed(_ error: NighError)
    /// The way in which services can be found and published has changed, or there is none now.
    func discoveryChanged(_ condition: DiscoveryCondition)
}

/// Publishes a service on the local network and finds services of others, by DNS-SD over mDNS, as printers do.
///
/// A transport has one, calls it on the loop only, and ends it with `shutdown`. One that is only released ends by
/// itself, soon after. It uses the machine's avahi-daemon or speaks mDNS itself, as the mode says, and reports which.
/// It knows nothing of sessions, of peers, and of the meaning of a service's text.
public final class ServiceDiscovery {
    /// Which program speaks mDNS.
    public enum Mode: String, Hashable, Sendable, CaseIterable {
        /// The daemon if it answers; while it does not, this process.
        case automatic
        /// The daemon only. Until it answers, nothing is found or published.
        case daemon
        /// This process only.
        case embedded
    }

    /// How long the daemon has to answer before this process speaks mDNS itself.
    static let daemonTimeout = Moment.Span.milliseconds(400)

    /// The dependencies of a `ServiceDiscovery`. Tests provide substitutes.
    struct Dependencies {
        var loop: any EventLoop
        var loopback: Int32
        var daemon: () -> any DiscoveryBackend
        var embedded: () -> any DiscoveryBackend
        var names: (any NameQuerying)?
        var makeCheck: (@escaping (MulticastVerdict) -> Void) -> (any MulticastChecking)?
    }

    private let mode: Mode
    private let dependencies: Dependencies
    private var loop: any EventLoop { dependencies.loop }
    private weak var events: (any ServiceDiscoveryEvents)?
    private let directory: ServiceDirectory
    private let publisher: ServicePublisher
    private var daemon: (any DiscoveryBackend)?
    private var embedded: (any DiscoveryBackend)?
    private var current: (any DiscoveryBackend)?
    private var host: DomainName?
    private var problems: [DiscoveryCondition.Provider: NighError] = [:]
    private var daemonTimer: LoopTimer?
    private var check: (any MulticastChecking)?
    private var blocked: NighError?
    private var reportedCondition: DiscoveryCondition?
    private var search: UInt64 = 0
    private var isBrowsing = false
    private var isStarted = false
    private var isShutDown = false

    /// Creates a discovery, which starts with the first call of `publish` or `browse`. `interface` is the name of the
    /// only network interface to use; nil means all.
    public convenience init(
        mode: Mode = .automatic, interface: String? = nil, on loop: UVEventLoop,
        events: any ServiceDiscoveryEvents
    ) {
        let dependencies = Dependencies(
            loop: loop, loopback: NetworkInterface.loopbackIndex,
            daemon: { AvahiDaemon(on: loop, interface: interface) },
            embedded: { AvahiEmbedded(on: loop, interface: interface) },
            names: NameQuery(on: loop, interface: interface),
            makeCheck: { MulticastCheck(on: loop, interface: interface, report: $0) })
        self.init(mode: mode, dependencies: dependencies, events: events)
    }

    init(mode: Mode, dependencies: Dependencies, events: any ServiceDiscoveryEvents) {
        self.mode = mode
        self.dependencies = dependencies
        self.events = events
        var last: UInt64 = 0
        let number = {
            last += 1
            return last
        }
        directory = ServiceDirectory(on: dependencies.loop, loopback: dependencies.loopback, number: number)
        publisher = ServicePublisher(on: dependencies.loop, names: dependencies.names, number: number)
        connect()
    }

    private func connect() {
        let (directory, publisher) = (directory, publisher)
        directory.isOwn = { [unowned publisher] in publisher.isOwn($0) }
        directory.found = { [weak self] service in self?.notifyBrowser { $0.serviceFoundOrChanged(service) } }
        directory.lost = { [weak self] key in self?.notifyBrowser { $0.serviceLost(key) } }
        directory.failed = { [weak self] error in self?.notifyBrowser { $0.browsingFailed(error) } }
        publisher.published = { [weak self] name in self?.notifyPublisher { $0.published(as: name) } }
        publisher.failed = { [weak self] error in self?.notifyPublisher { $0.publishingFailed(error) } }
    }

    /// Avahi holds the addresses of the objects that it calls back. So a discovery that is released without `shutdown`
    /// first takes down its parts. If the loop has ended, nothing is called back any more.
    deinit {
        guard isStarted, !isShutDown else { return }
        LoopBound(Parts(of: self), on: dependencies.loop).execute { $0.end() }
    }

    /// The parts that must be taken down, in this order.
    private struct Parts {
        let check: (any MulticastChecking)?
        let directory: ServiceDirectory
        let publisher: ServicePublisher
        let backends: [any DiscoveryBackend]

        init(of discovery: ServiceDiscovery) {
            check = discovery.check
            directory = discovery.directory
            publisher = discovery.publisher
            backends = [discovery.daemon, discovery.embedded].compactMap(\.self)
        }

        func end() {
            check?.shutdown()
            // The backends end the queries and publications themselves.
            directory.backendWentDown()
            publisher.backendWentDown()
            directory.stop()
            publisher.unpublish()
            for backend in backends { backend.shutdown() }
        }
    }

    // MARK: Calls by the transport

    /// Publishes a service. Called again, it replaces the publication; if only the text differs, the service stays
    /// visible.
    public func publish(_ registration: ServiceRegistration) {
        let isNew = publisher.registration == nil
        let problem = currentProblem
        publisher.publish(registration)
        begin()
        if isNew, let problem { notifyPublisher { $0.publishingFailed(problem.at(.advertising)) } }
        check?.begin()
    }

    /// Stops publishing.
    public func unpublish() { publisher.unpublish() }

    /// Looks for services of `type`, including this side's own, until `stopBrowsing`. Called again, it replaces the
    /// search.
    public func browse(_ type: ServiceType) {
        let problem = currentProblem
        search += 1
        isBrowsing = true
        directory.stop()
        directory.browse(type.domain)
        begin()
        if let problem { notifyBrowser { $0.browsingFailed(problem.at(.browsing)) } }
        check?.begin()
    }

    /// Stops looking. All found services count as lost from now on, without an event.
    public func stopBrowsing() {
        search += 1
        isBrowsing = false
        directory.stop()
    }

    /// Must be called when interfaces or addresses of this host have changed.
    public func addressesChanged() {
        daemon?.addressesChanged()
        embedded?.addressesChanged()
        check?.begin()
    }

    /// The name of this machine on the local network, such as `puma.local`; nil while that is not known.
    package var hostName: String? { host?.description }

    /// Reports the state of discovery on this machine, for people.
    public func diagnose() -> [Diagnosis] {
        var lines: [Diagnosis] = []
        if let check, isStarted { lines += check.diagnose() }
        if let daemon { lines.append(line(of: daemon)) }
        if let embedded { lines.append(embedded.diagnose()) }
        if let wanted = publisher.registration {
            if let name = publisher.visibleName {
                let finding = "published as \"\(name)\" (\(wanted.type), port \(wanted.port))"
                lines.append(Diagnosis("own service", .pass, finding))
            } else {
                lines.append(
                    Diagnosis(
                        "own service", .warn, "not published yet",
                        advice: "the lines above say why", isPending: currentProblem == nil)
                )
            }
        }
        if isBrowsing {
            let counters = directory.counters
            let left = counters.malformed + counters.beyondLimit
            lines.append(
                Diagnosis(
                    "services seen", left == 0 ? .pass : .warn,
                    "\(directory.count), left out: \(counters.malformed) records malformed, "
                        + "\(counters.beyondLimit) beyond a limit"))
        }
        return lines
    }

    private func line(of daemon: any DiscoveryBackend) -> Diagnosis {
        var line = daemon.diagnose()
        // Until it is decided which program speaks mDNS, the daemon may still answer.
        line.isPending = current == nil && (mode == .daemon ? problems[.daemon] == nil : embedded == nil)
        guard mode == .automatic, current?.kind == .embedded else { return line }
        // If everything works without the daemon, that is not a failure.
        line.verdict = .pass
        line.finding += ": this program speaks mDNS itself"
        line.advice = "nothing needs to be done; " + AvahiProblem.sharingAdvice
        return line
    }

    /// Ends everything at once, and sends goodbyes to the network. No event comes afterwards.
    public func shutdown() {
        guard !isShutDown else { return }
        isShutDown = true
        events = nil
        if let daemonTimer { loop.cancel(daemonTimer) }
        Parts(of: self).end()
        current = nil
    }

    // MARK: Reporting

    private func notify(_ event: @escaping @Sendable (any ServiceDiscoveryEvents) -> Void) {
        loop.later {
            guard !self.isShutDown, let events = self.events else { return }
            event(events)
        }
    }

    private func notifyBrowser(_ event: @escaping @Sendable (any ServiceDiscoveryEvents) -> Void) {
        let search = search
        loop.later {
            guard !self.isShutDown, search == self.search, let events = self.events else { return }
            event(events)
        }
    }

    private func notifyPublisher(_ event: @escaping @Sendable (any ServiceDiscoveryEvents) -> Void) {
        guard let registration = publisher.registration else { return }
        loop.later {
            // An event about another name would mislead; an event about another text is still true.
            guard !self.isShutDown, self.publisher.registration?.name == registration.name,
                let events = self.events
            else { return }
            event(events)
        }
    }

    /// The problem that was reported last and still exists.
    private var currentProblem: NighError? {
        if case .down(let error) = reportedCondition { error } else { nil }
    }

    private func conditionChanged() {
        let condition: DiscoveryCondition? =
            if let blocked {
                .down(blocked)
            } else if let current {
                .up(current.kind)
            } else if mode == .automatic, let daemon = problems[.daemon], let own = problems[.embedded] {
                .down(NighError(.starting, .allFailed, advice: own.advice, attempts: [daemon, own]))
            } else if mode != .automatic {
                problems[mode == .daemon ? .daemon : .embedded].map(DiscoveryCondition.down)
            } else {
                nil
            }
        guard let condition, condition != reportedCondition else { return }
        reportedCondition = condition
        notify { $0.discoveryChanged(condition) }
        guard case .down(let error) = condition else { return }
        if isBrowsing { notifyBrowser { $0.browsingFailed(error.at(.browsing)) } }
        if publisher.registration != nil { notifyPublisher { $0.publishingFailed(error.at(.advertising)) } }
    }

    // MARK: Choosing a backend

    private func begin() {
        guard !isStarted else { return }
        isStarted = true
        check = dependencies.makeCheck { [weak self] in self?.checked($0) }
        guard mode != .embedded else { return startEmbedded() }
        let daemon = dependencies.daemon()
        self.daemon = daemon
        if mode == .automatic {
            daemonTimer = loop.schedule(at: loop.now + Self.daemonTimeout) {
                self.daemonTimer = nil
                if self.current == nil { self.startEmbedded() }
            }
        }
        daemon.start(self)
    }

    private func startEmbedded() {
        guard embedded == nil else { return }
        let embedded = dependencies.embedded()
        self.embedded = embedded
        embedded.start(self)
    }

    private func use(_ backend: any DiscoveryBackend, host: DomainName) {
        current = backend
        self.host = host
        // The publisher comes first, so that the old backend can still say goodbye for the publication that is
        // withdrawn from it.
        publisher.use(backend, host: host)
        directory.use(backend)
        if backend === daemon, let embedded {
            self.embedded = nil
            problems[.embedded] = nil
            embedded.shutdown()
        }
        conditionChanged()
    }

    private func checked(_ verdict: MulticastVerdict) {
        let wasBlocked = blocked != nil
        blocked = if case .blocked(let error) = verdict { error } else { nil }
        if wasBlocked, blocked == nil, let current, let host {
            // Questions and announcements sent while multicast was blocked are lost, and mDNS repeats itself less and
            // less often.
            publisher.use(current, host: host)
            directory.use(current)
        }
        conditionChanged()
    }
}

extension ServiceDiscovery: DiscoveryBackendEvents {
    package func backendUp(_ backend: any DiscoveryBackend, host: DomainName) {
        guard !isShutDown else { return }
        problems[backend.kind] = nil
        if backend === daemon, let daemonTimer {
            loop.cancel(daemonTimer)
            self.daemonTimer = nil
        }
        use(backend, host: host)
    }

    package func backendDown(_ backend: any DiscoveryBackend, _ error: NighError) {
        guard !isShutDown else { return }
        problems[backend.kind] = error
        if backend === current {
            current = nil
            publisher.backendWentDown()
            directory.backendWentDown()
        }
        if mode == .automatic, backend === daemon, current == nil { startEmbedded() }
        conditionChanged()
    }

    package func watchChanged(_ backend: any DiscoveryBackend, _ number: UInt64, _ change: RecordChange) {
        guard backend === current else { return }
        directory.watchChanged(number, change)
        publisher.watchChanged(number, change)
    }

    package func watchFailed(_ backend: any DiscoveryBackend, _ number: UInt64, _ error: NighError) {
        guard backend === current else { return }
        directory.watchFailed(number, error)
    }

    package func publicationSucceeded(_ backend: any DiscoveryBackend) {
        if backend === current { publisher.publicationSucceeded() }
    }

    package func publicationCollided(_ backend: any DiscoveryBackend) {
        if backend === current { publisher.publicationCollided() }
    }

    package func publicationFailed(_ backend: any DiscoveryBackend, _ error: NighError) {
        if backend === current { publisher.publicationFailed(error) }
    }
}

extension NighError {
    /// Returns the error with another stage.
    fileprivate func at(_ stage: Stage) -> NighError {
        var error = self
        error.stage = stage
        return error
    }
}
