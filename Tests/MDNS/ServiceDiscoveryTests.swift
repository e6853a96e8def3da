import NighCore
import Testing

@testable import NighMDNS

struct ServiceDiscoveryTests {
    private static let gone = NighError(.starting, .unavailable("gone"))

    @Test func `The daemon is used if it answers`() throws {
        let network = Network(mode: .automatic)
        network.publish("Puma")
        try network.run(.seconds(1))
        #expect(try network.reports() == ["up daemon", "published Puma"])
        #expect(network.embedded.isEmpty)
    }

    @Test func `The embedded backend is used without the daemon`() throws {
        let network = Network(mode: .automatic, daemon: FakeBackend(.daemon))
        network.publish("Puma")
        network.daemon.down()
        try network.run(.milliseconds(100))
        #expect(try network.reports() == ["up embedded", "published Puma"])
    }

    @Test func `The embedded backend replaces a silent daemon`() throws {
        let network = Network(mode: .automatic, daemon: FakeBackend(.daemon))
        network.publish("Puma")
        try network.run(.milliseconds(390))
        #expect(try network.reports() == [])
        try network.run(.milliseconds(100))
        #expect(try network.reports() == ["up embedded", "published Puma"])
    }

    @Test func `No service is lost when the daemon restarts`() throws {
        let network = Network(mode: .automatic)
        network.publish("Puma")
        network.browse()
        try network.run(.seconds(1))
        network.daemon.announce("Lynx")
        #expect(try network.reports().last == "found Lynx%2 other.local:1 10.0.0.9 v=1")
        network.daemon.down()
        try network.run(.seconds(1))
        #expect(try network.reports() == ["up embedded", "published Puma"])
        let embedded = try #require(network.embedded.first)
        embedded.announce("Lynx")
        try network.run(.seconds(20))
        #expect(try network.reports() == [], "it was confirmed, and says the same")
        network.daemon.up(as: "own.local")
        try network.run(.seconds(1))
        #expect(try network.reports() == ["up daemon"])
        #expect(embedded.log == ["start", "publish Puma", "unpublish", "shutdown"])
        #expect(network.daemon.published != nil)
        try network.run(.seconds(6))
        #expect(try network.reports() == ["lost Lynx%2"], "the daemon had its time to confirm it")
    }

    /// A client of the daemon is made anew when the index of its interface has changed. It has none of the old watches.
    @Test func `A backend that comes up again is asked again`() throws {
        let network = Network(mode: .automatic)
        network.publish("Puma")
        network.browse()
        try network.run(.seconds(1))
        network.daemon.announce("Lynx")
        _ = try network.reports()
        let before = Set(network.daemon.watches.keys)
        network.daemon.up(as: "own.local")
        try network.run(.seconds(1))
        #expect(!network.daemon.watches.isEmpty)
        #expect(before.isDisjoint(with: network.daemon.watches.keys))
        network.daemon.announce("Lynx")
        network.daemon.announce("Ocelot", host: "third.local")
        try network.run(.seconds(6))
        #expect(try network.reports() == ["found Ocelot%2 third.local:1 10.0.0.9 v=1"])
        #expect(network.daemon.published != nil)
    }

    @Test func `Daemon mode waits for the daemon`() throws {
        let network = Network(mode: .daemon)
        network.publish("Puma")
        network.browse()
        try network.run(.seconds(1))
        network.daemon.announce("Lynx")
        _ = try network.reports()
        network.daemon.down(Self.gone)
        network.daemon.down(Self.gone)
        #expect(try network.reports() == ["down: gone", "browsing failed: gone", "publishing failed: gone"])
        try network.run(.seconds(29))
        #expect(try network.reports() == [])
        try network.run(.seconds(2))
        #expect(try network.reports() == ["lost Lynx%2"])
        network.daemon.up(as: "own.local")
        try network.run(.seconds(1))
        #expect(try network.reports() == ["up daemon", "published Puma"])
        #expect(network.embedded.isEmpty)
    }

    @Test func `A call while it is down gets the reason`() throws {
        let network = Network(mode: .daemon, daemon: FakeBackend(.daemon))
        network.publish("Puma")
        network.daemon.down(Self.gone)
        #expect(try network.reports() == ["down: gone", "publishing failed: gone"])
        network.browse()
        network.publish("Puma", text: ["id": "you"])
        #expect(try network.reports() == ["browsing failed: gone"])
        network.call { $0.unpublish() }
        network.publish("Puma")
        #expect(try network.reports() == ["publishing failed: gone"])
    }

    @Test func `A renamed service keeps its name across backends`() throws {
        let network = Network(mode: .automatic)
        network.publish("Puma")
        try network.run(.seconds(1))
        network.daemon.collide()
        try network.run(.seconds(1))
        network.daemon.down()
        try network.run(.seconds(1))
        #expect(
            try network.reports() == [
                "up daemon", "published Puma", "published Puma #2", "up embedded", "published Puma #2",
            ])
    }

    @Test func `The loss of both backends is reported`() throws {
        let network = Network(mode: .automatic, daemon: FakeBackend(.daemon))
        network.browse()
        network.daemon.down(Self.gone)
        let embedded = try #require(network.embedded.first)
        embedded.down(Self.gone)
        #expect(try network.reports().last == "browsing failed: every attempt failed")
        embedded.up(as: "nigh-1.local")
        #expect(try network.reports() == ["up embedded"])
    }

    @Test func `Blocked multicast is reported and reported again after its end`() throws {
        let network = Network(mode: .embedded)
        network.publish("Puma")
        network.browse()
        try network.run(.seconds(1))
        _ = try network.reports()
        let embedded = try #require(network.embedded.first)
        let check = try #require(network.check)
        let error = MulticastCheck.error(isForbidden: true)
        check.report(.blocked(error))
        #expect(
            try network.reports() == [
                "down: \(error.cause)", "browsing failed: \(error.cause)",
                "publishing failed: \(error.cause)",
            ])
        check.report(.blocked(error))
        #expect(try network.reports() == [])
        check.report(.works)
        try network.run(.seconds(1))
        #expect(try network.reports() == ["up embedded"])
        #expect(embedded.log == ["start", "publish Puma", "unpublish", "publish Puma"])
        #expect("\(error)".contains("UDP port 5353") && "\(error)".contains("directly"))
    }

    @Test func `Other addresses are passed on`() throws {
        let network = Network(mode: .embedded)
        network.call { $0.addressesChanged() }
        network.browse()
        network.call { $0.addressesChanged() }
        #expect(network.embedded.first?.log == ["start", "addresses"])
        #expect(network.check?.begun == 2)
    }

    @Test func `Shutdown ends everything at once`() throws {
        let network = Network(mode: .automatic)
        network.publish("Puma")
        network.browse()
        try network.run(.milliseconds(10))
        network.call { $0.shutdown() }
        #expect(network.daemon.log.last == "shutdown")
        try network.run(.seconds(60))
        #expect(try network.reports() == ["up daemon"], "told before")
        #expect(network.loop.pending.timers == 0)
        #expect(!network.names.isQuerying)
    }
}
