import Glibc

/// Peers that find each other and talk, in every combination of hosts and daemons, and daemons that go, come back or
/// hang.
enum Finding {
    static let all = [
        meeting("two-hosts-embedded", "two hosts without daemons", daemons: [false, false]),
        meeting("two-hosts-daemon", "two hosts with a daemon each", daemons: [true, true]),
        meeting("daemon-and-embedded", "a host with a daemon and one without", daemons: [true, false]),
        meeting(
            "link-local-only", "two hosts with link-local addresses", daemons: [false, false], .linkLocal),
        meeting("link-local-daemon", "the same hosts with daemons", daemons: [true, true], .linkLocal),
        meeting("one-host-embedded", "two terminals on one host without a daemon", daemons: [false]),
        meeting("one-host-daemon", "two terminals on one host with a daemon", daemons: [true]),
        meeting(
            "one-host-mixed", "one by its daemon and one embedded", daemons: [true], .all, .daemon, .embedded),
        Scenario("five-hosts", "five hosts, two with daemons, find each other and talk") { try fiveMeet($0) },
        Scenario("daemon-later", "a daemon comes after the peer, goes and comes again") {
            try daemonComesLate($0)
        },
        Scenario("daemon-comes-and-goes", "without an option, a daemon is used while there is one") {
            try daemonComesAndGoes($0)
        },
        Scenario("daemon-stopped", "a daemon that is stopped does not block the loop") {
            try daemonHangs($0)
        },
    ]

    private static func meeting(
        _ name: String, _ words: String, daemons: [Bool], _ addresses: Host.Addresses = .all,
        _ one: PeerProcess.Options = .byItself, _ other: PeerProcess.Options = .byItself
    ) -> Scenario {
        Scenario(name, "\(words) find each other and talk") { lab in
            let hosts = try zip(["puma", "lynx"], daemons).map { name, hasDaemon in
                try lab.host(name, daemon: hasDaemon, addresses: addresses)
            }
            try twoMeetSoon(hosts[0], hosts[hosts.count - 1], one, other)
        }
    }

    /// Starts one peer, and the second when the first listens. Both must be connected within 2 s of the second's start.
    private static func twoMeetSoon(
        _ first: Host, _ second: Host, _ one: PeerProcess.Options, _ other: PeerProcess.Options
    ) throws {
        let lab = first.lab
        let puma = try first.peer("Puma", one.meeting)
        try lab.wait(for: "Puma to listen") { !puma.listening.isEmpty }
        let start = lab.elapsed
        let pair = Pair(puma, try second.peer("Lynx", other.meeting))
        try pair.connection()
        let span = lab.elapsed - start
        try pair.find()
        try lab.check("they were connected after \(span.written) s of a processor's time", span < .seconds(2))
        try pair.exchangeMessages()
        try pair.checkTheyAreAlone()
        // A report of firewalls or missing daemons where there are none is as bad as silence where there are some.
        try lab.check("nobody was told of trouble", lab.peers.allSatisfy(\.troubles.isEmpty))
    }

    private static func fiveMeet(_ lab: Lab) throws {
        var peers: [PeerProcess] = []
        for (index, name) in ["Puma", "Lynx", "Ocelot", "Serval", "Margay"].enumerated() {
            let host = try lab.host(name.lowercased(), daemon: index < 2)
            peers.append(try host.peer(name, .byItself.meeting))
        }
        let crowd = Crowd(peers)
        try crowd.connection()
        try lab.wait(for: "everybody to find everybody") { crowd.pairs.allSatisfy { $0.finds($1) } }
        try crowd.exchangeMessages(count: 50, size: 2_000)
        try lab.check("nobody was told of trouble", peers.allSatisfy(\.troubles.isEmpty))
        try lab.check("each knows the four others and nobody else", peers.allSatisfy { $0.views.count == 4 })
    }

    private static func daemonComesLate(_ lab: Lab) throws {
        let pumaHost = try lab.host("puma")
        let puma = try pumaHost.peer("Puma", .daemon)
        let lynx = try lab.host("lynx", daemon: true).peer("Lynx", .daemon)
        let pair = Pair(puma, lynx)
        try lab.wait(for: "Puma to name the daemon that is missing") {
            puma.troubles.contains { $0.lowercased().contains("daemon") }
        }
        try pumaHost.startDaemons()
        try pair.meet(findingWithin: .seconds(15))
        try pair.sendSteadily()
        try pumaHost.killDaemon()
        try pair.messageFlow(count: 20)
        try pumaHost.startDaemons()
        let ocelot = try lab.host("ocelot").peer("Ocelot", .embedded)
        try Pair(puma, ocelot).find(within: .seconds(15))
        try pair.find()
        try pair.stopSending()
        try lab.check(
            "the conversation was never broken",
            puma.view(of: lynx).states.count { $0.state == "connected" } == 1)
        try Pair(puma, ocelot).meet()
    }

    private static func daemonComesAndGoes(_ lab: Lab) throws {
        let pair = try lab.pair()
        try pair.meet()
        try pair.sendSteadily()
        for (number, name) in ["Ocelot", "Serval", "Margay"].enumerated() {
            let host = pair.one.host
            if number == 1 { try host.killDaemon() } else { try host.startDaemons() }
            let newcomer = try lab.host(name.lowercased()).peer(name, .embedded)
            for peer in pair.peers { try Pair(peer, newcomer).find(within: .seconds(15)) }
            try pair.find()
        }
        try pair.stopAsOneConversation()
        try lab.check("Puma knows four others", pair.one.views.count == 4)
        try lab.check("nobody had to be told of trouble", lab.peers.allSatisfy(\.troubles.isEmpty))
    }

    private static func daemonHangs(_ lab: Lab) throws {
        let pumaHost = try lab.host("puma", daemon: true)
        let puma = try pumaHost.peer("Puma", .daemon)
        let lynx = try lab.host("lynx").peer("Lynx", .embedded)
        let pair = Pair(puma, lynx)
        try pair.meet()
        lab.step("the daemon is stopped")
        pumaHost.daemon?.signal(SIGSTOP)
        // Everything that makes the transport talk to the daemon.
        for command in ["info mood=patient", "browse off", "browse on", "advertise off", "advertise on"] {
            puma.sendCommand(command)
        }
        let pace = lab.pace()
        for _ in 0..<5 {
            let before = pair.directions.map { $0.view(of: $1).pongs }
            for (one, other) in pair.directions { one.ping(other) }
            try lab.wait(for: "both to answer a ping", within: .seconds(1)) {
                zip(pair.directions, before).allSatisfy { $0.0.view(of: $0.1).pongs > $1 }
            }
            // Time is the subject: a call that waits for the daemon may come later.
            try lab.pass(.milliseconds(500))
        }
        // A call that hangs with the daemon hangs for as long as the daemon does, however busy the machine is.
        let share = pace()
        let slowest = pair.directions.compactMap { $0.view(of: $1).slowestRoundTrip }.max() ?? .zero
        try lab.check(
            "no ping took longer than 250 ms, at a pace of 1 in \(share): \(slowest)",
            slowest < .milliseconds(250) * share)
        lab.step("the daemon goes on")
        pumaHost.daemon?.signal(SIGCONT)
        try lab.wait(for: "Lynx to see what Puma says of itself now", within: .seconds(20)) {
            lynx.view(of: puma).info == ["mood=patient"]
        }
        try pair.exchangeMessages()
    }
}
