import NighCore
import Testing

@testable import NighMDNS

struct ServiceDirectoryTests {
    private let network = Network(mode: .daemon)
    private var daemon: FakeBackend { network.daemon }

    init() throws {
        network.browse()
        #expect(try network.reports() == ["up daemon"])
    }

    @Test func `Records are combined into a service`() throws {
        daemon.reportRecord("_greet._tcp.local", .pointer, DomainName(literal: "Puma._greet._tcp.local").wire)
        daemon.reportRecord("Puma._greet._tcp.local", .text, [3, 97, 61, 49])
        daemon.reportRecord(
            "Puma._greet._tcp.local", .service,
            ServiceRecord(port: 7, host: DomainName(literal: "h.local")).data)
        #expect(try network.reports() == [], "nobody can be dialled without an address")
        daemon.reportRecord(
            "h.local", .address6, [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [5], version: 1)
        daemon.reportRecord("h.local", .address4, [10, 0, 0, 5])
        daemon.reportRecord("h.local", .address4, [10, 0, 0, 5], version: 1)
        #expect(try network.reports() == ["found Puma%2 h.local:7 10.0.0.5,fe80:0:0:0:0:0:0:5%2 a=1"])
    }

    @Test func `Changes and losses are reported`() throws {
        daemon.announce("Puma")
        #expect(try network.reports() == ["found Puma%2 other.local:1 10.0.0.9 v=1"])
        // As Avahi does it: the new record comes first, and the old one goes a second later.
        daemon.reportRecord("Puma._greet._tcp.local", .text, [3, 118, 61, 50])
        #expect(try network.reports() == ["found Puma%2 other.local:1 10.0.0.9 v=2|v=1"])
        daemon.reportRecord("Puma._greet._tcp.local", .text, [3, 118, 61, 49], isPresent: false)
        #expect(try network.reports() == ["found Puma%2 other.local:1 10.0.0.9 v=2"])
        daemon.announce("Puma", text: "v=2", isPresent: false)
        #expect(try network.reports() == ["lost Puma%2"])
        #expect(daemon.watches.count == 1, "nothing of it is watched any more")
    }

    @Test func `A service is reported for each interface`() throws {
        daemon.announce("Puma")
        daemon.announce("Puma", address: [10, 1, 0, 9], interface: 3)
        #expect(
            try network.reports().sorted() == [
                "found Puma%2 other.local:1 10.0.0.9 v=1", "found Puma%3 other.local:1 10.1.0.9 v=1",
            ])
        daemon.reportRecord(
            "_greet._tcp.local", .pointer, DomainName(literal: "Puma._greet._tcp.local").wire,
            isPresent: false)
        #expect(try network.reports() == ["lost Puma%2"])
    }

    @Test func `A service seen over IPv4 and IPv6 is lost once both are gone`() throws {
        daemon.announce("Puma")
        let pointer = DomainName(literal: "Puma._greet._tcp.local").wire
        daemon.reportRecord("_greet._tcp.local", .pointer, pointer, version: 1)
        _ = try network.reports()
        daemon.reportRecord("_greet._tcp.local", .pointer, pointer, isPresent: false)
        #expect(try network.reports() == [])
        daemon.reportRecord("_greet._tcp.local", .pointer, pointer, version: 1, isPresent: false)
        #expect(try network.reports() == ["lost Puma%2"])
    }

    @Test func `A briefly incomplete service is not lost`() throws {
        daemon.announce("Puma")
        _ = try network.reports()
        daemon.reportRecord("other.local", .address4, [10, 0, 0, 9], isPresent: false)
        try network.run(.seconds(2))
        #expect(try network.reports() == [])
        daemon.reportRecord("other.local", .address4, [10, 0, 0, 8])
        #expect(try network.reports() == ["found Puma%2 other.local:1 10.0.0.8 v=1"])
        try network.run(.seconds(10))
        #expect(try network.reports() == [])
        daemon.reportRecord("other.local", .address4, [10, 0, 0, 8], isPresent: false)
        try network.run(.seconds(4))
        #expect(try network.reports() == ["lost Puma%2"])
    }

    @Test func `Malformed records are counted and left out`() throws {
        daemon.announce("Puma")
        _ = try network.reports()
        daemon.reportRecord("_greet._tcp.local", .pointer, [9, 9])
        daemon.reportRecord("_greet._tcp.local", .pointer, DomainName(literal: "x._other._tcp.local").wire)
        daemon.reportRecord(
            "_greet._tcp.local", .pointer, DomainName(escaped: #"a\007b._greet._tcp.local"#)!.wire)
        daemon.reportRecord("Puma._greet._tcp.local", .service, [1])
        daemon.reportRecord("Puma._greet._tcp.local", .text, [200, 1])
        daemon.reportRecord("other.local", .address4, [224, 0, 0, 1])
        #expect(try network.reports() == [])
        #expect(network.discovery.diagnose().contains { $0.finding.contains("6 records malformed") })
    }

    @Test func `Loopback addresses are believed on loopback only`() throws {
        daemon.announce("Evil", host: "evil.local", address: [127, 0, 0, 1])
        daemon.announce("Here", host: "here.local", address: [127, 0, 0, 1], interface: 1)
        try network.run(.seconds(5))
        #expect(try network.reports() == ["found Here%1 here.local:1 127.0.0.1 v=1"])
    }

    @Test func `Another host is followed`() throws {
        daemon.announce("Puma", host: "a.local")
        _ = try network.reports()
        daemon.reportRecord(
            "Puma._greet._tcp.local", .service,
            ServiceRecord(port: 2, host: DomainName(literal: "b.local")).data)
        daemon.reportRecord(
            "Puma._greet._tcp.local", .service,
            ServiceRecord(port: 1, host: DomainName(literal: "a.local")).data,
            isPresent: false)
        daemon.reportRecord("b.local", .address4, [10, 0, 0, 2])
        #expect(try network.reports() == ["found Puma%2 b.local:2 10.0.0.2 v=1"])
        #expect(!daemon.watches.values.contains { $0.name == DomainName(literal: "a.local") })
    }

    @Test func `Instances are bounded`() throws {
        let network = Network(mode: .daemon, daemon: FakeBackend(.daemon, limit: 3, upAs: "own.local"))
        network.browse()
        for number in 0..<5 { network.daemon.announce("p\(number)", host: "h\(number).local") }
        let reported = try network.reports()
        #expect(reported.count { $0.hasPrefix("found") } == 3)
        #expect(reported.contains("browsing failed: the limit \"services followed\" of 3 is reached"))
        #expect(network.daemon.watches.count == 1 + 3 * 4)
        // One service leaves and makes room, so the others are looked up again.
        network.daemon.announce("p0", host: "h0.local", isPresent: false)
        try network.run(.seconds(11))
        for number in 1..<4 { network.daemon.announce("p\(number)", host: "h\(number).local") }
        #expect(try network.reports() == ["lost p0%2", "found p3%2 h3.local:1 10.0.0.9 v=1"])
    }

    @Test func `A hostile crowd of records is bounded`() throws {
        daemon.announce("Puma")
        for port in 1...UInt16(500) {
            daemon.reportRecord(
                "Puma._greet._tcp.local", .service,
                ServiceRecord(port: port, host: DomainName(literal: "h\(port).local")).data)
        }
        #expect(daemon.watches.count == 3 + 2 * ServiceDirectory.maximumEndpoints)
        for last in 1...UInt8(200) { daemon.reportRecord("other.local", .address4, [10, 0, 1, last]) }
        _ = try network.reports()
        #expect(
            network.discovery.diagnose().contains {
                $0.finding.contains("beyond a limit") && $0.verdict == .warn
            })
    }

    // MARK: Forged records

    private func forgeService(_ port: UInt16, _ host: String, isPresent: Bool = true) {
        daemon.reportRecord(
            "Puma._greet._tcp.local", .service,
            ServiceRecord(port: port, host: DomainName(literal: host)).data, isPresent: isPresent)
    }

    @Test func `A forged host is reported beside the true one until it is removed`() throws {
        daemon.announce("Puma")
        let alone = "found Puma%2 other.local:1 10.0.0.9 v=1"
        #expect(try network.reports() == [alone])
        forgeService(2, "forged.local")
        #expect(try network.reports() == [], "nobody can be dialled without an address")
        daemon.reportRecord("forged.local", .address4, [10, 0, 0, 66])
        #expect(
            try network.reports()
                == ["found Puma%2 forged.local:2 10.0.0.66 or other.local:1 10.0.0.9 v=1"])
        forgeService(2, "forged.local", isPresent: false)
        #expect(try network.reports() == [alone])
        #expect(daemon.watches.count == 5)
    }

    @Test func `A forged text is reported beside the true one until it is removed`() throws {
        daemon.announce("Puma")
        _ = try network.reports()
        daemon.reportRecord("Puma._greet._tcp.local", .text, [3, 118, 61, 57])
        #expect(try network.reports() == ["found Puma%2 other.local:1 10.0.0.9 v=9|v=1"])
        daemon.reportRecord("Puma._greet._tcp.local", .text, [3, 118, 61, 57], isPresent: false)
        #expect(try network.reports() == ["found Puma%2 other.local:1 10.0.0.9 v=1"])
    }

    @Test(arguments: [false, true])
    func `The true records are reported among any number of forged ones`(isFirst: Bool) throws {
        daemon.reportRecord("_greet._tcp.local", .pointer, DomainName(literal: "Puma._greet._tcp.local").wire)
        if isFirst { daemon.announce("Puma") }
        for number in UInt8(1)...100 {
            forgeService(UInt16(number) + 100, "forged\(number).local")
            daemon.reportRecord("forged\(number).local", .address4, [10, 0, 1, number])
            daemon.reportRecord(
                "Puma._greet._tcp.local", .text, [4, 120, 61, 48 + number / 10, 48 + number % 10])
        }
        if !isFirst { daemon.announce("Puma") }
        let reported = try #require(network.reports().last)
        let words = reported.split(separator: " ")
        #expect(words.contains("other.local:1"))
        #expect(words.last?.split(separator: "|").contains("v=1") == true)
        #expect(words.count { $0 == "or" } == ServiceDirectory.maximumEndpoints - 1)
        #expect(words.last?.split(separator: "|").count == ServiceDirectory.maximumTexts)
    }

    @Test(arguments: [false, true])
    func `The true address is reported among any number of forged ones`(isFirst: Bool) throws {
        if isFirst { daemon.announce("Puma", address: [10, 0, 9, 9]) }
        daemon.reportRecord("_greet._tcp.local", .pointer, DomainName(literal: "Puma._greet._tcp.local").wire)
        forgeService(1, "other.local")
        for last in UInt8(1)...100 { daemon.reportRecord("other.local", .address4, [10, 0, 1, last]) }
        if !isFirst { daemon.announce("Puma", address: [10, 0, 9, 9]) }
        let reported = try #require(network.reports().last)
        let addresses = reported.split(separator: " ")[3].split(separator: ",")
        #expect(addresses.contains("10.0.9.9"))
        #expect(addresses.count == ServiceDirectory.maximumAddresses)
    }

    /// Without the check, discovery would take a peer for this program itself if a forged record names this program.
    @Test func `A forged record does not mark a peer as own`() throws {
        network.publish("Own")
        try network.run(.seconds(1))
        daemon.announce("Puma")
        forgeService(4_000, "own.local")
        daemon.reportRecord("own.local", .address4, [10, 0, 0, 1])
        #expect(
            try network.reports().last
                == "found Puma%2 own.local:4000 10.0.0.1 or other.local:1 10.0.0.9 v=1")
    }

    @Test func `A failed watch is retried`() throws {
        let error = AvahiProblem.error(-17, .browsing, message: "")
        daemon.reportRecord("_greet._tcp.local", .pointer, DomainName(literal: "Puma._greet._tcp.local").wire)
        daemon.fail("Puma._greet._tcp.local", .service, error)
        let words = "avahi-daemon has reached its limit of objects for this program"
        #expect(try network.reports() == ["browsing failed: \(words)"])
        try network.run(.seconds(12))
        daemon.announce("Puma")
        #expect(try network.reports() == ["found Puma%2 other.local:1 10.0.0.9 v=1"])
    }

    @Test func `Nothing is reported after stopping`() throws {
        daemon.announce("Puma")
        network.call { $0.stopBrowsing() }
        #expect(try network.reports() == [])
        #expect(daemon.watches.isEmpty)
        network.browse()
        daemon.announce("Puma")
        #expect(try network.reports() == ["found Puma%2 other.local:1 10.0.0.9 v=1"])
        network.call { $0.shutdown() }
        try network.run(.seconds(60))
        #expect(try network.reports() == [])
        #expect(network.loop.pending.timers == 0)
    }

    /// Swift treats composed and decomposed umlauts as equal; DNS does not.
    @Test func `Names that only look alike are distinct`() throws {
        daemon.announce("K\u{FC}che", host: "a.local")
        daemon.announce("Ku\u{308}che", host: "b.local")
        #expect(try network.reports().count == 2)
        let keys = ["K\u{FC}che", "Ku\u{308}che"].map { DiscoveredService.Key(name: $0, interface: 2) }
        #expect(Set(keys).count == 2)
        #expect(keys[0] != keys[1])
    }

    @Test func `A name with other case replaces the old one`() throws {
        daemon.announce("Puma")
        #expect(try network.reports() == ["found Puma%2 other.local:1 10.0.0.9 v=1"])
        daemon.down()
        _ = try network.reports()
        daemon.up(as: "own.local")
        daemon.announce("puma")
        #expect(
            try network.reports().filter { !$0.hasPrefix("up") } == [
                "lost Puma%2", "found puma%2 other.local:1 10.0.0.9 v=1",
            ])
    }
}
