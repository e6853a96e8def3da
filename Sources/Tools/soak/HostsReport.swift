import NighCore
import NighMDNS
import NighTCP
import NighTestKit
import Worlds

/// Shows the browser of `tcp` the mDNS records of many hosts, and prints what finding them costs.
///
/// The records are generated; no packet is sent, and Avahi's part, which reads packets, is not measured.
enum HostsReport {
    /// Runs each size in a process of its own. Returns whether all hosts were found.
    static func run(_ sizes: [Int]) -> Bool {
        var isComplete = true
        for size in sizes { isComplete = SeparateProcess.run("a crowd", { find(size) }) && isComplete }
        return isComplete
    }

    private static func find(_ size: Int) -> Bool {
        let browser = Browser(of: size)
        var report = StepCosts(size)
        report.step("all found", expecting: size) { browser.find() }
        report.step("all announced again", expecting: size) { browser.announceAgain() }
        report.step("all gone", expecting: 0) { browser.lose() }
        print("\(size) hosts: \(report.text)")
        return report.isComplete
    }

    /// The services that `tcp` finds in records, and the peers that it finds in these.
    private final class Browser {
        private let loop = VirtualEventLoop(workLimit: .max)
        private let network: GeneratedNetwork
        private let directory: ServiceDirectory
        private var neighbours = Neighbours()
        private var present = 0

        init(of size: Int) {
            network = GeneratedNetwork(of: size)
            var last: UInt64 = 0
            directory = ServiceDirectory(on: loop, loopback: 1) {
                last += 1
                return last
            }
            network.directory = directory
            directory.found = { [unowned self] service in
                count(neighbours.update(service, of: GeneratedNetwork.service))
            }
            directory.lost = { [unowned self] key in count(neighbours.remove(key)) }
            directory.use(network)
        }

        private func count(_ changes: [SightingChange]) {
            for change in changes {
                switch change {
                case .found: present += 1
                case .changed: break
                case .lost: present -= 1
                }
            }
        }

        func find() -> Int {
            directory.browse(GeneratedNetwork.type)
            network.announce(isPresent: true)
            run()
            return present
        }

        func announceAgain() -> Int {
            network.announce(isPresent: true)
            run()
            return present
        }

        func lose() -> Int {
            network.announce(isPresent: false)
            run()
            return present
        }

        /// Lets the network answer until nobody asks any more.
        private func run() {
            repeat { try? loop.runQueued() } while network.answer()
        }
    }
}

/// A network of hosts with one service each, which answers every question.
private final class GeneratedNetwork: DiscoveryBackend {
    static let service: ServiceName = "crowd"
    static let type = DomainName(literal: "_crowd._tcp.local")
    private static let place = RecordChange.Origin(interface: 2, version: 0)

    let kind = DiscoveryCondition.Provider.embedded
    let instanceLimit: Int
    weak var directory: ServiceDirectory?

    private let size: Int
    private var instances: [DomainName: Int] = [:]
    private var hosts: [DomainName: Int] = [:]
    private var watches: [UInt64: Question] = [:]
    private var typeWatch: UInt64?
    /// The watches that were not answered yet.
    private var pending: [UInt64] = []
    private let texts: [[UInt8]]

    init(of size: Int) {
        self.size = size
        instanceLimit = size
        var random = SeededGenerator(seed: 1)
        texts = (0..<size).map { _ in
            let peer = PeerID(random: &random)
            return ["v=1", "id=\(peer)"].flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        }
        for index in 0..<size {
            instances[instance(index)] = index
            hosts[host(index)] = index
        }
    }

    private func instance(_ index: Int) -> DomainName { DomainName(literal: "p\(index)._crowd._tcp.local") }

    private func host(_ index: Int) -> DomainName { DomainName(literal: "h\(index).local") }

    /// Every host announces its service, or says that it is gone.
    func announce(isPresent: Bool) {
        guard let typeWatch else { return }
        for index in 0..<size { tell(typeWatch, instance(index).wire, isPresent) }
    }

    private func tell(_ number: UInt64, _ data: [UInt8], _ isPresent: Bool = true) {
        directory?.watchChanged(
            number, RecordChange(isPresent: isPresent, origin: Self.place, data: data))
    }

    func watch(_ question: Question, as number: UInt64) {
        watches[number] = question
        switch question.type {
        case .pointer: typeWatch = number
        case .service, .text, .address4:
            // An answer never comes from inside the call.
            pending.append(number)
        default: break
        }
    }

    func unwatch(_ number: UInt64) { watches[number] = nil }

    /// Answers the questions that were asked since the last call. Returns whether there were any.
    func answer() -> Bool {
        let numbers = pending
        pending = []
        for number in numbers {
            guard let question = watches[number] else { continue }
            switch question.type {
            case .service:
                guard let index = instances[question.name] else { continue }
                tell(number, ServiceRecord(port: 7, host: host(index)).data)
            case .text:
                guard let index = instances[question.name] else { continue }
                tell(number, texts[index])
            case .address4:
                guard let index = hosts[question.name] else { continue }
                tell(number, [10, UInt8(index >> 16 & 255), UInt8(index >> 8 & 255), UInt8(index & 255)])
            default: break
            }
        }
        return !numbers.isEmpty
    }

    func start(_ events: any DiscoveryBackendEvents) {}

    func publish(_ publication: Publication) {}

    func updateText(of publication: Publication) {}

    func unpublish() {}

    func addressesChanged() {}

    func diagnose() -> Diagnosis { Diagnosis("generated", .pass, "") }

    func shutdown() {}
}
