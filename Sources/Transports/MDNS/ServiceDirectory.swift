import NighCore

/// Finds the instances of a service type: follows the type's PTR records to each instance's SRV and TXT records, and
/// from there to the host's A and AAAA records. Reports the resulting services, per interface.
///
/// It does no I/O: a backend answers questions, and a loop keeps the time. Records are not trusted; those that cannot
/// be parsed are counted and left out.
///
/// A change of the backend is not a change of the network. Reported services stay so for a while, until the new backend
/// has confirmed it or has had the time to.
///
/// Loop only.
package final class ServiceDirectory {
    /// Counts the records that were left out, by reason. The counts only grow.
    package struct Counters: Hashable {
        /// Malformed records.
        package var malformed = 0
        /// Instances or records beyond a limit.
        package var beyondLimit = 0
    }

    /// How long an instance may lack its SRV, TXT or address records before it counts as lost; they arrive one by one.
    static let incompleteTimeout = Moment.Span.seconds(3)
    /// How long a backend that has just come up has to confirm the reports of another one.
    static let confirmation = Moment.Span.seconds(5)
    /// How long reported services are kept without a backend.
    static let retentionTime = Moment.Span.seconds(30)
    /// The least time between two restarts of the search because of instances beyond the limit.
    static let restartInterval = Moment.Span.seconds(10)
    /// The most SRV records of an instance that are followed on an interface. An honest instance has one, and a second
    /// one for a moment after a change; others are forged.
    package static let maximumEndpoints = 4
    /// The most TXT records of an instance that are reported on an interface.
    package static let maximumTexts = 4
    /// The most addresses of a host that are reported on an interface.
    package static let maximumAddresses = 32

    private enum Target {
        case type
        case service(DomainName)
        case text(DomainName)
        case address(DomainName)

        /// Whether the data are valid for this kind of record.
        func accepts(_ data: [UInt8]) -> Bool {
            switch self {
            case .type: DomainName(wire: data) != nil
            case .service: ServiceRecord(data: data) != nil
            case .text: TextRecord(data: data) != nil
            case .address: HostAddress(bytes: data, interface: 0) != nil
            }
        }
    }

    private struct Instance {
        let label: String
        var watches: [UInt64]
        var pointers = RecordSet()
        var services = RecordSet()
        var texts = RecordSet()
        var hosts: Set<DomainName> = []
    }

    private struct Host {
        var watches: [UInt64]
        var instances: Set<DomainName> = []
        var addresses = RecordSet()
    }

    private struct KnownService {
        var service: DiscoveredService
        /// When the service counts as lost, unless it is complete again by then.
        var doubtedUntil: Moment?
    }

    package private(set) var counters = Counters()

    private let loop: any EventLoop
    private let number: () -> UInt64
    private let loopback: Int32
    private var backend: (any DiscoveryBackend)?
    private var type: DomainName?
    private var targets: [UInt64: Target] = [:]
    private var instances: [DomainName: Instance] = [:]
    private var hosts: [DomainName: Host] = [:]
    private var known: [DomainName: [Int32: KnownService]] = [:]
    private var stale: Set<DomainName> = []
    private var timer: (timer: LoopTimer, moment: Moment)?
    private var hasMissedSome = false
    private var lastStart = Moment(nanoseconds: .min)

    /// The handlers of events, called from inside calls.
    package var found: (DiscoveredService) -> Void = { _ in }
    package var lost: (DiscoveredService.Key) -> Void = { _ in }
    package var failed: (NighError) -> Void = { _ in }
    /// Whether an instance is this program's own.
    package var isOwn: (ServiceRecord) -> Bool = { _ in false }

    /// `number` makes numbers for watches; `loopback` is the index of the interface on which loopback addresses are
    /// trusted.
    package init(on loop: any EventLoop, loopback: Int32, number: @escaping () -> UInt64) {
        self.loop = loop
        self.loopback = loopback
        self.number = number
    }

    /// The number of instances that are followed.
    package var count: Int { instances.count }

    package func browse(_ type: DomainName) {
        guard type != self.type else { return }
        stop()
        self.type = type
        lastStart = loop.now
        if let backend { start(with: backend) }
    }

    package func stop() {
        forget()
        type = nil
        known = [:]
        hasMissedSome = false
        if let timer { loop.cancel(timer.timer) }
        timer = nil
    }

    /// Sets the backend to ask, which is up; nil if there is none.
    package func use(_ backend: (any DiscoveryBackend)?) {
        forget()
        self.backend = backend
        markAllDoubtful(for: backend == nil ? Self.retentionTime : Self.confirmation)
        if let backend, type != nil { start(with: backend) }
    }

    /// Stops using the backend, whose watches are gone already.
    package func backendWentDown() {
        targets = [:]
        use(nil)
    }

    // MARK: Events of the backend

    package func watchChanged(_ number: UInt64, _ change: RecordChange) {
        guard let target = targets[number] else { return }
        guard target.accepts(change.data) else {
            counters.malformed += 1
            return
        }
        switch target {
        case .type: pointerChanged(change)
        case .service(let name):
            note(instances[name]?.services.apply(change))
            follow(name)
            refreshSoon(name)
        case .text(let name):
            note(instances[name]?.texts.apply(change))
            refreshSoon(name)
        case .address(let host):
            note(hosts[host]?.addresses.apply(change))
            for name in hosts[host]?.instances ?? [] { refreshSoon(name) }
        }
    }

    package func watchFailed(_ number: UInt64, _ error: NighError) {
        guard targets.removeValue(forKey: number) != nil else { return }
        counters.beyondLimit += 1
        guard !hasMissedSome else { return }
        hasMissedSome = true
        failed(error)
        wake(at: lastStart + Self.restartInterval)
    }

    private func note(_ hadRoom: Bool?) {
        if hadRoom == false { counters.beyondLimit += 1 }
    }

    private func pointerChanged(_ change: RecordChange) {
        guard let type, let name = DomainName(wire: change.data),
            let label = Self.label(of: name, below: type)
        else {
            counters.malformed += 1
            return
        }
        if instances[name] == nil {
            guard change.isPresent, let backend else { return }
            guard instances.count < backend.instanceLimit else { return tooMany(backend.instanceLimit) }
            let watches = [
                watch(.service(name), Question(name: name, type: .service)),
                watch(.text(name), Question(name: name, type: .text)),
            ]
            instances[name] = Instance(label: label, watches: watches)
        }
        note(instances[name]?.pointers.apply(change))
        if instances[name]?.pointers.isEmpty == true {
            remove(name)
        } else {
            refreshSoon(name)
        }
    }

    /// The instance's label, if people can read it: valid UTF-8 without control characters.
    private static func label(of name: DomainName, below type: DomainName) -> String? {
        guard let bytes = name.label(below: type) else { return nil }
        let label = String(decoding: bytes, as: UTF8.self)
        return DisplayName.isWellFormed(label) ? label : nil
    }

    private func tooMany(_ limit: Int) {
        counters.beyondLimit += 1
        guard !hasMissedSome else { return }
        hasMissedSome = true
        failed(
            NighError(
                .browsing, .limit("services followed", limit),
                advice: "more are found when others are gone"))
    }

    // MARK: Watches

    private func start(with backend: any DiscoveryBackend) {
        guard let type else { return }
        hasMissedSome = false
        lastStart = loop.now
        _ = watch(.type, Question(name: type, type: .pointer))
    }

    private func watch(_ target: Target, _ question: Question) -> UInt64 {
        let number = number()
        targets[number] = target
        backend?.watch(question, as: number)
        return number
    }

    private func unwatch(_ numbers: some Sequence<UInt64>) {
        for number in numbers where targets.removeValue(forKey: number) != nil { backend?.unwatch(number) }
    }

    private func forget() {
        unwatch(Array(targets.keys))
        instances = [:]
        hosts = [:]
    }

    /// Watches the addresses of exactly the hosts that the instance's SRV records name.
    private func follow(_ name: DomainName) {
        guard let instance = instances[name] else { return }
        var wanted: Set<DomainName> = []
        for interface in instance.services.interfaces {
            wanted.formUnion(services(of: instance, on: interface).map(\.host))
        }
        instances[name]?.hosts = wanted
        for host in wanted.subtracting(instance.hosts) {
            if hosts[host] == nil {
                let watches = [RecordType.address4, .address6].map {
                    watch(.address(host), Question(name: host, type: $0))
                }
                hosts[host] = Host(watches: watches)
            }
            hosts[host]?.instances.insert(name)
        }
        for host in instance.hosts.subtracting(wanted) { leave(host, by: name) }
    }

    private func leave(_ host: DomainName, by name: DomainName) {
        hosts[host]?.instances.remove(name)
        guard let left = hosts[host], left.instances.isEmpty else { return }
        hosts[host] = nil
        unwatch(left.watches)
    }

    private func remove(_ name: DomainName) {
        guard let instance = instances.removeValue(forKey: name) else { return }
        unwatch(instance.watches)
        for host in instance.hosts { leave(host, by: name) }
        for interface in Array((known[name] ?? [:]).keys) { lose(name, interface) }
        if hasMissedSome { wake(at: lastStart + Self.restartInterval) }
    }

    // MARK: Combining records

    /// Combines the records of one packet once, in the next turn of the loop.
    private func refreshSoon(_ name: DomainName) {
        if stale.isEmpty { loop.later { self.refreshStale() } }
        stale.insert(name)
    }

    private func refreshStale() {
        let names = stale
        stale = []
        for name in names { refresh(name) }
    }

    private func refresh(_ name: DomainName) {
        guard let instance = instances[name] else { return }
        for interface in instance.pointers.interfaces { refresh(name, instance, on: interface) }
        for interface in Array((known[name] ?? [:]).keys) where !instance.pointers.contains(interface) {
            // Another backend may have reported this one, and this backend has not found it yet.
            if known[name]?[interface]?.doubtedUntil == nil { lose(name, interface) }
        }
    }

    private func refresh(_ name: DomainName, _ instance: Instance, on interface: Int32) {
        guard let service = whole(instance, on: interface) else {
            guard known[name]?[interface]?.doubtedUntil == nil, known[name]?[interface] != nil else { return }
            markDoubtful(name, interface, until: loop.now + Self.incompleteTimeout)
            return
        }
        let before = known[name]?[interface]?.service
        // A name in other letter case is the same instance, under another key.
        if let before, before.key != service.key { lose(name, interface) }
        known[name, default: [:]][interface] = KnownService(service: service)
        if before != service { found(service) }
    }

    /// The service, if all its parts are known.
    private func whole(_ instance: Instance, on interface: Int32) -> DiscoveredService? {
        let services = services(of: instance, on: interface)
        let endpoints = services.compactMap { endpoint(of: $0, on: interface) }
        let texts = instance.texts.newest(on: interface).takingFromBothEnds(Self.maximumTexts)
            .compactMap(TextRecord.init(data:))
        guard !endpoints.isEmpty, !texts.isEmpty else { return nil }
        return DiscoveredService(
            key: .init(name: instance.label, interface: UInt32(clamping: interface)), endpoints: endpoints,
            texts: texts.map(\.entries), isOwn: services.allSatisfy(isOwn))
    }

    private func services(of instance: Instance, on interface: Int32) -> [ServiceRecord] {
        instance.services.newest(on: interface).takingFromBothEnds(Self.maximumEndpoints)
            .compactMap(ServiceRecord.init(data:))
    }

    /// Nil while no address of the host is known.
    private func endpoint(of service: ServiceRecord, on interface: Int32) -> DiscoveredService.Endpoint? {
        let addresses = (hosts[service.host]?.addresses.newest(on: interface) ?? [])
            .compactMap { HostAddress(bytes: $0, interface: interface) }
            .filter { interface == loopback || !$0.isLoopback }
            .takingFromBothEnds(Self.maximumAddresses)
            .sorted { ($0.bytes.count, $0.bytes.description) < ($1.bytes.count, $1.bytes.description) }
        guard !addresses.isEmpty else { return nil }
        return DiscoveredService.Endpoint(
            host: service.host.description, port: service.port, addresses: addresses)
    }

    // MARK: Services in doubt

    private func markAllDoubtful(for span: Moment.Span) {
        let end = loop.now + span
        for (name, places) in known {
            for interface in places.keys { markDoubtful(name, interface, until: end) }
        }
    }

    private func markDoubtful(_ name: DomainName, _ interface: Int32, until end: Moment) {
        known[name]?[interface]?.doubtedUntil = end
        wake(at: end)
    }

    private func lose(_ name: DomainName, _ interface: Int32) {
        guard let gone = known[name]?.removeValue(forKey: interface) else { return }
        if known[name]?.isEmpty == true { known[name] = nil }
        lost(gone.service.key)
    }

    private func wake(at moment: Moment) {
        if let timer {
            guard moment < timer.moment else { return }
            loop.cancel(timer.timer)
        }
        timer = (loop.schedule(at: max(moment, loop.now)) { self.timerFired() }, moment)
    }

    private func timerFired() {
        timer = nil
        let now = loop.now
        for (name, places) in known {
            for (interface, known) in places where known.doubtedUntil.map({ $0 <= now }) == true {
                lose(name, interface)
            }
        }
        if hasMissedSome, let backend {
            if lastStart + Self.restartInterval > now {
                wake(at: lastStart + Self.restartInterval)
            } else if instances.count < backend.instanceLimit {
                use(backend)
            }
        }
        if let next = known.values.flatMap({ $0.values.compactMap(\.doubtedUntil) }).min() { wake(at: next) }
    }
}
