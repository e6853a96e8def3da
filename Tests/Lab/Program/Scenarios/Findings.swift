/// Peers that find each other and talk, in every combination of hosts and daemons.
enum Findings {
    static let embedded = PeerProcess.Options.over("tcp:mdns=embedded")
    static let daemon = PeerProcess.Options.over("tcp:mdns=daemon")
    /// The default of most programs: the daemon if there is one, otherwise embedded.
    static let byItself = PeerProcess.Options.over("tcp")

    static let all = [
        Scenario("two-hosts-embedded", "two hosts without daemons find each other and talk") {
            lab throws(Failure) in
            try twoMeetSoon(lab, on: lab.host("puma"), lab.host("lynx"))
        },
        Scenario("two-hosts-daemon", "two hosts with a daemon each find each other and talk") {
            lab throws(Failure) in
            try twoMeetSoon(lab, on: lab.host("puma", daemon: true), lab.host("lynx", daemon: true))
        },
        Scenario("daemon-and-embedded", "a host with a daemon and one without find each other and talk") {
            lab throws(Failure) in
            try twoMeetSoon(lab, on: lab.host("puma", daemon: true), lab.host("lynx"))
        },
        Scenario("link-local-only", "two hosts that have only IPv6 link-local addresses") {
            lab throws(Failure) in
            let puma = try lab.host("puma", addresses: .linkLocal)
            try twoMeetSoon(lab, on: puma, lab.host("lynx", addresses: .linkLocal))
        },
        Scenario("link-local-daemon", "the same with a daemon each") { lab throws(Failure) in
            let puma = try lab.host("puma", daemon: true, addresses: .linkLocal)
            try twoMeetSoon(lab, on: puma, lab.host("lynx", daemon: true, addresses: .linkLocal))
        },
        Scenario("one-host-embedded", "two terminals on one host without a daemon") { lab throws(Failure) in
            let puma = try lab.host("puma")
            try twoMeetSoon(lab, on: puma, puma)
        },
        Scenario("one-host-daemon", "two terminals on one host with a daemon") { lab throws(Failure) in
            let puma = try lab.host("puma", daemon: true)
            try twoMeetSoon(lab, on: puma, puma)
        },
        Scenario("one-host-mixed", "on one host, one by its daemon and one embedded") { lab throws(Failure) in
            let puma = try lab.host("puma", daemon: true)
            try twoMeetSoon(lab, on: puma, puma, daemon, embedded)
        },
        Scenario(
            "five-hosts", "five hosts, two with daemons, all find each other and talk", limit: .seconds(90)
        ) {
            lab throws(Failure) in
            let names = ["Puma", "Lynx", "Ocelot", "Serval", "Margay"]
            var peers: [PeerProcess] = []
            for (index, name) in names.enumerated() {
                let host = try lab.host(name.lowercased(), daemon: index < 2)
                peers.append(try host.peer(name, byItself.meeting))
            }
            try lab.wait(for: "everybody to be connected to everybody", within: .seconds(20)) {
                pairs(of: peers).allSatisfy { $0.isConnected(to: $1) && $0.finds($1) }
            }
            for (one, other) in pairs(of: peers) { one.send(50, to: other, size: 2_000) }
            try lab.wait(for: "50 messages between all of them", within: .seconds(20)) {
                pairs(of: peers).allSatisfy { $1.received(from: $0).count == 50 }
            }
            try lab.check("nobody was told of trouble", peers.allSatisfy(\.troubles.isEmpty))
            try lab.check(
                "each knows the four others and nobody else", peers.allSatisfy { $0.views.count == 4 })
        },
    ]

    /// Starts one peer, and the second when the first listens. Both must be connected within 2 s of the second's start.
    private static func twoMeetSoon(
        _ lab: Lab, on first: Host, _ second: Host, _ one: PeerProcess.Options = byItself,
        _ other: PeerProcess.Options = byItself
    ) throws(Failure) {
        let puma = try first.peer("Puma", one.meeting)
        try lab.wait(for: "Puma to listen") { !puma.listening.isEmpty }
        let start = lab.elapsed
        let lynx = try second.peer("Lynx", other.meeting)
        try lab.connection(of: puma, lynx)
        let span = lab.elapsed - start
        try lab.find(puma, lynx)
        try lab.check(
            "they were connected within 2 s of a processor's time, after "
                + "\(Journal.seconds(span).drop { $0 == " " }) s",
            span < .seconds(2))
        try lab.exchangeMessages(puma, lynx)
        try lab.check("each knows the other and nobody else", puma.views.count == 1 && lynx.views.count == 1)
        // A report of firewalls or missing daemons where there are none is as bad as silence where there are some.
        try lab.check("nobody was told of trouble", puma.troubles.isEmpty && lynx.troubles.isEmpty)
    }

    /// All pairs of different peers, in both orders.
    private static func pairs(of peers: [PeerProcess]) -> [(PeerProcess, PeerProcess)] {
        peers.flatMap { one in peers.filter { $0 !== one }.map { (one, $0) } }
    }
}
