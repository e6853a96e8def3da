import NighCore

/// Publishes one service under the wanted name, or under the next one that is free.
///
/// DNS-SD usually asks three times in three quarters of a second whether a name is free before it announces anything.
/// This type asks once, briefly, and then publishes, because services should be found quickly and two of one name are
/// rare. Avahi finds a holder of the name that was overlooked, or that comes at the same moment, and makes one of the
/// two give way (`publicationCollided`).
///
/// Anybody can claim a name, without having a service. So a service that had to give way asks from time to time whether
/// the wanted name is free again, and waits between two collisions if they do not end.
///
/// Loop only.
final class ServicePublisher {
    /// How long to wait for another service to claim the name.
    static let claimTime = Moment.Span.milliseconds(40)
    /// The additional wait, as a multiple of the time for which this side was kept from running. On a machine where all
    /// programs wait for a processor, a local holder of the name waits too, and takes several turns to answer.
    private static let delayFactor = 4
    /// The longest additional wait.
    static let longestExtraWait = Moment.Span.seconds(1)
    /// The longest delay that does not count as being kept from running.
    private static let negligibleDelay = Moment.Span.milliseconds(10)
    /// The pause before a failed attempt is repeated.
    static let retry = Moment.Span.seconds(10)
    /// The interface number of answers that did not come through the backend.
    private static let anyInterface: Int32 = 0
    /// The most names that are tried in a row.
    static let maximumAttempts = 64
    /// How long another name than the wanted one is kept before this asks for that again. It doubles each time.
    static let firstReturn = Moment.Span.seconds(60)
    static let longestReturn = Moment.Span.seconds(3_600)
    /// The collisions within `collisionTime` after which the next name is taken only after `collisionPause` (RFC 6762,
    /// 8.1).
    static let mostCollisions = 15
    private static let collisionTime = Moment.Span.seconds(10)
    static let collisionPause = Moment.Span.seconds(5)

    private enum Phase {
        case idle
        /// Waiting for another service to claim the name.
        case querying
        /// Passed to the backend. A query asks for the wanted name meanwhile if that is another one.
        case handedOver(Publication)
        case waitingToRetry(LoopTimer)
    }

    private struct Query {
        let label: String
        let name: DomainName
        let service: UInt64
        let text: UInt64
        var timer: LoopTimer
        var claims = RecordSet()
        var texts = RecordSet()
    }

    private let loop: any EventLoop
    private let number: () -> UInt64
    private let names: (any NameQuerying)?
    private var backend: (any DiscoveryBackend)?
    private var host: DomainName?
    /// The services published recently, which others may still remember.
    private var ownServices: [ServiceRecord] = []
    private var wanted: ServiceRegistration?
    private var label = ""
    private var attempts = 0
    private var phase = Phase.idle
    private var query: Query?
    /// The next question for the wanted name, while another one is published, and the pause after it.
    private var returnTimer: LoopTimer?
    private var returnPause = ServicePublisher.firstReturn
    /// When the last names collided.
    private var collisions: [Moment] = []
    private var reportedName: String?

    /// The handlers of events, called from inside calls.
    var published: (String) -> Void = { _ in }
    var failed: (NighError) -> Void = { _ in }

    /// `number` makes numbers for watches; `names` asks the network besides the backend.
    init(on loop: any EventLoop, names: (any NameQuerying)?, number: @escaping () -> UInt64) {
        self.loop = loop
        self.names = names
        self.number = number
    }

    /// The service that is published, or about to be.
    var registration: ServiceRegistration? { wanted }

    /// The name under which the service is visible.
    var visibleName: String? {
        if case .handedOver = phase { reportedName } else { nil }
    }

    func publish(_ registration: ServiceRegistration) {
        let before = wanted
        wanted = registration
        guard var same = before else { return begin(as: registration.name.description) }
        same.text = registration.text
        guard same == registration else {
            withdraw()
            returnPause = Self.firstReturn
            return begin(as: registration.name.description)
        }
        guard case .handedOver(var publication) = phase else { return }
        publication.text = TextRecord(entries: registration.text)
        phase = .handedOver(publication)
        backend?.updateText(of: publication)
    }

    func unpublish() {
        wanted = nil
        reportedName = nil
        withdraw()
    }

    /// Sets the backend to publish with, which is up, and the name of its host; nil if there is none.
    func use(_ backend: (any DiscoveryBackend)?, host: DomainName?) {
        withdraw()
        self.backend = backend
        self.host = host
        guard wanted != nil else { return }
        // A service that was renamed keeps its new name, so that others do not see it change for a reason on this
        // machine.
        begin(as: label)
    }

    /// Everything published is gone with the backend.
    func backendWentDown() {
        backend = nil
        // When others see the service again, that is reported again.
        reportedName = nil
        use(nil, host: nil)
    }

    /// Whether this publishes the service, or has published it recently.
    func isOwn(_ service: ServiceRecord) -> Bool {
        ownServices.contains { $0.port == service.port && $0.host == service.host }
    }

    // MARK: Events of the backend

    func watchChanged(_ number: UInt64, _ change: RecordChange) {
        guard let query else { return }
        if number == query.service { handle(.service, change) }
        if number == query.text { handle(.text, change) }
    }

    private func handle(_ type: RecordType, _ change: RecordChange) {
        guard var query else { return }
        switch type {
        case .service where ServiceRecord(data: change.data) != nil: _ = query.claims.apply(change)
        case .text where TextRecord(data: change.data) != nil: _ = query.texts.apply(change)
        default: return
        }
        self.query = query
        // An earlier run of this program is recognised by its text, which may still be on its way.
        if wanted?.identityKey == nil || !query.texts.isEmpty, isTaken(query) { giveWay() }
    }

    func publicationSucceeded() {
        guard case .handedOver(let publication) = phase else { return }
        let name = String(decoding: publication.instance.labels[0], as: UTF8.self)
        attempts = 0
        returnLater()
        guard reportedName != name else { return }
        reportedName = name
        published(name)
    }

    func publicationCollided() {
        guard case .handedOver = phase else { return }
        stopQuery()
        phase = .idle
        let now = loop.now
        collisions = collisions.suffix(Self.mostCollisions - 1) + [now]
        guard collisions.count == Self.mostCollisions, now - collisions[0] < Self.collisionTime else {
            return takeNextName()
        }
        let timer = loop.schedule(at: now + Self.collisionPause) {
            guard case .waitingToRetry = self.phase else { return }
            self.phase = .idle
            self.takeNextName()
        }
        phase = .waitingToRetry(timer)
    }

    func publicationFailed(_ error: NighError) {
        guard case .handedOver = phase else { return }
        // If only a change of the text failed, the service is still published.
        withdraw()
        fail(error)
    }

    // MARK: Names

    private func begin(as label: String) {
        self.label = label
        attempts = 0
        findOut()
    }

    /// Asks whether the name is free.
    private func findOut() {
        guard let wanted, backend != nil else { return }
        phase = .querying
        if !startQuery(label, wanted.type) {
            fail(NighError(.advertising, .invalid("service name \"\(label)\"")))
        }
    }

    /// Returns false if nothing can have this name.
    private func startQuery(_ label: String, _ type: ServiceType) -> Bool {
        guard let backend, let name = DomainName(labels: [Array(label.utf8)])?.below(type.domain) else {
            return false
        }
        let service = number()
        let text = number()
        let due = loop.now + Self.claimTime
        let timer = loop.schedule(at: due) { self.claimTimeEnded(due) }
        query = Query(label: label, name: name, service: service, text: text, timer: timer)
        backend.watch(Question(name: name, type: .service), as: service)
        backend.watch(Question(name: name, type: .text), as: text)
        names?.start(for: name) { [unowned self] type, data in
            let origin = RecordChange.Origin(interface: Self.anyInterface, version: 0)
            handle(type, RecordChange(isPresent: true, origin: origin, data: data))
        }
        return true
    }

    private func stopQuery() {
        if let returnTimer { loop.cancel(returnTimer) }
        returnTimer = nil
        guard let query else { return }
        self.query = nil
        names?.stop()
        loop.cancel(query.timer)
        backend?.unwatch(query.service)
        backend?.unwatch(query.text)
    }

    /// Handles the end of the time for claims, which was due at `due`.
    private func claimTimeEnded(_ due: Moment) {
        let late = loop.now - due
        guard late > Self.negligibleDelay else { return publishIfFree() }
        let wait = min(Moment.Span(late.duration * Self.delayFactor), Self.longestExtraWait)
        query?.timer = loop.schedule(at: loop.now + wait) { self.publishIfFree() }
    }

    private func publishIfFree() {
        guard let query, let wanted, let host, let backend else { return }
        guard !isTaken(query) else { return giveWay() }
        // Another name may be published until now.
        withdraw()
        label = query.label
        let publication = Publication(
            type: wanted.type.domain, instance: query.name,
            service: ServiceRecord(port: wanted.port, host: host), text: TextRecord(entries: wanted.text))
        phase = .handedOver(publication)
        if !isOwn(publication.service) { ownServices = ownServices.suffix(7) + [publication.service] }
        backend.publish(publication)
    }

    /// Leaves the name that is asked for to another service.
    private func giveWay() {
        if case .querying = phase { return takeNextName() }
        stopQuery()
        returnLater()
    }

    /// Asks for the wanted name again after a while, if another one is published.
    private func returnLater() {
        guard let wanted, label != wanted.name.description, returnTimer == nil, query == nil else { return }
        returnTimer = loop.schedule(at: loop.now + returnPause) {
            self.returnTimer = nil
            guard case .handedOver = self.phase, let wanted = self.wanted else { return }
            _ = self.startQuery(wanted.name.description, wanted.type)
        }
        returnPause = min(returnPause + returnPause, Self.longestReturn)
    }

    private func takeNextName() {
        stopQuery()
        attempts += 1
        guard attempts < Self.maximumAttempts else {
            return fail(
                NighError(
                    .advertising, .limit("names tried", Self.maximumAttempts),
                    advice: "choose another name than \"\(wanted?.name.description ?? label)\""))
        }
        label = Self.alternative(to: label)
        findOut()
    }

    private func isTaken(_ query: Query) -> Bool {
        guard query.claims.all.compactMap(ServiceRecord.init(data:)).contains(where: { !isOwn($0) }) else {
            return false
        }
        let texts = query.texts.all.compactMap(TextRecord.init(data:))
        return texts.isEmpty || !texts.allSatisfy(isOwn)
    }

    /// Whether the text belongs to the same identity.
    private func isOwn(_ text: TextRecord) -> Bool {
        guard let wanted, let key = wanted.identityKey else { return false }
        func value(_ entries: [TextEntry]) -> [UInt8]? {
            entries.first { $0.key.lowercased() == key.lowercased() }?.value
        }
        guard let own = value(TextRecord(entries: wanted.text).entries) else { return false }
        return value(text.entries) == own
    }

    /// The next name, in the form that Avahi's users know: "Puma", "Puma #2", "Puma #3".
    static func alternative(to label: String) -> String {
        NumberedName(label).next(limit: DomainName.maximumLabel)
    }

    // MARK: Ends

    private func withdraw() {
        stopQuery()
        switch phase {
        case .idle: break
        case .querying: phase = .idle
        case .handedOver:
            phase = .idle
            backend?.unpublish()
        case .waitingToRetry(let timer):
            phase = .idle
            loop.cancel(timer)
        }
    }

    private func fail(_ error: NighError) {
        let timer = loop.schedule(at: loop.now + Self.retry) {
            guard case .waitingToRetry = self.phase, let wanted = self.wanted else { return }
            self.phase = .idle
            self.begin(as: wanted.name.description)
        }
        phase = .waitingToRetry(timer)
        reportedName = nil
        failed(error)
    }
}
