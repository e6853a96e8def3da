import Glibc

/// Peers that talk over servers of NATS.
enum Brokers {
    static let all = [
        Scenario(
            "nats-cluster",
            "a cluster of three servers: two hosts, each with a server of its own, find each other and talk"
        ) { lab throws(Failure) in
            let (cluster, puma, lynx) = try meet(lab)
            let used = [try cluster.server(of: puma).host.name, try cluster.server(of: lynx).host.name]
            try lab.check(
                "each uses the server that it was given: \(used)",
                used == cluster.servers.prefix(2).map(\.host.name))
            lab.suggestions = suggestions(cluster)
        },
        Scenario(
            "nats-cluster-killed",
            "the server of one peer is killed, then that of the other, again and again: nothing is lost or doubled",
            limit: .seconds(60 + Calling.rounds * 20)
        ) { lab throws(Failure) in
            let (cluster, puma, lynx) = try meet(lab)
            try lab.sendSteadily(puma, lynx)
            var silences: [Duration] = []
            for round in 0..<Calling.rounds {
                let server = try cluster.server(of: round % 2 == 0 ? puma : lynx)
                let others = (try cluster.server(of: puma).host.name, try cluster.server(of: lynx).host.name)
                let before = (puma.received(from: lynx).count, lynx.received(from: puma).count)
                let start = lab.journal.now
                try server.kill()
                try lab.wait(for: "messages to flow again") {
                    puma.received(from: lynx).count > before.0 + 50
                        && lynx.received(from: puma).count > before.1 + 50
                }
                let silence = max(
                    puma.longestSilence(of: lynx, since: start), lynx.longestSilence(of: puma, since: start))
                silences.append(silence)
                lab.step(
                    "round \(round + 1): \(server.host.name) killed, used were \(others.0) and \(others.1): "
                        + "\(silence.written) s")
                try server.start()
                try cluster.waitUntilComplete()
            }
            try lab.stopSending(puma, lynx)
            try lab.check(
                "it is still one conversation",
                Lifelines.isUnbroken(puma, lynx) && Lifelines.isUnbroken(lynx, puma))
            silences.sort()
            let median = silences[silences.count / 2]
            try lab.check(
                "of \(silences.count) silences, the median of \(median.written) s is at most 1 s; the longest is "
                    + "\(silences[silences.count - 1].written) s", median <= .seconds(1))
        },
        Scenario(
            "nats-server-unplugged",
            "the cable of the server that both peers use is pulled: they go on at another, nothing is lost or doubled",
            limit: .seconds(120)
        ) { lab throws(Failure) in
            let cluster = try NATSCluster(in: lab)
            let server = cluster.servers[0]
            var peers: [PeerProcess] = []
            for name in ["Puma", "Lynx"] {
                peers.append(try lab.host(name.lowercased()).peer(name, .over(server.spec())))
            }
            let (puma, lynx) = (peers[0], peers[1])
            try lab.meet(puma, lynx)
            try lab.sendSteadily(puma, lynx)
            let before = (puma.received(from: lynx).count, lynx.received(from: puma).count)
            let start = lab.journal.now
            for name in ["eth0", "eth1"] { try server.host.setLink(name, isUp: false) }
            // The client gives up a server that has not answered for 10 s.
            try lab.wait(for: "messages to flow again", within: .seconds(30)) {
                puma.received(from: lynx).count > before.0 + 50
                    && lynx.received(from: puma).count > before.1 + 50
            }
            lab.step("the silence was \(puma.longestSilence(of: lynx, since: start).written) s")
            try lab.stopSending(puma, lynx)
            try lab.check(
                "it is still one conversation",
                Lifelines.isUnbroken(puma, lynx) && Lifelines.isUnbroken(lynx, puma))
        },
        Scenario(
            "nats-slow-reader",
            "a peer stands still while two others send to it: the server keeps it, and pings of others stay short"
        ) { lab throws(Failure) in
            let server = try NATSServerProcess(on: lab.host("ibis"), ["max_pending: 1MB"])
            let names = ["Puma", "Lynx", "Ocelot"]
            var peers: [PeerProcess] = []
            for name in names {
                peers.append(try lab.host(name.lowercased()).peer(name, .over(server.spec())))
            }
            let (puma, lynx, ocelot) = (peers[0], peers[1], peers[2])
            for (one, other) in [(puma, lynx), (ocelot, lynx), (puma, ocelot)] {
                try lab.meet(one, other)
            }
            lynx.signal(SIGSTOP)
            let pongs = puma.view(of: ocelot).pongs
            for sender in [puma, ocelot] { sender.send(to: lynx, size: 16 << 10) }
            for count in 1...10 {
                // The subject is what happens while nothing is read.
                try lab.pass(.milliseconds(300))
                puma.ping(ocelot)
                try lab.wait(for: "a pong") { puma.view(of: ocelot).pongs == pongs + count }
            }
            let slowest = puma.view(of: ocelot).slowestRoundTrip ?? .zero
            lynx.signal(SIGCONT)
            for sender in [puma, ocelot] {
                sender.stopSending()
                // What a task was sending then is either accepted and reported, or neither.
                let before = sender.view(of: lynx).pongs
                sender.ping(lynx)
                try lab.wait(for: "the last message to be sent") { sender.view(of: lynx).pongs > before }
                try lab.delivery(sender, lynx)
            }
            try lab.check(
                "the slowest of ten pings between the others took \(slowest.written) s, at most 0.5 s",
                slowest <= .milliseconds(500))
            try lab.check("the server has nothing to complain of", server.complaints.isEmpty)
            try lab.check(
                "no link broke",
                peers.allSatisfy { peer in
                    peer.views.values.allSatisfy { view in
                        !view.states.contains { ["reconnecting", "disconnected"].contains($0.state) }
                    }
                })
        },
        Scenario(
            "game-nats-two-ways",
            "a game moves from the wire to a server when the wire is cut, and back when it is there again",
            limit: .seconds(120)
        ) { lab throws(Failure) in
            // Each player has a network of its own with the server, and nothing joins the two.
            let hosts = [try lab.host("puma"), try lab.host("lynx")]
            let ibis = try lab.host("ibis", addresses: .version4, on: "west")
            try ibis.plug("eth1", into: "east", .version4)
            let server = try NATSServerProcess(on: ibis)
            var specs: [String] = []
            for (host, network) in zip(hosts, ["west", "east"]) {
                try host.plug("eth1", into: network, .version4)
                specs.append("tcp:mdns=embedded,\(server.spec(on: network))")
            }
            let puma = try hosts[0].game("Puma", ["host", "--plain"], over: specs[0])
            let lynx = try hosts[1].game("Lynx", ["--plain"], over: specs[1])
            try lynx.waitForOutput("Puma, a free seat, over tcp or nats", within: .seconds(20))
            lynx.type("j 1")
            let game = try TypedGame.begin(puma, lynx)
            try puma.waitForOutput("Lynx wants to play, over tcp.")
            game.timeout = .seconds(40)
            let moves = Games.moves[0]
            try game.play(Array(moves.prefix(5)))
            // First the interface goes, which one side notices at once, and then a plug is pulled, which neither does.
            let cuts: [(move: Int, transport: String, cut: (Host) throws(Failure) -> Void)] = [
                (5, "nats", { host throws(Failure) in try host.ip(["link set eth0 down"]) }),
                (12, "tcp", { host throws(Failure) in try host.ip(["link set eth0 up"]) }),
                (19, "nats", { host throws(Failure) in try host.setLink(isUp: false) }),
            ]
            for (number, transport, cut) in cuts {
                let before = (puma.lines.count, lynx.lines.count)
                try cut(hosts[1])
                try game.play(moves[number]) { () throws(Failure) in
                    let words = "The game goes on over \(transport)."
                    try puma.waitForOutput(words, after: before.0, within: .seconds(40))
                    try lynx.waitForOutput(words, after: before.1, within: .seconds(40))
                }
                try game.play(Array(moves[(number + 1)..<min(number + 7, moves.count)]))
            }
            try game.play(Array(moves.dropFirst(26)))
            try game.isWon()
            for side in [puma, lynx] {
                try lab.check("\(side.name) was not left", !side.hasPrinted("left the table"))
            }
        },
    ]

    /// Starts a cluster and two peers, each with another server, and connects the peers.
    static func meet(
        _ lab: Lab, grace: Int? = nil
    ) throws(Failure) -> (NATSCluster, PeerProcess, PeerProcess) {
        let cluster = try NATSCluster(in: lab)
        var peers: [PeerProcess] = []
        for (name, server) in zip(["Puma", "Lynx"], cluster.servers) {
            var options = PeerProcess.Options.over(server.spec())
            options.grace = grace
            peers.append(try lab.host(name.lowercased()).peer(name, options))
        }
        try lab.meet(peers[0], peers[1])
        return (cluster, peers[0], peers[1])
    }

    /// What a person may try with a cluster.
    private static func suggestions(_ cluster: NATSCluster) -> [String] {
        let specs = cluster.servers.map { $0.spec() }
        let first = cluster.servers[0].host.name
        return [
            "Each of these takes a server of its own; the peers learn of the others:",
            "  on puma nigh host --name Puma -t \(specs[0]) &",
            "  on lynx nigh ping Puma -t \(specs[1])",
            "  on puma nigh doctor -t \(specs[2])",
            "A server is killed, and started again:",
            "  kill -9 $(cat \(cluster.servers[0].host.path("nats.pid")))",
            "  on \(first) nats-server --config /run/nats.conf &",
        ]
    }
}

extension Duration {
    /// Seconds, with three digits behind the point.
    var written: String { String(Journal.seconds(self).drop { $0 == " " }) }
}
