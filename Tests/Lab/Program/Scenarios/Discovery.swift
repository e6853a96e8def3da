import Glibc
import NighLoop

/// Discovery with foreign records, names that are taken, and firewalls.
enum Discovery {
    static let all =
        Scenario.withoutAndWithDaemons("multicast-blocked", "no multicast: an address by hand works, as told")
    {
        try blocked($0, daemon: $1) { try $0.dropMulticast() }
    } + [
        Scenario("multicast-blocked-inbound", "the same if only inbound multicast is dropped") { lab in
            try blocked(lab, daemon: false) {
                try $0.filter(in: #"iifname != "lo" udp dport 5353 drop"#)
            }
        },
        Scenario("ordinary-dns-sd", "Avahi's tools see our records, and theirs are seen if they are right") {
            try ordinary($0)
        },
    ]
        + Scenario.withoutAndWithDaemons(
            "same-name", "of two hosts named Puma one becomes Puma #2, both are seen"
        ) {
            try sameName($0, daemon: $1)
        }

    private static func blocked(_ lab: Lab, daemon: Bool, _ block: (Host) throws -> Void) throws {
        let hosts = try ["puma", "lynx"].map { try lab.host($0, daemon: daemon) }
        for host in hosts { try block(host) }
        let pair = Pair(try hosts[0].peer("Puma"), try hosts[1].peer("Lynx"))
        try pair.callByHand()
        try pair.exchangeMessages()
        for peer in pair.peers {
            try lab.wait(for: "\(peer.name) to say that multicast is blocked", within: .seconds(20)) {
                peer.troubles.contains { $0.contains("looking for peers") && $0.contains("multicast") }
            }
        }
        try lab.check("nobody was found", !pair.directions.contains { $0.finds($1) })
    }

    private static func sameName(_ lab: Lab, daemon: Bool) throws {
        let lynx = try lab.host("lynx", daemon: daemon).peer("Lynx")
        let first = try lab.host("one", daemon: daemon).peer("Puma")
        try Pair(lynx, first).find()
        // Nobody repeats a record within a second of sending it. A peer that comes earlier may not hear that its name
        // is taken, and then either of the two takes another name.
        try lab.pass(.seconds(2))
        let host = try lab.host("two", daemon: daemon)
        let pace = lab.pace()
        let second = try host.peer("Puma")
        try lab.wait(for: "Lynx to see both, under two names", within: .seconds(20)) {
            lynx.finds(first) && lynx.finds(second)
                && Set([lynx.view(of: first).name, lynx.view(of: second).name]) == ["Puma", "Puma #2"]
        }
        try lab.wait(for: "both to be told which name is theirs") {
            [first, second].allSatisfy { $0.advertisedName == lynx.view(of: $0).name }
        }
        // A new peer listens for only some hundredths of a second, and hears no peer that gets no processor in that
        // time.
        let share = pace()
        let isFirstKept = lynx.view(of: first).name == "Puma"
        try lab.check(
            "the first kept its name, or does not get to speak, at a pace of 1 in \(share)",
            isFirstKept || share > 1.5)
        try lab.check(
            "the first was never lost, if it kept its name",
            !isFirstKept || !lynx.view(of: first).states.contains { $0.state == "unavailable" })
        let name = lynx.view(of: second).name
        try Pair(first, second).find()
        for peer in [first, second] { try Pair(lynx, peer).meet() }
        try lab.check("Lynx knows two peers", lynx.views.count == 2)
        try lab.check(
            "they are told apart also once they are connected", lynx.view(of: second).name == name)
    }

    private static func ordinary(_ lab: Lab) throws {
        let lynxHost = try lab.host("lynx", daemon: true)
        let puma = try lab.host("puma").peer("Puma", .embedded.adding("--info", "mood=glad"))
        let lynx = try lynxHost.peer("Lynx", .daemon.adding("--info", "mood=calm"))
        let pair = Pair(puma, lynx)
        try pair.find()
        lab.step("Avahi's browser sees us")
        for (peer, mood) in [(puma, "glad"), (lynx, "calm")] {
            let words = [
                ";\(peer.name);_lab._tcp;local;", ";\(try peer.port());", "\"v=1\"", "\"id=\(peer.id)\"",
                "\"mood=\(mood)\"",
            ]
            try lynxHost.browse("_lab._tcp", until: "\(peer.name) with its port and TXT") { line in
                words.allSatisfy(line.contains)
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
        let ocelot = try lynxHost.peer("Ocelot", .byHand)
        try lab.wait(for: "Ocelot to listen") { !ocelot.listening.isEmpty }
        let text = ["v=1", "id=\(ocelot.id)", "mood=wild"]
        let record = try lynxHost.start(
            ["avahi-publish", "-s", "Ocelot", "_lab._tcp", "\(ocelot.port())"] + text, mayEnd: true)
        try lab.wait(for: "both to find Ocelot") { pair.peers.allSatisfy { $0.finds(ocelot) } }
        try lab.check("with what the record says", puma.view(of: ocelot).info == ["mood=wild"])
        try Pair(puma, ocelot).invite()
        try Pair(puma, ocelot).exchangeMessages()
        try lab.check("the wrong ones are nobody", pair.peers.allSatisfy { $0.views.count == 2 })
        record.signal(SIGTERM)
        try lab.wait(for: "both to lose Ocelot again") { !pair.peers.contains { $0.finds(ocelot) } }
        try lab.check("the conversation does not depend on it", puma.isConnected(to: ocelot))
    }
}
