import Glibc
import NighLoop

/// Discovery with foreign records, names that are taken, and firewalls.
enum Discovery {
    static let all = [
        Scenario("multicast-blocked", "no multicast: an address by hand works, and the reason is reported") {
            lab throws(Failure) in
            try blocked(lab, daemon: false) { host throws(Failure) in
                try host.dropMulticast()
            }
        },
        Scenario("multicast-blocked-daemon", "the same with daemons") { lab throws(Failure) in
            try blocked(lab, daemon: true) { host throws(Failure) in try host.dropMulticast() }
        },
        Scenario("multicast-blocked-inbound", "the same if only inbound multicast is dropped") {
            lab throws(Failure) in
            try blocked(lab, daemon: false) { host throws(Failure) in
                try host.filter(in: #"iifname != "lo" udp dport 5353 drop"#)
            }
        },
        Scenario("same-name", "two hosts named Puma: the second becomes Puma #2, both are seen") {
            lab throws(Failure) in try sameName(lab, daemon: false)
        },
        Scenario("same-name-daemon", "the same with daemons") { lab throws(Failure) in
            try sameName(lab, daemon: true)
        },
        Scenario(
            "ordinary-dns-sd", "Avahi's tools see our records, and theirs show up as a peer if they are right"
        ) {
            lab throws(Failure) in try ordinary(lab)
        },
    ]

    private static func blocked(
        _ lab: Lab, daemon: Bool, _ block: (Host) throws(Failure) -> Void
    ) throws(Failure) {
        let hosts = [try lab.host("puma", daemon: daemon), try lab.host("lynx", daemon: daemon)]
        for host in hosts { try block(host) }
        let puma = try hosts[0].peer("Puma", Findings.byItself)
        let lynx = try hosts[1].peer("Lynx", Findings.byItself)
        try lab.wait(for: "Puma to listen") { !puma.listening.isEmpty }
        lynx.sendCommand("call tcp://\(hosts[0].address()):\(try puma.port())")
        try lab.connection(of: puma, lynx)
        try lab.exchangeMessages(puma, lynx)
        for peer in [puma, lynx] {
            try lab.wait(for: "\(peer.name) to say that multicast is blocked", within: .seconds(20)) {
                peer.troubles.contains { $0.contains("looking for peers") && $0.contains("multicast") }
            }
        }
        try lab.check("nobody was found", !puma.finds(lynx) && !lynx.finds(puma))
    }

    private static func sameName(_ lab: Lab, daemon: Bool) throws(Failure) {
        let lynx = try lab.host("lynx", daemon: daemon).peer("Lynx", Findings.byItself)
        let first = try lab.host("one", daemon: daemon).peer("Puma", Findings.byItself.kept(in: "one.pem"))
        try lab.find(lynx, first)
        // Nobody repeats a record within a second of sending it. A peer that comes earlier may not hear that its name
        // is taken, and then either of the two takes another name.
        try lab.pass(.seconds(2))
        let host = try lab.host("two", daemon: daemon)
        let (start, elapsed) = (lab.journal.now, lab.elapsed)
        let second = try host.peer("Puma", Findings.byItself.kept(in: "two.pem"))
        try lab.wait(for: "Lynx to see both, under two names", within: .seconds(20)) {
            lynx.finds(first) && lynx.finds(second)
                && Set([lynx.view(of: first).name, lynx.view(of: second).name]) == ["Puma", "Puma #2"]
        }
        try lab.wait(for: "both to be told which name is theirs") {
            [first, second].allSatisfy { $0.advertisedName == lynx.view(of: $0).name }
        }
        // A new peer listens for only some hundredths of a second, and hears no peer that gets no processor in that
        // time.
        let share = (lab.journal.now - start) / (lab.elapsed - elapsed)
        let isFirstKept = lynx.view(of: first).name == "Puma"
        try lab.check(
            "the first kept its name, or does not get to speak, at a pace of 1 in \(share)",
            isFirstKept || share > 1.5)
        if isFirstKept {
            try lab.check(
                "the first was never lost",
                !lynx.view(of: first).states.contains { $0.state == "unavailable" })
        }
        let name = lynx.view(of: second).name
        try lab.find(first, second)
        try lab.meet(lynx, first)
        try lab.meet(lynx, second)
        try lab.check("Lynx knows two peers", lynx.views.count == 2)
        try lab.check(
            "they are told apart also once they are connected", lynx.view(of: second).name == name)
    }

    private static func ordinary(_ lab: Lab) throws(Failure) {
        let pumaHost = try lab.host("puma")
        let lynxHost = try lab.host("lynx", daemon: true)
        var options = Findings.embedded
        options.info = ["mood=glad"]
        let puma = try pumaHost.peer("Puma", options)
        options = Findings.daemon
        options.info = ["mood=calm"]
        let lynx = try lynxHost.peer("Lynx", options)
        try lab.find(puma, lynx)
        lab.step("Avahi's browser sees us")
        for (peer, mood) in [(puma, "glad"), (lynx, "calm")] {
            let port = try peer.port()
            try lynxHost.browse("_lab._tcp", until: "\(peer.name) with its port and TXT") { line in
                line.contains(";\(peer.name);_lab._tcp;local;") && line.contains(";\(port);")
                    && line.contains("\"v=1\"") && line.contains("\"id=\(peer.id)\"")
                    && line.contains("\"mood=\(mood)\"")
            }
        }
        lab.step("records that are not ours")
        let stranger = Identity.ephemeral().peerID
        let wrong = [
            ["Silent"], ["NoIdentity", "v=1"], ["BadIdentity", "v=1", "id=nonsense"],
            ["NoVersion", "id=\(stranger)"],
        ]
        for record in wrong {
            let command = ["avahi-publish", "-s", record[0], "_lab._tcp", "4712"] + record.dropFirst()
            _ = try lynxHost.start(command, mayEnd: true)
            try lynxHost.browse("_lab._tcp", until: record[0]) {
                $0.contains(";\(record[0]);_lab._tcp;local;")
            }
        }
        lab.step("a record by hand that is right, for a session that has no discovery")
        let ocelot = try lynxHost.peer("Ocelot", .over("tcp:mdns=off"))
        try lab.wait(for: "Ocelot to listen") { !ocelot.listening.isEmpty }
        let record = try lynxHost.start(
            [
                "avahi-publish", "-s", "Ocelot", "_lab._tcp", "\(ocelot.port())", "v=1", "id=\(ocelot.id)",
                "mood=wild",
            ], mayEnd: true)
        try lab.wait(for: "both to find Ocelot") { puma.finds(ocelot) && lynx.finds(ocelot) }
        try lab.check("with what the record says", puma.view(of: ocelot).info == ["mood=wild"])
        puma.invite(ocelot)
        try lab.connection(of: puma, ocelot)
        try lab.exchangeMessages(puma, ocelot)
        try lab.check("the wrong ones are nobody", puma.views.count == 2 && lynx.views.count == 2)
        record.signal(SIGTERM)
        try lab.wait(for: "both to lose Ocelot again") { !puma.finds(ocelot) && !lynx.finds(ocelot) }
        try lab.check("the conversation does not depend on it", puma.isConnected(to: ocelot))
    }
}
