import NighCore
import NighMDNS
import NighTestKit

/// A discovery backend with a small network of its own, whose records come and go.
///
/// `@unchecked Sendable`: confined to the thread that runs the loop.
final class RecordNetwork: DiscoveryBackend, @unchecked Sendable {
    /// An instance on an interface.
    struct Place: Hashable {
        let name: DomainName
        let interface: Int32
    }

    static let loopback: Int32 = 1
    static let interfaces: [Int32] = [loopback, 2, 3, .max]
    static let types = ["_greet._tcp.local", "_other._tcp.local"].map { DomainName(literal: $0) }
    /// Some labels differ only in case or composition; some are unreadable for people.
    private static let labels: [[UInt8]] = [
        "Puma", "puma", "Lynx", "K\u{FC}che", "Ku\u{308}che", "a\u{7}b", "a.b", "\u{200B}",
        String(repeating: "x", count: 63),
    ].map { Array($0.utf8) }
    private static let hosts = ["h.local", "H.local", "g.local"].map { DomainName(literal: $0) }
    private static let addresses: [[UInt8]] = [
        [10, 0, 0, 7], [10, 0, 0, 8], [127, 0, 0, 1], [224, 0, 0, 1],
        [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [7], [UInt8](repeating: 0, count: 15) + [1],
    ]
    private static let texts: [[UInt8]] = [
        [0], [3, 118, 61, 49], [3, 118, 61, 50], [3, 86, 61, 49, 1, 118], [],
    ]

    let kind = DiscoveryCondition.Provider.daemon
    let instanceLimit: Int
    weak var directory: ServiceDirectory?
    var isUp = true
    var watches: [UInt64: Question] = [:]
    /// How many of the next watches fail.
    var failures = 0
    private(set) var findings: [String] = []
    /// Whether some question has had more records than are kept.
    private(set) var isCrowded = false
    private let loop: VirtualEventLoop
    /// The records, in the order in which they came.
    private var records: [(question: Question, change: RecordChange)] = []

    init(on loop: VirtualEventLoop, instanceLimit: Int) {
        self.loop = loop
        self.instanceLimit = instanceLimit
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
            directory?.watchFailed(number, NighError(.browsing, .unavailable("no room")))
            return
        }
        if watches.updateValue(question, forKey: number) != nil { findings.append("a number was used twice") }
        loop.execute { [self] in
            for record in records where record.question == question && watches[number] != nil {
                directory?.watchChanged(number, record.change)
            }
        }
    }

    func unwatch(_ number: UInt64) {
        if watches.removeValue(forKey: number) == nil { findings.append("an unknown watch was ended") }
    }

    // MARK: Changes

    /// Returns a record that answers some question, or the removal of one.
    func change(_ mutator: inout Mutator) -> (Question, RecordChange) {
        let instance = Self.instance(&mutator)
        let (question, data): (Question, [UInt8]) =
            switch mutator.number(below: 5) {
            case 0: (Question(name: mutator.pick(Self.types), type: .pointer), instance.wire)
            case 1:
                (
                    Question(name: instance, type: .service),
                    ServiceRecord(port: UInt16(mutator.number(below: 3)), host: mutator.pick(Self.hosts)).data
                )
            case 2: (Question(name: instance, type: .text), mutator.pick(Self.texts))
            case 3: (Question(name: mutator.pick(Self.hosts), type: .address4), mutator.pick(Self.addresses))
            default: (Question(name: mutator.pick(Self.hosts), type: .address6), mutator.pick(Self.addresses))
            }
        let changed = mutator.oneIn(3) ? mutator.perhapsChanged(data, with: RecordTarget.data) : data
        return (
            question,
            RecordChange(isPresent: !mutator.oneIn(4), place: Self.place(&mutator), data: changed)
        )
    }

    private static func instance(_ mutator: inout Mutator) -> DomainName {
        DomainName(labels: [mutator.pick(labels)] + mutator.pick(types).labels)!
    }

    private static func place(_ mutator: inout Mutator) -> RecordChange.Place {
        RecordChange.Place(interface: mutator.pick(interfaces), version: Int32(mutator.number(below: 2)))
    }

    func say(_ said: (question: Question, change: RecordChange), _ directory: ServiceDirectory) throws {
        let (question, change) = said
        records.removeAll {
            $0.change.place == change.place && $0.change.data == change.data && $0.question == question
        }
        if change.isPresent { records.append(said) }
        let interface = change.place.interface
        let here = records.count { $0.change.place.interface == interface && $0.question == question }
        if here > RecordSet.maximumPerInterface { isCrowded = true }
        for number in watches.keys.sorted() where watches[number] == question {
            directory.watchChanged(number, change)
        }
    }

    /// Announces all records of an instance.
    func announce(_ mutator: inout Mutator, _ directory: ServiceDirectory) throws {
        let instance = Self.instance(&mutator)
        let host = mutator.pick(Self.hosts)
        let place = Self.place(&mutator)
        let type = DomainName(labels: Array(instance.labels.dropFirst()))!
        var all: [(Question, [UInt8])] = [
            (Question(name: type, type: .pointer), instance.wire),
            (Question(name: instance, type: .service), ServiceRecord(port: 7, host: host).data),
            (Question(name: instance, type: .text), mutator.pick(Self.texts)),
            (Question(name: host, type: .address4), mutator.pick(Self.addresses)),
        ]
        while !all.isEmpty {
            let (question, data) = all.remove(at: mutator.number(below: all.count))
            try say((question, RecordChange(isPresent: true, place: place, data: data)), directory)
        }
    }

    /// Removes one of the present records.
    func takeAway(_ mutator: inout Mutator, _ directory: ServiceDirectory) throws {
        guard !records.isEmpty else { return }
        var (question, change) = mutator.pick(records)
        change.isPresent = false
        try say((question, change), directory)
    }

    /// Makes one of the watches fail.
    func failOne(_ index: Int, _ directory: ServiceDirectory) throws {
        guard !watches.isEmpty else { return }
        let number = watches.keys.sorted()[index % watches.count]
        watches[number] = nil
        directory.watchFailed(number, NighError(.browsing, .unavailable("broken")))
    }

    // MARK: The expected services

    /// Returns the instances that pointer records name.
    func instances(of type: DomainName) -> Set<DomainName> {
        let pointers = Self.interfaces.flatMap { data(type, .pointer, $0) }
        return Set(
            pointers.compactMap { DomainName(wire: $0) }.filter {
                guard let label = $0.label(below: type) else { return false }
                return DisplayName.isWellFormed(String(decoding: label, as: UTF8.self))
            })
    }

    /// Returns the complete services, put together in the simplest way.
    func services(of type: DomainName) -> [Place: DiscoveredService] {
        var services: [Place: DiscoveredService] = [:]
        for name in instances(of: type) {
            for interface in Self.interfaces {
                services[Place(name: name, interface: interface)] = service(name, type, interface)
            }
        }
        return services
    }

    private func service(_ name: DomainName, _ type: DomainName, _ interface: Int32) -> DiscoveredService? {
        let pointers = data(type, .pointer, interface).compactMap { DomainName(wire: $0) }
        guard let spelling = pointers.first(where: { $0 == name }) else { return nil }
        let places = data(name, .service, interface).filter { ServiceRecord(data: $0) != nil }
            .takingFromBothEnds(ServiceDirectory.maximumPlaces).compactMap(ServiceRecord.init(data:))
            .compactMap { place($0, interface) }
        let texts = data(name, .text, interface).filter { TextRecord(data: $0) != nil }
            .takingFromBothEnds(ServiceDirectory.maximumTexts).compactMap(TextRecord.init(data:))
        guard !places.isEmpty, !texts.isEmpty else { return nil }
        return DiscoveredService(
            key: .init(
                name: String(decoding: spelling.labels[0], as: UTF8.self), interface: UInt32(interface)),
            places: places, texts: texts.map(\.entries), isOwn: false)
    }

    private func place(_ service: ServiceRecord, _ interface: Int32) -> DiscoveredService.Place? {
        let addresses = [RecordType.address4, .address6].flatMap { data(service.host, $0, interface) }
            .compactMap { HostAddress(bytes: $0, interface: interface) }
            .filter { interface == Self.loopback || !$0.isLoopback }
        guard !addresses.isEmpty else { return nil }
        let sorted = Set(addresses).sorted {
            ($0.bytes.count, $0.bytes.description) < ($1.bytes.count, $1.bytes.description)
        }
        return DiscoveredService.Place(host: service.host.description, port: service.port, addresses: sorted)
    }

    /// Returns the data of the matching records, the newest first, each once.
    private func data(_ name: DomainName, _ type: RecordType, _ interface: Int32) -> [[UInt8]] {
        let question = Question(name: name, type: type)
        var seen: Set<[UInt8]> = []
        return records.reversed().filter { $0.question == question && $0.change.place.interface == interface }
            .map(\.change.data).filter { seen.insert($0).inserted }
    }
}
