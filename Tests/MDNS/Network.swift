import NighCore
import NighTestKit

@testable import NighMDNS

/// A backend that a test controls, with a log of the calls it gets.
final class FakeBackend: DiscoveryBackend {
    let kind: DiscoveryCondition.Provider
    let instanceLimit: Int
    private(set) weak var events: (any DiscoveryBackendEvents)?
    private(set) var watches: [UInt64: Question] = [:]
    private(set) var published: Publication?
    private(set) var log: [String] = []
    var succeedsAtOnce = true
    var collidesWith: Set<String> = []
    var isHostGiven: DomainName?

    init(_ kind: DiscoveryCondition.Provider, limit: Int = 100, upAs host: String? = nil) {
        self.kind = kind
        instanceLimit = limit
        isHostGiven = host.map { DomainName(literal: $0) }
    }

    func start(_ events: any DiscoveryBackendEvents) {
        log.append("start")
        self.events = events
        if let isHostGiven { events.backendUp(self, host: isHostGiven) }
    }

    func watch(_ question: Question, as number: UInt64) {
        precondition(watches.updateValue(question, forKey: number) == nil, "a number was used twice")
    }

    func unwatch(_ number: UInt64) {
        precondition(watches.removeValue(forKey: number) != nil, "an unknown watch was ended")
    }

    func publish(_ publication: Publication) {
        precondition(published == nil, "published twice")
        published = publication
        let name = String(decoding: publication.instance.labels[0], as: UTF8.self)
        log.append("publish \(name)")
        if collidesWith.contains(name) {
            published = nil
            events?.publicationCollided(self)
        } else if succeedsAtOnce {
            events?.publicationSucceeded(self)
        }
    }

    func updateText(of publication: Publication) {
        published = publication
        log.append("text")
    }

    func unpublish() {
        published = nil
        log.append("unpublish")
    }

    func addressesChanged() { log.append("addresses") }
    func diagnose() -> Diagnosis { Diagnosis(kind.rawValue, .pass, "fake") }

    func shutdown() {
        log.append("shutdown")
        events = nil
    }

    // MARK: Events

    func up(as host: String) { events?.backendUp(self, host: DomainName(literal: host)) }

    func down(_ error: NighError = NighError(.starting, .unavailable("gone"))) {
        watches = [:]
        published = nil
        events?.backendDown(self, error)
    }

    func collide() {
        published = nil
        events?.publicationCollided(self)
    }

    /// Reports a record to every watch for it.
    func reportRecord(
        _ name: String, _ type: RecordType, _ data: [UInt8], interface: Int32 = 2, version: Int32 = 0,
        isPresent: Bool = true
    ) {
        let question = Question(name: DomainName(escaped: name)!, type: type)
        let origin = RecordChange.Origin(interface: interface, version: version)
        for (number, watched) in watches.sorted(by: { $0.key < $1.key }) where watched == question {
            events?.watchChanged(self, number, RecordChange(isPresent: isPresent, origin: origin, data: data))
        }
    }

    func fail(_ name: String, _ type: RecordType, _ error: NighError) {
        let question = Question(name: DomainName(escaped: name)!, type: type)
        for (number, watched) in watches where watched == question {
            watches[number] = nil
            events?.watchFailed(self, number, error)
        }
    }

    /// Reports all records of a service that another host offers.
    func announce(
        _ label: String, host: String = "other.local", port: UInt16 = 1, text: String = "v=1",
        address: [UInt8] = [10, 0, 0, 9],
        interface: Int32 = 2, isPresent: Bool = true
    ) {
        let name = label + "._greet._tcp.local"
        let texts = [UInt8(text.utf8.count)] + Array(text.utf8)
        let service = ServiceRecord(port: port, host: DomainName(literal: host))
        if isPresent {
            reportRecord("_greet._tcp.local", .pointer, DomainName(escaped: name)!.wire, interface: interface)
        }
        reportRecord(name, .service, service.data, interface: interface, isPresent: isPresent)
        reportRecord(name, .text, texts, interface: interface, isPresent: isPresent)
        reportRecord(host, .address4, address, interface: interface, isPresent: isPresent)
        if !isPresent {
            reportRecord(
                "_greet._tcp.local", .pointer, DomainName(escaped: name)!.wire, interface: interface,
                isPresent: false)
        }
    }
}

/// Answers as a network does when a program asks who has a name.
final class FakeNameQuery: NameQuerying {
    private(set) var queried: [String] = []
    private var received: ((RecordType, [UInt8]) -> Void)?

    func start(for name: DomainName, received: @escaping (RecordType, [UInt8]) -> Void) {
        queried.append(String(decoding: name.labels[0], as: UTF8.self))
        self.received = received
    }

    func stop() { received = nil }

    var isQuerying: Bool { received != nil }

    func answer(_ type: RecordType, _ data: [UInt8]) { received?(type, data) }
}

/// A multicast check whose verdicts the test sets.
final class FakeCheck: MulticastChecking {
    let report: (MulticastVerdict) -> Void
    private(set) var begun = 0

    init(_ report: @escaping (MulticastVerdict) -> Void) { self.report = report }

    func begin() { begun += 1 }
    func diagnose() -> [Diagnosis] { [] }
    func shutdown() {}
}

/// A loop whose thread waits for a processor: it runs everything later than it is due.
///
/// `@unchecked Sendable`: the wrapped loop and `lateness` are confined to the test's thread.
final class LateLoop: EventLoop, @unchecked Sendable {
    private let punctual: VirtualEventLoop
    var lateness = Moment.Span.zero

    init(_ punctual: VirtualEventLoop) { self.punctual = punctual }

    var now: Moment { punctual.now }
    var isCurrent: Bool { punctual.isCurrent }
    func execute(_ work: @escaping @Sendable () -> Void) { punctual.execute(work) }

    func schedule(at moment: Moment, _ work: @escaping () -> Void) -> LoopTimer {
        punctual.schedule(at: moment + lateness, work)
    }

    func cancel(_ timer: LoopTimer) { punctual.cancel(timer) }
}

/// A `ServiceDiscovery` over fakes in virtual time, with a log of what it reports.
final class Network: ServiceDiscoveryEvents {
    let loop = VirtualEventLoop()
    let lateLoop: LateLoop
    let daemon: FakeBackend
    private(set) var embedded: [FakeBackend] = []
    let names = FakeNameQuery()
    private(set) var check: FakeCheck?
    private(set) var discovery: ServiceDiscovery!
    private var log: [String] = []
    var isInCall = false

    init(
        mode: ServiceDiscovery.Mode, daemon: FakeBackend = FakeBackend(.daemon, upAs: "own.local"),
        limit: Int = 100
    ) {
        self.daemon = daemon
        lateLoop = LateLoop(loop)
        let dependencies = ServiceDiscovery.Dependencies(
            loop: lateLoop, loopback: 1, daemon: { daemon },
            embedded: { [unowned self] in
                embedded.append(FakeBackend(.embedded, limit: limit, upAs: "nigh-1.local"))
                return embedded[embedded.count - 1]
            }, names: names,
            makeCheck: { [unowned self] in
                check = FakeCheck($0)
                return check
            })
        discovery = ServiceDiscovery(mode: mode, dependencies: dependencies, events: self)
    }

    static let type = ServiceType(tcp: "greet")

    func publish(_ name: String, port: UInt16 = 4_000, text: [String: String] = ["id": "me"]) {
        call {
            $0.publish(
                ServiceRegistration(
                    type: Self.type, name: DisplayName(fitting: name), port: port,
                    text: text.sorted { $0.key < $1.key }.compactMap {
                        TextEntry(key: $0.key, value: $0.value)
                    },
                    identityKey: "id"))
        }
    }

    func browse() { call { $0.browse(Self.type) } }

    /// Calls the discovery; stops the test if it reports an event before the call returns.
    func call(_ body: (ServiceDiscovery) -> Void) {
        isInCall = true
        body(discovery)
        isInCall = false
    }

    func run(_ duration: Duration = .milliseconds(1)) throws { try loop.run(for: duration) }

    /// Returns the reports since its last call, once everything that is due now is done.
    func reports() throws -> [String] {
        try loop.runQueued()
        defer { log = [] }
        return log
    }

    private func report(_ text: String) {
        precondition(!isInCall, "told from inside a call: \(text)")
        log.append(text)
    }

    func serviceFoundOrChanged(_ service: DiscoveredService) {
        let places = service.endpoints.map { place in
            "\(place.host):\(place.port) \(place.addresses.map(\.description).joined(separator: ","))"
        }
        let texts = service.texts.map { text in
            text.map { "\($0.key)=\(String(decoding: $0.value ?? [], as: UTF8.self))" }
                .joined(separator: ",")
        }
        report(
            "found \(service.key.name)%\(service.key.interface) \(places.joined(separator: " or ")) "
                + texts.joined(separator: "|") + (service.isOwn ? " own" : ""))
    }

    func serviceLost(_ key: DiscoveredService.Key) { report("lost \(key.name)%\(key.interface)") }
    func published(as name: String) { report("published \(name)") }
    func publishingFailed(_ error: NighError) { report("publishing failed: \(error.cause)") }
    func browsingFailed(_ error: NighError) { report("browsing failed: \(error.cause)") }
    func discoveryChanged(_ condition: DiscoveryCondition) {
        switch condition {
        case .up(let provider): report("up \(provider.rawValue)")
        case .down(let error): report("down: \(error.cause)")
        }
    }
}
