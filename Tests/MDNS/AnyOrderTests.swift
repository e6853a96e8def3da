import NighCore
import Testing

@testable import NighMDNS

/// Feeds records of a small network in any order, valid and invalid ones, over backends that come and go.
struct AnyOrderTests {
    @Test(arguments: 0..<40 as Range<UInt64>)
    func `Reports are complete`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let network = Network(mode: .automatic, limit: 4)
        network.browse()
        network.publish("p0")
        var present: Set<String> = []
        var reportCount = 0
        for _ in 0..<600 {
            let backend = network.embedded.last.flatMap { $0.events == nil ? nil : $0 } ?? network.daemon
            switch Int.random(in: 0..<40, using: &random) {
            case 0: network.daemon.down()
            case 1: network.daemon.up(as: "own.local")
            case 2: try network.run(.seconds(Int.random(in: 0..<8, using: &random)))
            case 3: network.publish("p\(Int.random(in: 0..<2, using: &random))")
            default: say(something: &random, to: backend)
            }
            for text in try network.reports() {
                try Self.note(text, in: &present)
                reportCount += 1
            }
        }
        #expect(reportCount > 20)
        // When browsing stops, everything that was found is forgotten. The publication stays, because nobody withdrew
        // it.
        network.daemon.up(as: "own.local")
        network.call { $0.stopBrowsing() }
        try network.run(.seconds(60))
        for text in try network.reports() { try Self.note(text, in: &present) }
        network.browse()
        try network.run(.seconds(60))
        #expect(network.daemon.watches.count == 1)
        #expect(network.daemon.published != nil)
    }

    private func say(something random: inout SeededGenerator, to backend: FakeBackend) {
        let instance = "p\(Int.random(in: 0..<7, using: &random))._greet._tcp.local"
        let host = "h\(Int.random(in: 0..<4, using: &random)).local"
        var name = instance
        var type = RecordType.pointer
        var data: [UInt8]
        switch Int.random(in: 0..<5, using: &random) {
        case 0: (name, data) = ("_greet._tcp.local", DomainName(literal: instance).wire)
        case 1:
            let port = UInt16.random(in: 1...3, using: &random)
            (type, data) = (.service, ServiceRecord(port: port, host: DomainName(literal: host)).data)
        case 2: (type, data) = (.text, [3, 97, 61, .random(in: 48...50, using: &random)])
        case 3: (name, type, data) = (host, .address4, [10, 0, 0, .random(in: 1...3, using: &random)])
        default:
            (name, type) = (host, .address6)
            data = [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [.random(in: 1...3, using: &random)]
        }
        if Int.random(in: 0..<6, using: &random) == 0, let index = data.indices.randomElement(using: &random)
        {
            data[index] = .random(in: 0 ... .max, using: &random)
        }
        backend.reportRecord(
            name, type, data, interface: .random(in: 1...2, using: &random),
            version: .random(in: 0...1, using: &random),
            isPresent: Int.random(in: 0..<3, using: &random) > 0)
    }

    /// Checks that a lost service was found before, and that a found one can be dialled.
    private static func note(_ report: String, in present: inout Set<String>) throws {
        let words = report.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        if words[0] == "found" {
            present.insert(words[1])
            #expect(words.count >= 5 && !words[3].isEmpty && !words[2].hasSuffix(":0"), "\(report)")
        } else if words[0] == "lost" {
            #expect(present.remove(words[1]) != nil, "\(report)")
        }
    }
}
