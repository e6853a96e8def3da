import Glibc

/// Peers that talk over servers of NATS.
enum Brokers {
    /// How often a server is killed: a few times, or as the environment says.
    private static let rounds = getenv("LAB_ROUNDS").flatMap { Int(String(cString: $0)) } ?? 4

    static let all = [
        Scenario("nats-cluster", "three servers: two hosts, each with a server of its own, talk") { lab in
            let (cluster, pair) = try meet(lab)
            let used = try pair.peers.map { try cluster.server(of: $0).host.name }
            let given = cluster.servers.prefix(2).map(\.host.name)
            try lab.check("each uses the server that it was given: \(used)", used == given)
            lab.suggestions = suggestions(cluster)
        },
        Scenario(
            "nats-cluster-killed", "the servers in use are killed, and one is unplugged: nothing is lost",
            limit: .seconds(120 + rounds * 20)
        ) { try killServers($0) },
        Scenario(
            "nats-partition", "the servers lose each other for some time, and for too long",
            limit: .seconds(240)
        ) {
            try partition($0)
        },
        Scenario("nats-slow-reader", "a peer stands still while two send to it: pings of others stay short") {
            try standStill($0)
        },
        Scenario("game-nats-two-ways", "a game moves from the wire to a server and back") {
            try moveGame($0)
        },
    ]

    /// Starts a cluster and two peers, each with another server, and connects the peers.
    private static func meet(_ lab: Lab) throws -> (NATSCluster, Pair) {
        let cluster = try NATSCluster(in: lab)
        let peers = try zip(["Puma", "Lynx"], cluster.servers).map { name, server in
            try lab.host(name.lowercased()).peer(name, .over(server.spec()))
        }
        let pair = Pair(peers[0], peers[1])
        try pair.meet()
        return (cluster, pair)
    }

    /// Suggestions for a person with a cluster.
    private static func suggestions(_ cluster: NATSCluster) -> [String] {
        let specs = cluster.servers.map { $0.spec() }
        let first = cluster.servers[0].host
        return [
            "Each of these takes a server of its own; the peers learn of the others:",
            "  on puma nigh host --name Puma -t \(specs[0]) &",
            "  on lynx nigh ping Puma -t \(specs[1])",
            "  on puma nigh doctor -t \(specs[2])",
            "A server is killed, and started again:",
            "  kill -9 $(cat \(first.path("nats.pid")))",
            "  on \(first.name) nats-server --config /run/nats.conf &",
        ]
    }

    private static func killServers(_ lab: Lab) throws {
        let (cluster, pair) = try meet(lab)
        try pair.sendSteadily()
        var silences: [Duration] = []
        for round in 0..<rounds {
            let server = try cluster.server(of: pair.peers[round % 2])
            let start = lab.journal.now
            try server.kill()
            try pair.messageFlow()
            let silence = pair.directions.map { $0.longestSilence(of: $1, since: start) }.max() ?? .zero
            silences.append(silence)
            lab.step("round \(round + 1): \(server.host.name) killed: \(silence.written) s")
            try server.start()
            try cluster.waitUntilComplete()
        }
        silences.sort()
        let median = silences[silences.count / 2]
        try lab.check(
            "the median of \(silences.map(\.written)) is at most 1 s", median <= .seconds(1))
        lab.step("a cable is pulled, and nobody is told")
        let server = try cluster.server(of: pair.one)
        for name in ["eth0", "eth1"] { try server.host.setLink(name, isUp: false) }
        // The client gives up a server that has not answered for 10 s.
        try pair.messageFlow(within: .seconds(30))
        try pair.stopAsOneConversation()
    }

    private static func partition(_ lab: Lab) throws {
        let (cluster, pair) = try meet(lab)
        let used = try pair.peers.map { try cluster.server(of: $0).host.name }
        try lab.check("the two use different servers, \(used)", used[0] != used[1])
        let cuts: [(String, NATSCluster.Cut, () throws -> Void)] = [
            ("connections break for 3 s", .reset, { try lab.pass(.seconds(3)) }),
            ("nothing passes for 3 s", .silent, { try lab.pass(.seconds(3)) }),
            (
                "connections break until the link is given up", .reset,
                {
                    try pair.linkLoss(within: .seconds(25))
                    // Time for dials that find nobody.
                    try lab.pass(.seconds(3))
                }
            ),
        ]
        for (words, cut, meanwhile) in cuts {
            lab.step(words)
            try pair.sendSteadily()
            try cluster.separate(true, by: cut)
            try meanwhile()
            try cluster.separate(false, by: cut)
            try pair.messageFlow()
            try pair.stopAsOneConversation()
        }
        lab.step("connections break for too long: both are told so, and talk again once they are back")
        try cluster.waitUntilComplete()
        try pair.sendSteadily()
        try cluster.separate(true, by: .reset)
        try pair.end(within: .seconds(50))
        for (one, other) in pair.directions {
            let cause = one.view(of: other).states.first { $0.state == "disconnected" }?.cause ?? ""
            try lab.check("\(one.name) is told why: \(cause)", !cause.isEmpty)
        }
        try cluster.separate(false, by: .reset)
        try cluster.waitUntilComplete()
        // A session that was not found is asked every 4 s whether it is back.
        try pair.find()
        try pair.invite()
        try pair.exchangeMessagesAnew()
    }

    private static func standStill(_ lab: Lab) throws {
        let server = try NATSServerProcess(on: lab.host("ibis"), ["max_pending: 1MB"])
        let peers = try ["Puma", "Lynx", "Ocelot"].map { name in
            try lab.host(name.lowercased()).peer(name, .over(server.spec()))
        }
        let (puma, lynx, ocelot) = (peers[0], peers[1], peers[2])
        for (one, other) in [(puma, lynx), (ocelot, lynx), (puma, ocelot)] { try Pair(one, other).meet() }
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
        for sender in [puma, ocelot] { try Pair(sender, lynx).stopSending() }
        try lab.check(
            "the slowest of ten pings between the others took \(slowest.written) s, at most 0.5 s",
            slowest <= .milliseconds(500))
        try lab.check("the server has nothing to complain of", server.complaints.isEmpty)
        let states = peers.flatMap(\.views.values).flatMap(\.states).map(\.state)
        try lab.check("no link broke", !states.contains("reconnecting") && !states.contains("disconnected"))
    }

    private static func moveGame(_ lab: Lab) throws {
        // Each player has a network of its own with the server, and nothing joins the two.
        let hosts = try ["puma", "lynx"].map { try lab.host($0) }
        let ibis = try lab.host("ibis", addresses: .version4, on: "west")
        try ibis.plug("eth1", into: "east", .version4)
        let server = try NATSServerProcess(on: ibis)
        let specs = try zip(hosts, ["west", "east"]).map { host, network in
            try host.plug("eth1", into: network, .version4)
            return "tcp:mdns=embedded,\(server.spec(on: network))"
        }
        let puma = try hosts[0].game("Puma", ["host", "--plain"], over: specs[0])
        let lynx = try hosts[1].game("Lynx", ["--plain"], over: specs[1])
        try lynx.waitForOutput("Puma, a free seat, over tcp or nats", within: .seconds(20))
        lynx.type("j 1")
        let game = try TypedGame.begin(puma, lynx)
        try puma.waitForOutput("Lynx wants to play, over tcp.")
        game.timeout = .seconds(40)
        let moves = Games.moves[0]
        // First the interface goes, which one side notices at once, and then a plug is pulled, which neither does.
        let cuts: [(move: Int, transport: String, cut: (Host) throws -> Void)] = [
            (5, "nats", { try $0.ip(["link set eth0 down"]) }),
            (12, "tcp", { try $0.ip(["link set eth0 up"]) }),
            (19, "nats", { try $0.setLink(isUp: false) }),
        ]
        var next = 0
        for (number, transport, cut) in cuts {
            try game.play(Array(moves[next..<number]))
            let before = [puma, lynx].map(\.lines.count)
            try cut(hosts[1])
            try game.play(moves[number]) {
                for (side, count) in zip([puma, lynx], before) {
                    try side.waitForOutput(
                        "The game goes on over \(transport).", after: count, within: .seconds(40))
                }
            }
            next = number + 1
        }
        try game.play(Array(moves[next...]))
        try game.isWon()
        for side in [puma, lynx] {
            try lab.check("\(side.name) was not left", !side.hasPrinted("left the table"))
        }
    }
}
