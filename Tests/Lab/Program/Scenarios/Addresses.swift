/// Addresses that change, come late, or are the same on both sides.
enum Addresses {
    static let all = [
        Scenario("address-changed", "a host's address changes under a conversation", limit: .seconds(120)) {
            lab throws(Failure) in
            let pumaHost = try lab.host("puma", addresses: .version4)
            let lynxHost = try lab.host("lynx", addresses: .version4)
            let puma = try pumaHost.peer("Puma", Findings.byItself)
            let lynx = try lynxHost.peer("Lynx", Findings.byItself)
            try lab.meet(puma, lynx)
            try lab.sendSteadily(puma, lynx)
            try lynxHost.ip(["addr del \(lynxHost.address())/24 dev eth0", "addr add 10.77.0.99/24 dev eth0"])
            let before = (puma.received(from: lynx).count, lynx.received(from: puma).count)
            try lab.wait(for: "messages to flow again", within: .seconds(8)) {
                puma.received(from: lynx).count > before.0 + 50
                    && lynx.received(from: puma).count > before.1 + 50
            }
            try lab.stopSending(puma, lynx)
            try lab.check("it is still one conversation", Lifelines.isUnbroken(puma, lynx))
            let used = try connections(of: lynxHost)
            try lab.check("the new address is used: \(used)", used.contains { $0.contains("10.77.0.99") })
            lab.step("a new conversation, dialled by the one whose address did not change")
            puma.leave(lynx)
            try lab.wait(for: "them to part") { !puma.isConnected(to: lynx) && !lynx.isConnected(to: puma) }
            puma.invite(lynx)
            try lab.connection(of: puma, lynx)
            try lab.exchangeMessages(puma, lynx)
        },
        Scenario("interface-later", "an interface that comes up after the peer was started is used") {
            lab throws(Failure) in
            let puma = try lab.host("puma").peer("Puma", Findings.byItself)
            let lynxHost = try lab.host("lynx", addresses: .none)
            let lynx = try lynxHost.peer("Lynx", Findings.byItself)
            try lab.wait(for: "both to listen") { !puma.listening.isEmpty }
            try lab.check("nobody is found yet", puma.views.isEmpty && lynx.views.isEmpty)
            try lynxHost.ip(["addr add \(lynxHost.address())/24 dev eth0", "link set eth0 up"])
            try lab.find(puma, lynx, within: .seconds(10))
            try lab.meet(puma, lynx)
        },
        Scenario(
            "interface-unplugged", "the one interface of a peer has no carrier for 2 s: it finds others again"
        ) { lab throws(Failure) in
            let puma = try lab.host("puma").peer("Puma", Findings.embedded)
            let lynxHost = try lab.host("lynx")
            let lynx = try lynxHost.peer("Lynx", .over("tcp:interface=eth0,mdns=embedded"))
            try lab.find(puma, lynx)
            try lynxHost.setLink(isUp: false)
            try lab.wait(for: "Lynx to be down") { isDown(lynx) && !lynx.finds(puma) }
            try lab.pass(.seconds(2))
            try lynxHost.setLink(isUp: true)
            try lab.wait(for: "Lynx to be up") { !isDown(lynx) }
            try lab.find(puma, lynx, within: .seconds(20))
            try lab.meet(puma, lynx)
        },
        Scenario(
            "interface-made-anew", "the one interface of a peer is removed and made again: it can be dialled"
        ) { lab throws(Failure) in
            let pumaHost = try lab.host("puma", addresses: .version4)
            let puma = try pumaHost.peer("Puma", .over("tcp:interface=eth0,mdns=off"))
            let lynx = try lab.host("lynx", addresses: .version4).peer("Lynx", .over("tcp:mdns=off"))
            try lab.wait(for: "Puma to listen") { !puma.listening.isEmpty }
            let place = "tcp://\(pumaHost.address()):\(try puma.port())"
            try pumaHost.ip(["link del eth0"])
            try lab.wait(for: "Puma to be down") { isDown(puma) }
            try pumaHost.plug("eth0", into: "lan", .version4)
            try lab.wait(for: "Puma to be up and to listen") { !isDown(puma) && !puma.listening.isEmpty }
            lynx.sendCommand("call \(place)")
            try lab.connection(of: puma, lynx)
            try lab.exchangeMessages(puma, lynx)
        },
        Scenario("one-family-blocked", "TCP over IPv6 is dropped: IPv4 is used, and soon") {
            lab throws(Failure) in
            let hosts = [try lab.host("puma"), try lab.host("lynx")]
            for host in hosts { try host.filter(in: "meta nfproto ipv6 meta l4proto tcp drop") }
            let puma = try hosts[0].peer("Puma", Findings.embedded)
            let lynx = try hosts[1].peer("Lynx", Findings.embedded)
            try lab.find(puma, lynx)
            lynx.invite(puma)
            try lab.connection(of: puma, lynx, within: .seconds(2))
            try lab.exchangeMessages(puma, lynx)
        },
        Scenario(
            "own-address-elsewhere", "an address of a peer that is also a local address is never dialled"
        ) {
            lab throws(Failure) in
            try ownElsewhere(lab, isBridgeUsed: true)
        },
        Scenario(
            "own-address-unused", "the same if that local address is on an unused bridge"
        ) {
            lab throws(Failure) in
            try ownElsewhere(lab, isBridgeUsed: false)
        },
        Scenario("same-bridge-address", "both hosts have a bridge of their own with the same address") {
            lab throws(Failure) in try sameBridge(lab, daemon: false)
        },
        Scenario("same-bridge-address-daemon", "the same with daemons") { lab throws(Failure) in
            try sameBridge(lab, daemon: true)
        },
    ]

    private static func isDown(_ peer: PeerProcess) -> Bool {
        peer.conditions["tcp"]?.hasPrefix("down") == true
    }

    /// The two ends of every TCP connection of a host, as `own other`.
    static func connections(of host: Host) throws(Failure) -> [String] {
        try host.run(["ss", "-Htn", "state", "established"]).map { line in
            line.split(separator: " ").suffix(2).joined(separator: " ")
        }
    }

    /// Adds a bridge as containers do: up, and with somebody on it. A bridge without anybody has no carrier.
    private static func addBridge(to host: Host, isUsed: Bool = true) throws(Failure) {
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

    private static func ownElsewhere(_ lab: Lab, isBridgeUsed: Bool) throws(Failure) {
        let pumaHost = try lab.host("puma", addresses: .version4)
        let lynxHost = try lab.host("lynx", addresses: .none)
        try addBridge(to: pumaHost, isUsed: isBridgeUsed)
        // Avahi sends from the address that was added last. If it sent from the other one, puma's kernel
        // would take the packets for its own.
        try lynxHost.ip([
            "link set eth0 addrgenmode none", "addr add 172.17.0.1/16 dev eth0",
            "addr add \(lynxHost.address())/24 dev eth0", "link set eth0 up",
        ])
        let puma = try pumaHost.peer("Puma", Findings.embedded)
        let lynx = try lynxHost.peer("Lynx", Findings.embedded)
        try lab.find(puma, lynx)
        lab.step("the one way there that is right is closed")
        try pumaHost.filter(
            out: """
                ip daddr \(lynxHost.address()) meta l4proto tcp reject with tcp reset
                ip daddr 172.17.0.0/16 tcp flags & (syn|ack) == syn counter name marked
                """)
        puma.invite(lynx)
        try lab.wait(for: "the invitation to fail") { !puma.failures.isEmpty }
        try lab.check("the right one was dialled", puma.failures[0].contains(lynxHost.address()))
        try lab.check("nothing else was", pumaHost.markedPackets() == 0)
        lab.step("and opened again")
        try pumaHost.filter()
        try lab.find(puma, lynx, within: .seconds(20))
        puma.invite(lynx)
        try lab.connection(of: puma, lynx)
        try lab.exchangeMessages(puma, lynx)
    }

    private static func sameBridge(_ lab: Lab, daemon: Bool) throws(Failure) {
        let hosts = [try lab.host("puma", daemon: daemon), try lab.host("lynx", daemon: daemon)]
        for host in hosts {
            try addBridge(to: host)
            try host.filter(
                out: "ip daddr 172.17.0.0/16 tcp flags & (syn|ack) == syn counter name marked")
        }
        let puma = try hosts[0].peer("Puma", Findings.byItself.meeting)
        let lynx = try hosts[1].peer("Lynx", Findings.byItself.meeting)
        try lab.connection(of: puma, lynx)
        try lab.find(puma, lynx)
        try lab.exchangeMessages(puma, lynx)
        for peer in [puma, lynx] {
            peer.sendCommand("statistics")
            try lab.wait(for: "\(peer.name)'s counts") { peer.statistics["done"] != nil }
            try lab.check(
                "\(peer.name) never reached itself",
                !peer.statistics.contains { $0.key.contains("self") || $0.key.contains("this-very-session") })
            // If both dialled at once, the connection that was not needed may still be closing.
            let used = try connections(of: peer.host)
            try lab.check(
                "\(peer.name) talks over the network they share: \(used)",
                !used.isEmpty && !used.contains { $0.contains("172.17.") })
            try lab.check(
                "\(peer.host.name) dialled no address of its own bridge", peer.host.markedPackets() == 0)
        }
        try lab.check("each knows the other and nobody else", puma.views.count == 1 && lynx.views.count == 1)
    }
}
