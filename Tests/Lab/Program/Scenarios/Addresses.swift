/// Addresses that a person types, that change or come late, or that are the same on both sides.
enum Addresses {
    static let all =
        [
            Scenario(
                "by-hand", "addresses given by hand, right and wrong ones; one is called again after a cut"
            ) {
                try byHand($0)
            },
            Scenario("address-changed", "a host's address changes under a conversation") {
                try addressChanges($0)
            },
            Scenario("interface-later", "an interface that comes up after the start of a peer is used") {
                lab in
                let puma = try lab.host("puma").peer("Puma")
                let lynxHost = try lab.host("lynx", addresses: .none)
                let lynx = try lynxHost.peer("Lynx")
                try lab.wait(for: "Puma to listen") { !puma.listening.isEmpty }
                try lab.check("nobody is found yet", puma.views.isEmpty && lynx.views.isEmpty)
                try lynxHost.ip(["addr add \(lynxHost.address())/24 dev eth0", "link set eth0 up"])
                try Pair(puma, lynx).meet()
            },
            Scenario("interface-unplugged", "an interface without carrier for 2 s: others are found again") {
                lab in
                let puma = try lab.host("puma").peer("Puma", .embedded)
                let lynx = try lab.host("lynx").peer("Lynx", .over("tcp:interface=eth0,mdns=embedded"))
                try Pair(puma, lynx).find()
                try lynx.host.setLink(isUp: false)
                try lab.wait(for: "Lynx to be down") { isDown(lynx) && !lynx.finds(puma) }
                try lab.pass(.seconds(2))
                try lynx.host.setLink(isUp: true)
                try lab.wait(for: "Lynx to be up") { !isDown(lynx) }
                try Pair(puma, lynx).meet(findingWithin: .seconds(20))
            },
            Scenario("interface-made-anew", "an interface that is removed and made again can be dialled") {
                lab in
                let puma = try lab.host("puma", addresses: .version4)
                    .peer("Puma", .over("tcp:interface=eth0,mdns=off"))
                let lynx = try lab.host("lynx", addresses: .version4).peer("Lynx", .byHand)
                try lab.wait(for: "Puma to listen") { !puma.listening.isEmpty }
                let place = "tcp://\(puma.host.address()):\(try puma.port())"
                try puma.host.ip(["link del eth0"])
                try lab.wait(for: "Puma to be down") { isDown(puma) }
                try puma.host.plug("eth0", into: "lan", .version4)
                try lab.wait(for: "Puma to be up and to listen") { !isDown(puma) && !puma.listening.isEmpty }
                lynx.sendCommand("call \(place)")
                try Pair(puma, lynx).connection()
                try Pair(puma, lynx).exchangeMessages()
            },
            Scenario("one-family-blocked", "TCP over IPv6 is dropped: IPv4 is used, and soon") { lab in
                let hosts = try ["puma", "lynx"].map { try lab.host($0) }
                for host in hosts { try host.filter(in: "meta nfproto ipv6 meta l4proto tcp drop") }
                let pair = Pair(try hosts[1].peer("Lynx", .embedded), try hosts[0].peer("Puma", .embedded))
                try pair.find()
                try pair.invite(within: .seconds(2))
                try pair.exchangeMessages()
            },
            Scenario("own-address-elsewhere", "an address that is also a local one is never dialled") {
                try ownElsewhere($0, isBridgeUsed: true)
            },
            Scenario("own-address-unused", "the same if that local address is on an unused bridge") {
                try ownElsewhere($0, isBridgeUsed: false)
            },
        ]
        + Scenario.withoutAndWithDaemons("same-bridge-address", "both hosts have a bridge with one address") {
            try sameBridge($0, daemon: $1)
        }

    private static func isDown(_ peer: PeerProcess) -> Bool {
        peer.conditions["tcp"]?.hasPrefix("down") == true
    }

    private static func byHand(_ lab: Lab) throws {
        let puma = try lab.host("puma").peer("Puma", .over("tcp:mdns=off,port=4000"))
        let lynx = try lab.host("lynx").peer("Lynx", .byHand)
        let pair = Pair(puma, lynx)
        try lab.wait(for: "both to listen") { pair.peers.allSatisfy { !$0.listening.isEmpty } }
        lynx.sendCommand("call tcp://\(puma.host.address()):4000")
        try pair.connection()
        try Lifelines.resumes(pair, after: .plug) { try lab.pass(.seconds(5)) }
        try Pair(lynx, puma).part()
        lynx.sendCommand("call tcp://[\(try linkLocal(of: puma.host))%eth0]:4000")
        try pair.connection()
        try pair.exchangeMessages()
        try Pair(lynx, puma).part()
        try lab.check("neither was found", !pair.directions.contains { $0.finds($1) })
        try puma.host.filter(in: "tcp dport 4002 drop")
        let wrong = [
            ("\(puma.host.address()):4002", "no answer in time"),
            ("\(puma.host.address()):4001", "nobody listens there"),
            // Without a route, the kernel refuses at once. On its own network, it asks for the address without an
            // answer.
            ("10.99.0.1:4000", "cannot be reached"), ("10.77.0.200:4000", "cannot be reached"),
            ("\(lynx.host.address()):\(try lynx.port())", "back to this session"),
        ]
        for (address, reason) in wrong {
            try lynx.call("tcp://\(address)", failsWith: reason, within: .seconds(15))
        }
    }

    /// The IPv6 link-local address of a host's first interface.
    private static func linkLocal(of host: Host) throws -> Substring {
        let lines = try host.run(["ip", "-6", "-brief", "addr", "show", "dev", "eth0", "scope", "link"])
        let words = lines.flatMap { $0.split(separator: " ") }
        guard let address = words.first(where: { $0.hasPrefix("fe80:") }) else {
            throw Failure("\(host.name) has no link-local address")
        }
        return address.prefix { $0 != "/" }
    }

    private static func addressChanges(_ lab: Lab) throws {
        let pair = try lab.pair(addresses: .version4)
        let host = pair.other.host
        try pair.meet()
        try pair.sendSteadily()
        try host.ip(["addr del \(host.address())/24 dev eth0", "addr add 10.77.0.99/24 dev eth0"])
        try pair.messageFlow(within: .seconds(8))
        try pair.stopAsOneConversation()
        let used = try host.connections()
        try lab.check("the new address is used: \(used)", used.contains { $0.contains("10.77.0.99") })
        lab.step("a new conversation, dialled by the one whose address did not change")
        try pair.part()
        try pair.invite()
        try pair.exchangeMessages()
    }

    /// Adds a bridge as containers do: up, and with somebody on it. A bridge without anybody has no carrier.
    private static func addBridge(to host: Host, isUsed: Bool = true) throws {
        try host.ip(
            [
                "link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0",
                "link add inside0 type veth peer name inside1", "link set inside0 master docker0 up",
                "link set docker0 up",
            ] + (isUsed ? ["link set inside1 up"] : []))
        // The kernel needs some time to report that there is no carrier.
        while !isUsed, try host.run(["cat", "/sys/class/net/docker0/operstate"]) != ["down"] {
            try host.lab.pass(.milliseconds(50))
        }
    }

    private static func ownElsewhere(_ lab: Lab, isBridgeUsed: Bool) throws {
        let pumaHost = try lab.host("puma", addresses: .version4)
        let lynxHost = try lab.host("lynx", addresses: .none)
        try addBridge(to: pumaHost, isUsed: isBridgeUsed)
        // Avahi sends from the address that was added last. If it sent from the other one, puma's kernel
        // would take the packets for its own.
        try lynxHost.ip([
            "link set eth0 addrgenmode none", "addr add 172.17.0.1/16 dev eth0",
            "addr add \(lynxHost.address())/24 dev eth0", "link set eth0 up",
        ])
        let puma = try pumaHost.peer("Puma", .embedded)
        let pair = Pair(puma, try lynxHost.peer("Lynx", .embedded))
        try pair.find()
        lab.step("the one way there that is right is closed")
        try pumaHost.filter(
            out: """
                ip daddr \(lynxHost.address()) meta l4proto tcp reject with tcp reset
                ip daddr 172.17.0.0/16 tcp flags & (syn|ack) == syn counter name marked
                """)
        puma.invite(pair.other)
        try lab.wait(for: "the invitation to fail") { !puma.failures.isEmpty }
        try lab.check("the right one was dialled", puma.failures[0].contains(lynxHost.address()))
        try lab.check("nothing else was", pumaHost.markedPackets() == 0)
        lab.step("and opened again")
        try pumaHost.filter()
        try pair.find(within: .seconds(20))
        try pair.invite()
        try pair.exchangeMessages()
    }

    private static func sameBridge(_ lab: Lab, daemon: Bool) throws {
        let hosts = try ["puma", "lynx"].map { try lab.host($0, daemon: daemon) }
        for host in hosts {
            try addBridge(to: host)
            try host.filter(
                out: "ip daddr 172.17.0.0/16 tcp flags & (syn|ack) == syn counter name marked")
        }
        let pair = Pair(
            try hosts[0].peer("Puma", .byItself.meeting), try hosts[1].peer("Lynx", .byItself.meeting))
        try pair.connection()
        try pair.find()
        try pair.exchangeMessages()
        for peer in pair.peers {
            try peer.count()
            try lab.check(
                "\(peer.name) never reached itself",
                !peer.statistics.contains { $0.key.contains("self") || $0.key.contains("this-very-session") })
            // If both dialled at once, the connection that was not needed may still be closing.
            let used = try peer.host.connections()
            try lab.check(
                "\(peer.name) talks over the network they share: \(used)",
                !used.isEmpty && !used.contains { $0.contains("172.17.") })
            try lab.check(
                "\(peer.host.name) dialled no address of its own bridge", peer.host.markedPackets() == 0)
        }
        try pair.checkTheyAreAlone()
    }
}
