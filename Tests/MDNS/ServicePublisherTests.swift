import NighCore
import Testing

@testable import NighMDNS

struct ServicePublisherTests {
    private let network = Network(mode: .daemon)
    private var daemon: FakeBackend { network.daemon }

    private func claim(_ port: UInt16 = 9, host: String = "other.local") -> [UInt8] {
        ServiceRecord(port: port, host: DomainName(literal: host)).data
    }

    @Test func `A service is published if its name is unclaimed`() throws {
        network.publish("Puma")
        #expect(try network.reports() == ["up daemon"])
        #expect(network.names.queried == ["Puma"])
        try network.run(.milliseconds(100))
        #expect(try network.reports() == ["published Puma"])
        let publication = try #require(daemon.published)
        #expect(publication.service == ServiceRecord(port: 4_000, host: DomainName(literal: "own.local")))
        #expect(publication.text.entries.map(\.key) == ["id"])
        #expect(!network.names.isQuerying)
        #expect(daemon.watches.isEmpty)
    }

    @Test(arguments: [true, false])
    func `A taken name is replaced by the next free one`(isHeardDirectly: Bool) throws {
        network.publish("Puma")
        for name in ["Puma", "Puma #2"] {
            _ = try network.reports()
            if isHeardDirectly {
                network.names.answer(.service, claim())
                network.names.answer(.text, [5, 105, 100, 61, 104, 105])
            } else {
                daemon.reportRecord(
                    DomainName(labels: [Array(name.utf8)])!.escaped + "._greet._tcp.local", .service, claim())
                try network.run(ServicePublisher.claimTime.duration + .milliseconds(10))
            }
        }
        try network.run(.milliseconds(100))
        #expect(try network.reports() == ["published Puma #3"])
        #expect(network.names.queried == ["Puma", "Puma #2", "Puma #3"])
    }

    /// The program that holds the name may be delayed as well.
    @Test func `A delayed publisher waits longer`() throws {
        network.lateLoop.lateness = .milliseconds(100)
        network.publish("Puma")
        // The time for claims ends at 140 ms instead of 40 ms. It was 100 ms late, so four times that is added.
        try network.run(.milliseconds(630))
        #expect(try network.reports() == ["up daemon"])
        network.names.answer(.service, claim())
        network.names.answer(.text, [5, 105, 100, 61, 104, 105])
        try network.run(.seconds(2))
        #expect(try network.reports() == ["published Puma #2"])
    }

    @Test func `A publisher delayed for long waits at most a second longer`() throws {
        network.lateLoop.lateness = .milliseconds(300)
        network.publish("Puma")
        try network.run(.milliseconds(40 + 300 + 1_000 + 300 - 1))
        #expect(try network.reports() == ["up daemon"])
        try network.run(.milliseconds(1))
        #expect(try network.reports() == ["published Puma"])
    }

    @Test func `A restarted service reclaims its name`() throws {
        network.publish("Puma")
        network.names.answer(.service, claim(4_000, host: "nigh-old.local"))
        network.names.answer(.text, [5, 105, 100, 61, 109, 101])
        try network.run(.milliseconds(100))
        #expect(try network.reports() == ["up daemon", "published Puma"])
    }

    @Test func `A collision later takes the next name`() throws {
        network.publish("Puma")
        try network.run(.milliseconds(100))
        _ = try network.reports()
        daemon.collide()
        try network.run(.milliseconds(100))
        #expect(try network.reports() == ["published Puma #2"])
        daemon.collidesWith = ["Puma #3"]
        daemon.collide()
        try network.run(.milliseconds(200))
        #expect(try network.reports() == ["published Puma #4"])
    }

    @Test func `A publisher without a free name fails and retries`() throws {
        daemon.collidesWith = Set((2...200).map { "Puma #\($0)" } + ["Puma"])
        network.publish("Puma")
        var last: String?
        for _ in 0..<600 where last?.hasPrefix("publishing failed") != true {
            try network.run(.milliseconds(100))
            last = try network.reports().last ?? last
        }
        #expect(last == "publishing failed: the limit \"names tried\" of 64 is reached")
        daemon.collidesWith = []
        try network.run(.seconds(12))
        #expect(try network.reports() == ["published Puma"])
    }

    @Test func `A name that is free again is taken back`() throws {
        network.publish("Puma")
        try network.run(.milliseconds(100))
        daemon.collide()
        try network.run(.seconds(59))
        #expect(try network.reports() == ["up daemon", "published Puma", "published Puma #2"])
        #expect(network.names.queried == ["Puma", "Puma #2"])
        try network.run(.seconds(2))
        #expect(try network.reports() == ["published Puma"])
        #expect(network.names.queried == ["Puma", "Puma #2", "Puma"])
        #expect(daemon.log == ["start", "publish Puma", "publish Puma #2", "unpublish", "publish Puma"])
        #expect(daemon.watches.isEmpty && !network.names.isQuerying)
        try network.run(.seconds(7_200))
        #expect(network.names.queried.count == 3 && network.loop.pending.timers == 0)
    }

    @Test func `A name that is still taken is asked for more and more seldom`() throws {
        network.publish("Puma")
        try network.run(.milliseconds(100))
        daemon.collide()
        _ = try network.reports()
        try network.run(.milliseconds(40))
        for seconds in [60, 120, 240, 480, 960, 1_920, 3_600, 3_600] {
            try network.run(.milliseconds(seconds * 1_000 - 5))
            #expect(!network.names.isQuerying)
            try network.run(.milliseconds(10))
            #expect(network.names.isQuerying && network.names.queried.last == "Puma")
            network.names.answer(.service, claim())
            network.names.answer(.text, [5, 105, 100, 61, 104, 105])
        }
        #expect(try network.reports() == ["published Puma #2"])
        #expect(daemon.log == ["start", "publish Puma", "publish Puma #2"], "it was visible all the time")
        network.call { $0.unpublish() }
        #expect(network.loop.pending.timers == 0)
    }

    @Test func `A text changes while the wanted name is asked for`() throws {
        network.publish("Puma")
        try network.run(.milliseconds(100))
        daemon.collide()
        try network.run(.milliseconds(60_060))
        #expect(network.names.isQuerying)
        network.publish("Puma", text: ["id": "me", "table": "open"])
        try network.run(.milliseconds(100))
        #expect(try network.reports().last == "published Puma")
        #expect(daemon.published?.text.entries.map(\.key) == ["id", "table"])
    }

    /// An attacker who forges a conflict about each name must not make this side announce new names all the time.
    @Test func `Collisions without end are answered in pauses`() throws {
        network.publish("Puma")
        for _ in 0..<1_200 {
            try network.run(.milliseconds(50))
            if daemon.published != nil { daemon.collide() }
        }
        let published = daemon.log.count { $0.hasPrefix("publish ") }
        #expect(published > 15 && published <= 15 * 7, "\(published) in a minute")
        try network.run(.seconds(6))
        #expect(daemon.published != nil)
    }

    @Test func `Text changes in place`() throws {
        network.publish("Puma")
        try network.run(.milliseconds(100))
        network.publish("Puma", text: ["id": "me", "table": "open"])
        #expect(daemon.log == ["start", "publish Puma", "text"])
        #expect(daemon.published?.text.entries.map(\.key) == ["id", "table"])
        #expect(try network.reports() == ["up daemon", "published Puma"])
    }

    @Test func `Text may change before it is published`() throws {
        network.publish("Puma")
        network.publish("Puma", text: ["id": "me", "table": "open"])
        try network.run(.milliseconds(100))
        #expect(daemon.log == ["start", "publish Puma"])
        #expect(daemon.published?.text.entries.map(\.key) == ["id", "table"])
    }

    @Test func `Another name or port replaces it`() throws {
        network.publish("Puma")
        try network.run(.milliseconds(100))
        network.publish("Lynx")
        try network.run(.milliseconds(100))
        // Others remember the old port for a while. That is not another program's claim.
        network.publish("Lynx", port: 4_001)
        network.names.answer(.service, claim(4_000, host: "own.local"))
        try network.run(.milliseconds(100))
        #expect(
            daemon.log == ["start", "publish Puma", "unpublish", "publish Lynx", "unpublish", "publish Lynx"])
        #expect(try network.reports() == ["up daemon", "published Puma", "published Lynx"])
        network.call { $0.unpublish() }
        #expect(daemon.published == nil)
    }

    @Test func `A new host name publishes again`() throws {
        network.publish("Puma")
        try network.run(.milliseconds(100))
        daemon.up(as: "own-2.local")
        try network.run(.milliseconds(100))
        #expect(daemon.published?.service.host == DomainName(literal: "own-2.local"))
        #expect(daemon.log == ["start", "publish Puma", "unpublish", "publish Puma"])
    }

    @Test func `A failure is reported and retried`() throws {
        daemon.succeedsAtOnce = false
        network.publish("Puma")
        try network.run(.milliseconds(100))
        let error = AvahiProblem.error(-50, .advertising, message: "")
        daemon.events?.publicationFailed(daemon, error)
        #expect(
            try network.reports() == [
                "up daemon",
                "publishing failed: avahi-daemon is configured not to publish services of other programs",
            ])
        daemon.succeedsAtOnce = true
        try network.run(.seconds(11))
        #expect(try network.reports() == ["published Puma"])
    }

    /// Otherwise a program that stops publishing before the next attempt would stay visible.
    @Test func `A service whose text cannot be changed is withdrawn`() throws {
        network.publish("Puma")
        try network.run(.milliseconds(100))
        network.publish("Puma", text: ["id": "me", "table": "open"])
        daemon.events?.publicationFailed(daemon, AvahiProblem.error(-50, .advertising, message: ""))
        #expect(daemon.published == nil)
        network.call { $0.unpublish() }
        try network.run(.seconds(11))
        #expect(daemon.published == nil)
        #expect(daemon.log == ["start", "publish Puma", "text", "unpublish"])
    }

    @Test func `The own service is marked as own`() throws {
        network.publish("Puma")
        network.browse()
        try network.run(.milliseconds(100))
        daemon.announce("Puma", host: "own.local", port: 4_000)
        daemon.announce("Lynx", host: "own.local", port: 4_001)
        #expect(
            Set(try network.reports()) == [
                "up daemon", "published Puma", "found Puma%2 own.local:4000 10.0.0.9 v=1 own",
                "found Lynx%2 own.local:4001 10.0.0.9 v=1",
            ])
    }

    @Test(arguments: [
        ("Puma", "Puma #2"), ("Puma #2", "Puma #3"), ("Puma #9", "Puma #10"), ("Puma #", "Puma # #2"),
        ("Puma #x", "Puma #x #2"), ("Puma #02", "Puma #02 #2"), ("#2", "#2 #2"), (" #2", " #3"),
        ("Puma #99999999999999999999", "Puma #99999999999999999999 #2"),
        (String(repeating: "ä", count: 31), String(repeating: "ä", count: 30) + " #2"),
    ])
    func `Alternative names are numbered and fit the limit`(_ pair: (String, String)) {
        #expect(ServicePublisher.alternative(to: pair.0) == pair.1)
        #expect(pair.1.utf8.count <= 63)
    }
}
