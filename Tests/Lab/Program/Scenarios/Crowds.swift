import Glibc

/// Many peers: a mesh over TCP, peers that carry the conversations of others, and a thousand conversations at once.
///
/// In the mesh every host knows the address of one other only, and nobody announces anything.
enum Crowds {
    static let all = [
        Scenario("mesh", "eight hosts that each call the first are all connected, one link a pair") {
            try mesh($0)
        },
        Scenario(
            "carried", "two hosts kept apart talk through a third, and then directly", limit: .seconds(240)
        ) {
            try carry($0)
        },
        Scenario("crowd", "1,000 conversations of one process cut at once: nothing is leaked") { lab in
            let command = [try Spawning.ownPath(), CrowdProgram.name]
            for line in try lab.host("puma").run(command, within: .seconds(110)) { lab.step(line) }
        },
    ]

    private static func mesh(_ lab: Lab) throws {
        let peers = try ["Puma", "Lynx", "Ocelot", "Serval", "Margay", "Caracal", "Jaguar", "Bobcat"].map {
            try lab.host($0.lowercased()).peer($0, .byHand.adding("--mesh"))
        }
        try lab.wait(for: "all to listen") { peers.allSatisfy { !$0.listening.isEmpty } }
        for peer in peers.dropFirst() { peer.call(peers[0]) }
        try Crowd(peers).connection(within: .seconds(5))
        try Crowd(peers).exchangeMessages()
        for peer in peers {
            // If two dialled each other at once, the connection that was not needed may still be closing.
            try lab.wait(for: "\(peer.name) to have one connection to each other") {
                try peer.host.connections().count == 7
            }
        }
        try lab.check("nobody failed to reach anybody", peers.allSatisfy { $0.failures.isEmpty })
    }

    private static func carry(_ lab: Lab) throws {
        let options = PeerProcess.Options.byHand.adding("--mesh", "--relays")
        let hosts = try ["puma", "lynx", "ocelot"].map { try lab.host($0, addresses: .version4) }
        let apart = hosts[1].address()
        try hosts[0].filter(in: "ip saddr \(apart) drop", out: "ip daddr \(apart) drop")
        let pair = Pair(try hosts[0].peer("Puma", options), try hosts[1].peer("Lynx", options))
        let ocelot = try hosts[2].peer("Ocelot", options)
        for peer in pair.peers { try Pair(ocelot, peer).callByHand() }
        try pair.move(to: "via", within: .seconds(20))
        try pair.exchangeMessages()
        try explain(lab, pair, through: "tcp://\(hosts[2].address()):\(try ocelot.port())")
        try pair.sendSteadily()
        try hosts[0].filter()
        try pair.move(to: "tcp", within: .seconds(90))
        lab.step("the third is killed")
        ocelot.signal(SIGKILL)
        try lab.pass(.seconds(2))
        try pair.stopAsOneConversation()
    }

    private static func explain(_ lab: Lab, _ pair: Pair, through carrier: String) throws {
        let session = ["-s", "lab", "-t", "tcp:mdns=off", "--through", carrier]
        let said = try pair.one.host.doctor(["--peer", "Lynx", "--timeout", "5s"] + session)
        try said.check(
            .pass("peer.through", "Lynx"), .pass("peer.common"), .fail("peer.address", "no answer"),
            .pass("peer.carried", "through Ocelot"), status: 1)
        // A map counts as complete after 2 s without a change, in which a busy machine may get nothing done.
        let nigh = ["env", "XDG_DATA_HOME=\(Host.dataFolder)", try Spawning.path(of: "nigh")]
        let options = ["peers", "--map", "--once", "--relays", "everyone"]
        let isWhole = try (0..<5).contains { _ in
            let map = try pair.one.host.run(nigh + options + session, within: .seconds(30))
            for line in map { lab.journal.note("puma/map", line) }
            return map.contains { line in
                ["Lynx (", "Puma (", "through Ocelot ("].allSatisfy(line.contains)
            }
        }
        try lab.check("the map names the third between the two", isWhole)
    }
}

/// Peers that are all to be connected to each other.
struct Crowd {
    let peers: [PeerProcess]
    /// All pairs of different peers, in both orders.
    let pairs: [(PeerProcess, PeerProcess)]

    init(_ peers: [PeerProcess]) {
        self.peers = peers
        pairs = peers.flatMap { one in peers.filter { $0 !== one }.map { (one, $0) } }
    }

    /// Waits until all are connected.
    func connection(within limit: Duration = .seconds(20)) throws {
        try peers[0].host.lab.wait(for: "all pairs of \(peers.count) to be connected", within: limit) {
            pairs.allSatisfy { $0.isConnected(to: $1) }
        }
    }

    /// Sends messages between all pairs, in both directions, and checks that all have arrived.
    func exchangeMessages(count: Int = 20, size: Int = 500) throws {
        for (one, other) in pairs { one.send(count, to: other, size: size) }
        try peers[0].host.lab.wait(for: "\(count) messages between all of them", within: .seconds(20)) {
            pairs.allSatisfy { $0.sent(to: $1).count == count && $0.hasDelivered(to: $1) }
        }
    }
}
