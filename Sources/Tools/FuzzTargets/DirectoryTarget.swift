import NighCore
import NighMDNS
import NighTestKit

/// The directory of services, in a network whose records come and go. Some of them are invalid.
///
/// After the network has been quiet for a while, the directory must have reported exactly the services in it. They are
/// computed here in the simplest way.
enum DirectoryTarget {
    static func run(_ input: inout Input) throws {
        let loop = VirtualEventLoop(workLimit: 20_000)
        do {
            let network = RecordNetwork(on: loop, instanceLimit: input.pick([2, 3, 40]))
            try network.play(&input, loop)
            try loop.runQueued()
        } catch let lock as VirtualEventLoop.Livelock {
            throw Finding(description: "\(lock)")
        }
        try expect(loop.pending.timers == 0, "a timer is left")
    }
}

/// A discovery backend with a small network of its own. It also checks the reports of the directory.
///
/// `@unchecked Sendable`: confined to the thread that runs the loop.
private final class RecordNetwork: DiscoveryBackend, @unchecked Sendable {
    private static let loopback: Int32 = 1
    private static let interfaces: [Int32] = [loopback, 2, .max]
    private static let types = ["_greet._tcp.local", "_other._tcp.local"].map { DomainName(literal: $0) }
    /// Some labels differ only in case or composition; some are unreadable for people.
    private static let labels = ["Puma", "puma", "Lynx", "K\u{FC}che", "Ku\u{308}che", "a\u{7}b", "\u{200B}"]
    private static let hosts = ["h.local", "H.local", "g.local"].map { DomainName(literal: $0) }
    private static let addresses: [[UInt8]] = [
        [10, 0, 0, 7], [10, 0, 0, 8], [127, 0, 0, 1], [224, 0, 0, 1],
        [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [7], [UInt8](repeating: 0, count: 15) + [1],
    ]
    private static let texts: [[UInt8]] = [[0], [3, 118, 61, 49], [3, 86, 61, 49, 1, 118], []]

    let kind = DiscoveryCondition.Provider.daemon
    let instanceLimit: Int
    private let loop: VirtualEventLoop
    private let directory: ServiceDirectory
    private var isUp = true
    private var watches: [UInt64: Question] = [:]
    /// How many of the next watches fail.
    private var failures = 0
    private var findings: [String] = []
    /// Whether some question has had more records than are kept.
    private var isCrowded = false
    /// The records, in the order in which they came.
    private var records: [(question: Question, change: RecordChange)] = []
    private var type: DomainName?
    private var services: [DiscoveredService.Key: DiscoveredService] = [:]

    init(on loop: VirtualEventLoop, instanceLimit: Int) {
        self.loop = loop
        self.instanceLimit = instanceLimit
        var last: UInt64 = 0
        directory = ServiceDirectory(on: loop, loopback: Self.loopback) {
            last += 1
            return last
        }
        directory.found = { [unowned self] in found($0) }
        directory.lost = { [unowned self] in
            if services.removeValue(forKey: $0) == nil { findings.append("lost and never found: \($0)") }
        }
        directory.failed = { [unowned self] in
            if "\($0)".isEmpty { findings.append("failed without a description") }
        }
    }

    func play(_ input: inout Input, _ loop: VirtualEventLoop) throws {
        directory.use(self)
        browse(Self.types[0])
        while !input.isAtEnd {
            switch input.number(below: 12) {
            case 0:
                try loop.run(for: .milliseconds(input.pick([1, 80, 1_000, 2_999, 3_000, 12_000, 31_000])))
            case 1: if isUp { goDown() } else { comeUp() }
            case 2: if input.isUsual() { browse(input.pick(Self.types)) } else { stop() }
            case 3: failures = input.number(below: 3)
            case 4:
                guard !watches.isEmpty else { continue }
                let number = input.pick(watches.keys.sorted())
                watches[number] = nil
                directory.watchFailed(number, NighError(.browsing, .unavailable("broken")))
            case 5, 6, 7: announce(&input)
            case 8, 9:
                guard !records.isEmpty else { continue }
                var (question, change) = input.pick(records)
                change.isPresent = false
                say(question, change)
            default: sayAny(&input)
            }
            if input.isUsual() { try loop.runQueued() }
            try check()
        }
        failures = 0
        comeUp()
        try loop.run(for: .seconds(61))
        try check()
        try checkAtRest()
        stop()
        goDown()
    }

    // MARK: Calls of the directory

    func start(_ events: any DiscoveryBackendEvents) {}
    func publish(_ publication: Publication) {}
    func updateText(of publication: Publication) {}
    func unpublish() {}
    func addressesChanged() {}
    func diagnose() -> Diagnosis { Diagnosis("records", .pass, "made up") }
    func shutdown() {}

    func watch(_ question: Question, as number: UInt64) {
        if !isUp { findings.append("asked while down") }
        guard failures == 0 else {
            failures -= 1
            directory.watchFailed(number, NighError(.browsing, .unavailable("no room")))
            return
        }
        if watches.updateValue(question, forKey: number) != nil { findings.append("a number was used twice") }
        loop.execute { [self] in
            for record in records where record.question == question && watches[number] != nil {
                directory.watchChanged(number, record.change)
            }
        }
    }

    func unwatch(_ number: UInt64) {
        if watches.removeValue(forKey: number) == nil { findings.append("an unknown watch was ended") }
    }

    // MARK: Changes

    private func goDown() {
        isUp = false
        watches = [:]
        directory.backendWentDown()
    }

    private func comeUp() {
        isUp = true
        directory.use(self)
    }

    private func browse(_ type: DomainName) {
        // The directory has to be called like this. Services that were found before count as lost, without a report.
        stop()
        self.type = type
        directory.browse(type)
    }

    private func stop() {
        directory.stop()
        services = [:]
        type = nil
    }

    private func instance(_ input: inout Input) -> DomainName {
        let label = DomainName(labels: [Array(input.pick(Self.labels).utf8)])
        let type = Self.types[input.isUsual(oneIn: 4) ? 0 : 1]
        return label?.below(type) ?? type
    }

    private func place(_ input: inout Input) -> RecordChange.Origin {
        RecordChange.Origin(interface: input.pick(Self.interfaces), version: Int32(input.number(below: 2)))
    }

    /// Announces a record that answers some question, or the removal of one.
    private func sayAny(_ input: inout Input) {
        let instance = instance(&input)
        let host = input.pick(Self.hosts)
        let service = ServiceRecord(port: UInt16(input.number(below: 3)), host: host)
        let all: [(Question, [UInt8])] = [
            (Question(name: input.pick(Self.types), type: .pointer), instance.wire),
            (Question(name: instance, type: .service), service.data),
            (Question(name: instance, type: .text), input.pick(Self.texts)),
            (Question(name: host, type: .address4), input.pick(Self.addresses)),
            (Question(name: host, type: .address6), input.pick(Self.addresses)),
        ]
        let (question, data) = input.pick(all)
        let isPresent = input.isUsual(oneIn: 4)
        say(question, RecordChange(isPresent: isPresent, origin: place(&input), data: input.edited(data)))
    }

    /// Announces all records of an instance.
    private func announce(_ input: inout Input) {
        let instance = instance(&input)
        let host = input.pick(Self.hosts)
        let place = place(&input)
        let type = DomainName(labels: Array(instance.labels.dropFirst())) ?? instance
        let all: [(Question, [UInt8])] = [
            (Question(name: type, type: .pointer), instance.wire),
            (Question(name: instance, type: .service), ServiceRecord(port: 7, host: host).data),
            (Question(name: instance, type: .text), input.pick(Self.texts)),
            (Question(name: host, type: .address4), input.pick(Self.addresses)),
        ]
        let first = input.number(below: 4)
        for (question, data) in all[first...] + all[..<first] {
            say(question, RecordChange(isPresent: true, origin: place, data: data))
        }
    }

    private func say(_ question: Question, _ change: RecordChange) {
        records.removeAll {
            $0.change.origin == change.origin && $0.change.data == change.data && $0.question == question
        }
        if change.isPresent { records.append((question, change)) }
        let interface = change.origin.interface
        let here = records.count { $0.change.origin.interface == interface && $0.question == question }
        if here > RecordSet.maximumPerInterface { isCrowded = true }
        for number in watches.keys.sorted() where watches[number] == question {
            directory.watchChanged(number, change)
        }
    }

    // MARK: Checks

    private func found(_ service: DiscoveredService) {
        if services[service.key] == service { findings.append("found again as it was: \(service)") }
        services[service.key] = service
        let isElsewhere = service.key.interface != UInt32(Self.loopback)
        let arePossible = service.endpoints.allSatisfy { place in
            (1...ServiceDirectory.maximumAddresses).contains(place.addresses.count) && place.port != 0
                && !(isElsewhere && place.addresses.contains(where: \.isLoopback))
        }
        if !arePossible || !(1...ServiceDirectory.maximumEndpoints).contains(service.endpoints.count)
            || !(1...ServiceDirectory.maximumTexts).contains(service.texts.count)
        {
            findings.append("an impossible service: \(service)")
        }
    }

    private func check() throws {
        try expect(findings.isEmpty, findings.joined(separator: "; "))
        try expect(directory.count <= instanceLimit, "\(directory.count) instances")
        let most =
            1 + directory.count * (2 + 2 * ServiceDirectory.maximumEndpoints * Self.interfaces.count)
        try expect(watches.count <= most, "\(watches.count) watches")
        try expect(type != nil || watches.isEmpty, "watches for nothing")
    }

    private func checkAtRest() throws {
        guard let type else { return }
        // A record for which there was no room is not found later. So services may be missing if a question has had too
        // many records, or if there are more services than the limit.
        let instances = instances(of: type)
        guard !isCrowded, instances.count <= instanceLimit else {
            let most = instanceLimit * Self.interfaces.count
            return try expect(services.count <= most, "\(services.count) services")
        }
        let expected = instances.flatMap { name in
            Self.interfaces.compactMap { service(name, type, $0)?.key }
        }
        try expect(services.count == expected.count, "\(services.keys) are reported, expected \(expected)")
        for service in services.values {
            let name = DomainName(labels: [Array(service.key.name.utf8)])?.below(type) ?? type
            // If a name is spelt in two ways, either spelling is right.
            let right =
                instances.contains(name)
                ? self.service(name, type, Int32(clamping: service.key.interface)) : nil
            let isRight = right?.endpoints == service.endpoints && right?.texts == service.texts
            try expect(isRight, "\(service) of \(name), expected \(String(describing: right))")
        }
    }

    /// The instances that pointer records name.
    private func instances(of type: DomainName) -> Set<DomainName> {
        let pointers = Self.interfaces.flatMap { data(type, .pointer, $0) }.compactMap {
            DomainName(wire: $0)
        }
        return Set(
            pointers.filter { pointer in
                let label = pointer.label(below: type).map { String(decoding: $0, as: UTF8.self) }
                return label.map(DisplayName.isWellFormed) ?? false
            })
    }

    private func service(_ name: DomainName, _ type: DomainName, _ interface: Int32) -> DiscoveredService? {
        let pointers = data(type, .pointer, interface).compactMap { DomainName(wire: $0) }
        guard let spelling = pointers.first(where: { $0 == name }) else { return nil }
        let places = data(name, .service, interface).filter { ServiceRecord(data: $0) != nil }
            .takingFromBothEnds(ServiceDirectory.maximumEndpoints).compactMap(ServiceRecord.init(data:))
            .compactMap { place(of: $0, interface) }
        let texts = data(name, .text, interface).filter { TextRecord(data: $0) != nil }
            .takingFromBothEnds(ServiceDirectory.maximumTexts).compactMap(TextRecord.init(data:))
        guard !places.isEmpty, !texts.isEmpty else { return nil }
        let key = DiscoveredService.Key(
            name: String(decoding: spelling.labels[0], as: UTF8.self), interface: UInt32(interface))
        return DiscoveredService(key: key, endpoints: places, texts: texts.map(\.entries), isOwn: false)
    }

    private func place(of service: ServiceRecord, _ interface: Int32) -> DiscoveredService.Endpoint? {
        let addresses = [RecordType.address4, .address6].flatMap { data(service.host, $0, interface) }
            .compactMap { HostAddress(bytes: $0, interface: interface) }
            .filter { interface == Self.loopback || !$0.isLoopback }
        guard !addresses.isEmpty else { return nil }
        let sorted = Set(addresses).sorted {
            ($0.bytes.count, $0.bytes.description) < ($1.bytes.count, $1.bytes.description)
        }
        return DiscoveredService.Endpoint(
            host: service.host.description, port: service.port, addresses: sorted)
    }

    /// The data of the matching records, the newest first, each once.
    private func data(_ name: DomainName, _ type: RecordType, _ interface: Int32) -> [[UInt8]] {
        let question = Question(name: name, type: type)
        var seen: Set<[UInt8]> = []
        return records.reversed().filter {
            $0.question == question && $0.change.origin.interface == interface
        }
        .map(\.change.data).filter { seen.insert($0).inserted }
    }
}
