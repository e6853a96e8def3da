import NighCore
import NighMDNS
import NighTestKit

/// The directory of services, in a network whose records come and go at random. Some of them are invalid.
///
/// After the network has been quiet for a while, the directory must have reported exactly the services in it. They are
/// computed here in the simplest way.
enum DirectoryTarget {
    static func run(_ mutator: inout Mutator) throws {
        let loop = VirtualEventLoop(workLimit: 20_000)
        do {
            try play(&mutator, loop)
            try loop.runQueued()
        } catch let lock as VirtualEventLoop.Livelock {
            throw Finding("\(lock)")
        }
        if loop.pending.timers != 0 { throw Finding("a timer is left") }
    }

    private static func play(_ mutator: inout Mutator, _ loop: VirtualEventLoop) throws {
        let network = RecordNetwork(on: loop, instanceLimit: mutator.pick([2, 3, 40]))
        let watcher = DirectoryWatch(network, on: loop)
        let directory = watcher.directory
        directory.use(network)
        directory.browse(RecordNetwork.types[0])
        for _ in 0...mutator.number(below: 40) {
            switch mutator.number(below: 24) {
            case 0:
                try loop.run(
                    for: .milliseconds(mutator.pick([1, 80, 1_000, 2_999, 3_000, 6_000, 12_000, 31_000])))
            case 1: watcher.goDown()
            case 2: watcher.comeUp()
            case 3: watcher.browse(mutator.pick(RecordNetwork.types))
            case 4: if mutator.oneIn(4) { watcher.stop() }
            case 5: network.failures = mutator.number(below: 3)
            case 6: try network.failOne(mutator.number(below: 8), directory)
            case 7...11: try network.announce(&mutator, directory)
            case 12...15: try network.takeAway(&mutator, directory)
            default: try network.say(network.change(&mutator), directory)
            }
            if mutator.oneIn(2) { try loop.runQueued() }
            try watcher.check()
        }
        network.failures = 0
        watcher.comeUp()
        try loop.run(for: .seconds(61))
        try watcher.check()
        try watcher.checkAtRest()
        watcher.stop()
        network.isUp = false
        directory.backendWentDown()
        try loop.runQueued()
    }
}

/// Records what the directory reports, and checks whether it makes sense.
private final class DirectoryWatch: @unchecked Sendable {
    // Confined to the thread that runs the loop.
    let directory: ServiceDirectory
    private let network: RecordNetwork
    private var type: DomainName? = RecordNetwork.types[0]
    private var services: [DiscoveredService.Key: DiscoveredService] = [:]
    private var findings: [String] = []

    init(_ network: RecordNetwork, on loop: VirtualEventLoop) {
        self.network = network
        var last: UInt64 = 0
        directory = ServiceDirectory(on: loop, loopback: RecordNetwork.loopback) {
            last += 1
            return last
        }
        network.directory = directory
        directory.found = { [unowned self] in found($0) }
        directory.lost = { [unowned self] in lost($0) }
        directory.failed = { [unowned self] in
            if "\($0)".isEmpty { findings.append("failed without a description") }
        }
    }

    private func found(_ service: DiscoveredService) {
        if services[service.key] == service { findings.append("found again as it was: \(service)") }
        services[service.key] = service
        if !(1...ServiceDirectory.maximumPlaces).contains(service.places.count) {
            findings.append("\(service.places.count) places")
        }
        if !(1...ServiceDirectory.maximumTexts).contains(service.texts.count) {
            findings.append("\(service.texts.count) texts")
        }
        for place in service.places {
            if !(1...ServiceDirectory.maximumAddresses).contains(place.addresses.count) {
                findings.append("\(place.addresses.count) addresses")
            }
            if place.port == 0 { findings.append("found without a port") }
            if service.key.interface != UInt32(RecordNetwork.loopback),
                place.addresses.contains(where: \.isLoopback)
            {
                findings.append("a loopback address from elsewhere")
            }
        }
    }

    private func lost(_ key: DiscoveredService.Key) {
        if services.removeValue(forKey: key) == nil { findings.append("lost and never found: \(key)") }
    }

    func goDown() {
        guard network.isUp else { return }
        network.isUp = false
        network.watches = [:]
        directory.backendWentDown()
    }

    func comeUp() {
        network.isUp = true
        directory.use(network)
    }

    func browse(_ type: DomainName) {
        // As the directory is to be called: what was found before counts as lost, without a report.
        stop()
        self.type = type
        directory.browse(type)
    }

    func stop() {
        directory.stop()
        services = [:]
        type = nil
    }

    func check() throws {
        if let finding = findings.first ?? network.findings.first { throw Finding(finding) }
        if directory.count > network.instanceLimit { throw Finding("\(directory.count) instances") }
        let most =
            1 + directory.count
            * (2 + 2 * ServiceDirectory.maximumPlaces * RecordNetwork.interfaces.count)
        if network.watches.count > most { throw Finding("\(network.watches.count) watches") }
        if type == nil, !network.watches.isEmpty { throw Finding("watches for nothing") }
    }

    func checkAtRest() throws {
        guard let type else { return }
        let expected = network.services(of: type)
        let names = Set(expected.keys.map(\.name))
        // A record that had no room is not found later. So services may be missing if a question has had too many
        // records, or above the limit.
        guard !network.isCrowded, network.instances(of: type).count <= network.instanceLimit else {
            if services.count > network.instanceLimit * RecordNetwork.interfaces.count {
                throw Finding("\(services.count) services")
            }
            return
        }
        guard services.count == expected.count else {
            throw Finding("\(services.keys.map(\.name)) are reported, expected \(names)")
        }
        let found = Dictionary(
            services.values.map { (place($0, of: type), $0) }, uniquingKeysWith: { first, _ in first })
        for (place, service) in expected {
            // If a name is spelt in two ways, either spelling is right.
            guard let reported = found[place], Content(reported) == Content(service) else {
                throw Finding("\(String(describing: found[place])) at \(place), expected \(service)")
            }
        }
    }

    private func place(_ service: DiscoveredService, of type: DomainName) -> RecordNetwork.Place {
        let label = DomainName(labels: [Array(service.key.name.utf8)])
        return RecordNetwork.Place(
            name: label?.below(type) ?? type, interface: Int32(clamping: service.key.interface))
    }

    /// The content of a service without its name.
    private struct Content: Equatable {
        let places: [DiscoveredService.Place]
        let texts: [[TextEntry]]

        init(_ service: DiscoveredService) {
            places = service.places
            texts = service.texts
        }
    }
}
