import NighCore
import NighUV

/// Who a `ServiceDiscovery` tells. All calls come on its loop, never from inside a call to it.
public protocol ServiceDiscoveryEvents: AnyObject {
    /// A service was found, or says something else now.
    func serviceFoundOrChanged(_ service: DiscoveredService)
    /// A service found before is gone from that interface.
    func serviceLost(_ key: DiscoveredService.Key)
    /// What was to be published can be seen by others, under this name: another than wanted where somebody had that.
    func published(as name: String)
    /// Nothing is published, for this reason; tried again by itself.
    func publishingFailed(_ error: NighError)
    /// Services are not found, or not all of them, for this reason; tried again by itself.
    func browsingFailed(_ error: NighError)
    /// Services can be found and published now, otherwise than before, or not at all.
    func discoveryChanged(_ condition: DiscoveryCondition)
}

/// Lets others find a service on the local network, and finds theirs: DNS-SD over mDNS, as on any network with printers.
///
/// A transport has one, calls it on the loop only, and ends it with `shutdown`; one that is just let go of ends by itself, soon. It asks the avahi-daemon of the machine, or speaks mDNS itself, as the
/// mode says, and says which. Nothing here knows sessions, peers or what the text of a service means.
///
/// `@unchecked Sendable`: confined to the loop.
public final class ServiceDiscovery: @unchecked Sendable {
    /// Who is to speak mDNS.
    public enum Mode: String, Hashable, Sendable, CaseIterable {
        /// The daemon where it answers, and while it does not, this process.
        case automatic
        /// The daemon, which is waited for.
        case daemon
        /// This process.
        case embedded
    }

    /// How long the daemon has to answer before this process begins by itself.
    static let daemonPatience = Moment.Span.milliseconds(400)

    /// What a `ServiceDiscovery` stands on. Tests put something else below it.
    struct Ground {
        var loop: any EventLoop
        var loopback: Int32
        var daemon: () -> any DiscoveryBackend
        var embedded: () -> any DiscoveryBackend
        var asking: (any NameAsking)?
        var makeCheck: (@escaping (MulticastVerdict) -> Void) -> (any MulticastChecking)?
    }

    private let mode: Mode
    private let ground: Ground
    private var loop: any EventLoop { ground.loop }
    private weak var events: (any ServiceDiscoveryEvents)?
    private let directory: ServiceDirectory
    private let publisher: ServicePublisher
    private var daemon: (any DiscoveryBackend)?
    private var embedded: (any DiscoveryBackend)?
    private var current: (any DiscoveryBackend)?
    private var host: DomainName?
    private var problems: [DiscoveryCondition.Way: NighError] = [:]
    private var daemonTimer: LoopTimer?
    private var check: (any MulticastChecking)?
    private var blocked: NighError?
    private var toldCondition: DiscoveryCondition?
    private var search: UInt64 = 0
    private var isBrowsing = false
    private var isStarted = false
    private var isShutDown = false

    /// `interface` is the name of the only network interface to use; nil for all. Begins with the first call of `publish`
    /// or `browse`.
    public convenience init(
        mode: Mode = .automatic, interface: String? = nil, on loop: UVEventLoop,
        events: any ServiceDiscoveryEvents
    ) {
        let ground = Ground(
            loop: loop, loopback: NetworkInterface.loopbackIndex,
            daemon: { AvahiDaemon(on: loop, interface: interface) },
            embedded: { AvahiEmbedded(on: loop, interface: interface) },
            asking: NameInquiry(on: loop, interface: interface),
            makeCheck: { MulticastCheck(on: loop, interface: interface, tell: $0) })
        self.init(mode: mode, on: ground, events: events)
    }

    init(mode: Mode, on ground: Ground, events: any ServiceDiscoveryEvents) {
        self.mode = mode
        self.ground = ground
        self.events = events
        var last: UInt64 = 0
        let number = {
            last += 1
            return last
        }
        directory = ServiceDirectory(on: ground.loop, loopback: ground.loopback, number: number)
        publisher = ServicePublisher(on: ground.loop, asking: ground.asking, number: number)
        connect()
    }

    private func connect() {
        let (directory, publisher) = (directory, publisher)
        directory.isOwn = { [unowned publisher] in publisher.isOwn($0) }
        directory.found = { [weak self] service in self?.tellBrowser { $0.serviceFoundOrChanged(service) } }
        directory.lost = { [weak self] key in self?.tellBrowser { $0.serviceLost(key) } }
        directory.failed = { [weak self] error in self?.tellBrowser { $0.browsingFailed(error) } }
        publisher.published = { [weak self] name in self?.tellPublisher { $0.published(as: name) } }
        publisher.failed = { [weak self] error in self?.tellPublisher { $0.publishingFailed(error) } }
    }

    /// Avahi has the addresses of what it calls back: whoever is let go of without `shutdown` takes the parts down first. Where
    /// the loop has ended, nobody calls anything back any more.
    deinit {
        guard isStarted, !isShutDown else { return }
        let parts = Parts(of: self)
        ground.loop.execute { parts.end() }
    }

    /// What has to be taken down, in this order.
    ///
    /// `@unchecked Sendable`: made where the last reference was let go of, used on the loop alone.
    private struct Parts: @unchecked Sendable {
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
            // What is asked and published goes with the backends.
            directory.backendWentDown()
            publisher.backendWentDown()
            directory.stop()
            publisher.unpublish()
            for backend in backends { backend.shutdown() }
        }
    }

    // MARK: What the transport calls

    /// Lets others find this. Called again, it replaces what was published; where only the text is another, without
    /// vanishing in between.
    public func publish(_ registration: ServiceRegistration) {
        let isNew = publisher.registration == nil
        let problem = currentProblem
        publisher.publish(registration)
        begin()
        if isNew, let problem { tellPublisher { $0.publishingFailed(problem.at(.advertising)) } }
        check?.begin()
    }

    /// Is found no more.
    public func unpublish() { publisher.unpublish() }

    /// Looks for services of `type`, one's own included, until `stopBrowsing`. Called again, it replaces the search.
    public func browse(_ type: ServiceType) {
        let problem = currentProblem
        search += 1
        isBrowsing = true
        directory.stop()
        directory.browse(type.domain)
        begin()
        if let problem { tellBrowser { $0.browsingFailed(problem.at(.browsing)) } }
        check?.begin()
    }

    /// Looks no more. What was found counts as lost from here, without an event.
    public func stopBrowsing() {
        search += 1
        isBrowsing = false
        directory.stop()
    }

    /// To be called when interfaces or addresses of this host have changed.
    public func addressesChanged() {
        daemon?.addressesChanged()
        embedded?.addressesChanged()
        check?.begin()
    }

    /// What a person should know about it here and now.
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
                        advice: "what stands above says what is in the way", isPending: currentProblem == nil)
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
        // Until it has been decided who speaks mDNS, the daemon may still answer.
        line.isPending = current == nil && (mode == .daemon ? problems[.daemon] == nil : embedded == nil)
        guard mode == .automatic, current?.kind == .embedded else { return line }
        // What works without the daemon is no failure.
        line.verdict = .pass
        line.finding += ": this program speaks mDNS itself"
        line.advice = "nothing needs to be done; " + AvahiProblem.sharingAdvice
        return line
    }

    /// Ends everything at once, with goodbyes to the network. Nothing is told afterwards.
    public func shutdown() {
        guard !isShutDown else { return }
        isShutDown = true
        events = nil
        if let daemonTimer { loop.cancel(daemonTimer) }
        Parts(of: self).end()
        current = nil
    }

    // MARK: Telling

    private func tell(_ event: @escaping @Sendable (any ServiceDiscoveryEvents) -> Void) {
        loop.execute {
            guard !self.isShutDown, let events = self.events else { return }
            event(events)
        }
    }

    private func tellBrowser(_ event: @escaping @Sendable (any ServiceDiscoveryEvents) -> Void) {
        let search = search
        loop.execute {
            guard !self.isShutDown, search == self.search, let events = self.events else { return }
            event(events)
        }
    }

    private func tellPublisher(_ event: @escaping @Sendable (any ServiceDiscoveryEvents) -> Void) {
        guard let registration = publisher.registration else { return }
        loop.execute {
            // Said of another name, it would mislead; said of another text, it stays true.
            guard !self.isShutDown, self.publisher.registration?.name == registration.name,
                let events = self.events
            else { return }
            event(events)
        }
    }

    /// What has been told to stand in the way.
    private var currentProblem: NighError? {
        if case .down(let error) = toldCondition { error } else { nil }
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
        guard let condition, condition != toldCondition else { return }
        toldCondition = condition
        tell { $0.discoveryChanged(condition) }
        guard case .down(let error) = condition else { return }
        if isBrowsing { tellBrowser { $0.browsingFailed(error.at(.browsing)) } }
        if publisher.registration != nil { tellPublisher { $0.publishingFailed(error.at(.advertising)) } }
    }

    // MARK: Choosing

    private func begin() {
        guard !isStarted else { return }
        isStarted = true
        check = ground.makeCheck { [weak self] in self?.checked($0) }
        guard mode != .embedded else { return startEmbedded() }
        let daemon = ground.daemon()
        self.daemon = daemon
        if mode == .automatic {
            daemonTimer = loop.schedule(at: loop.now + Self.daemonPatience) {
                self.daemonTimer = nil
                if self.current == nil { self.startEmbedded() }
            }
        }
        daemon.start(self)
    }

    private func startEmbedded() {
        guard embedded == nil else { return }
        let embedded = ground.embedded()
        self.embedded = embedded
        embedded.start(self)
    }

    private func use(_ backend: any DiscoveryBackend, host: DomainName) {
        let isAnother = backend !== current
        current = backend
        self.host = host
        // First what is published, so that it is withdrawn from where it was while that can still say goodbye.
        publisher.use(backend, host: host)
        if isAnother { directory.use(backend) }
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
            // What was asked and said meanwhile is lost, and mDNS repeats itself ever more seldom.
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

    package func publicationStands(_ backend: any DiscoveryBackend) {
        if backend === current { publisher.publicationStands() }
    }

    package func publicationCollided(_ backend: any DiscoveryBackend) {
        if backend === current { publisher.publicationCollided() }
    }

    package func publicationFailed(_ backend: any DiscoveryBackend, _ error: NighError) {
        if backend === current { publisher.publicationFailed(error) }
    }
}

extension NighError {
    /// The same, met in another endeavour.
    fileprivate func at(_ stage: Stage) -> NighError {
        var error = self
        error.stage = stage
        return error
    }
}
