import Glibc

/// Two hosts that cannot reach each other, and others that can reach both.
enum Carriers {
    static let all = [
        Scenario(
            "carried",
            "two hosts that a filter keeps apart talk through a third; without the filter they talk directly",
            limit: .seconds(180)
        ) { lab throws(Failure) in
            let (puma, lynx, carriers) = try setUp(lab, carriers: 1)
            try lab.wait(for: "both to be connected through the third", within: .seconds(20)) {
                puma.isCarried(to: lynx) && lynx.isCarried(to: puma)
            }
            try lab.exchangeMessages(puma, lynx)
            try lab.sendSteadily(puma, lynx)
            try puma.host.filter()
            try lab.wait(for: "the conversation to move to a direct connection", within: .seconds(90)) {
                puma.view(of: lynx).transports.last == "tcp" && lynx.view(of: puma).transports.last == "tcp"
            }
            lab.step("the third is killed")
            carriers[0].signal(SIGKILL)
            try lab.pass(.seconds(2))
            try lab.stopSending(puma, lynx)
            try lab.check(
                "it is still one conversation",
                Lifelines.isUnbroken(puma, lynx) && Lifelines.isUnbroken(lynx, puma))
        },
        Scenario(
            "carried-explained",
            "two hosts that a filter keeps apart: the doctor says why, and the map shows who carries",
            limit: .seconds(120)
        ) { lab throws(Failure) in
            let (puma, lynx, carriers) = try setUp(lab, carriers: 1)
            try lab.wait(for: "both to be connected through the third", within: .seconds(20)) {
                puma.isCarried(to: lynx) && lynx.isCarried(to: puma)
            }
            let ocelot = "tcp://\(carriers[0].host.address()):\(try carriers[0].port())"
            let session = ["-s", "lab", "-t", "tcp:mdns=off", "--through", ocelot]
            let said = try puma.host.doctor(["--peer", "Lynx", "--timeout", "5s"] + session)
            try lab.check(
                "the third says how it reaches the other",
                said.finding("peer.through", "pass")?.contains("Lynx") == true)
            try lab.check("both use tcp", said.finding("peer.common", "pass") != nil)
            try lab.check(
                "the other's address does not answer",
                said.finding("peer.address", "fail")?.contains("no answer") == true)
            try lab.check(
                "and the third carries",
                said.finding("peer.carried", "pass")?.contains("through Ocelot") == true)
            try lab.check("the status is 1", said.status == 1)
            // A map counts as complete after 2 s without a change, in which a busy machine may get nothing done.
            let nigh = ["env", "XDG_DATA_HOME=\(Host.dataFolder)", try Spawning.path(of: "nigh")]
            let options = ["peers", "--map", "--once", "--relays", "everyone"]
            var isWhole = false
            var attempts = 0
            repeat {
                let map = try puma.host.run(nigh + options + session, within: .seconds(30))
                for line in map { lab.journal.note("puma/map", line) }
                isWhole = map.contains {
                    $0.contains("Lynx (") && $0.contains("Puma (") && $0.contains("through Ocelot (")
                }
                attempts += 1
            } while attempts < 5 && !isWhole
            try lab.check("the map names the third between the two", isWhole)
        },
        Scenario(
            "carrier-killed", "of two hosts that carry a conversation one dies, then the other",
            limit: .seconds(180)
        ) { lab throws(Failure) in
            let (puma, lynx, carriers) = try setUp(lab, carriers: 2)
            try lab.wait(for: "both to be connected through another", within: .seconds(20)) {
                puma.isCarried(to: lynx) && lynx.isCarried(to: puma)
            }
            try lab.sendSteadily(puma, lynx)
            // The pair uses the carrier with the smaller PeerID first.
            let inOrder = carriers.sorted { $0.id < $1.id }
            inOrder[0].signal(SIGKILL)
            let before = (puma.received(from: lynx).count, lynx.received(from: puma).count)
            try lab.wait(for: "messages to flow through the other one", within: .seconds(30)) {
                puma.received(from: lynx).count > before.0 + 50
                    && lynx.received(from: puma).count > before.1 + 50
            }
            try lab.stopSending(puma, lynx)
            try lab.check(
                "it is still one conversation",
                Lifelines.isUnbroken(puma, lynx) && Lifelines.isUnbroken(lynx, puma))
            inOrder[1].signal(SIGKILL)
            try lab.wait(for: "both to be told that the conversation is over", within: .seconds(60)) {
                !Lifelines.isUnbroken(puma, lynx) && !Lifelines.isUnbroken(lynx, puma)
            }
        },
    ]

    static func options(_ transport: String) -> PeerProcess.Options {
        var options = PeerProcess.Options.over(transport)
        options.isMesh = true
        options.hasRelays = true
        return options
    }

    /// Two hosts that are kept apart, each connected to all carriers.
    private static func setUp(
        _ lab: Lab, carriers count: Int
    ) throws(Failure) -> (PeerProcess, PeerProcess, [PeerProcess]) {
        let options = options("tcp:mdns=off")
        let hosts = [
            try lab.host("puma", addresses: .version4), try lab.host("lynx", addresses: .version4),
        ]
        let other = hosts[1].address()
        try hosts[0].filter(in: "ip saddr \(other) drop", out: "ip daddr \(other) drop")
        let (puma, lynx) = (try hosts[0].peer("Puma", options), try hosts[1].peer("Lynx", options))
        var carriers: [PeerProcess] = []
        for name in ["Ocelot", "Serval"].prefix(count) {
            let carrier = try lab.host(name.lowercased(), addresses: .version4).peer(name, options)
            try lab.wait(for: "\(name) to listen") { !carrier.listening.isEmpty }
            for peer in [puma, lynx] { peer.call(carrier) }
            try lab.wait(for: "both to be connected to \(name)") {
                puma.isConnected(to: carrier) && lynx.isConnected(to: carrier)
            }
            carriers.append(carrier)
        }
        return (puma, lynx, carriers)
    }
}

extension PeerProcess {
    /// Whether it is connected to another one through a third.
    func isCarried(to other: PeerProcess) -> Bool {
        isConnected(to: other) && view(of: other).transports.last == "via"
    }
}
