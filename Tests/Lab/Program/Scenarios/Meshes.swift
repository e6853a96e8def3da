import Glibc
import NighCore

/// Meshes over TCP: every host knows the address of one other only, and nobody announces anything.
enum Meshes {
    static let all = [
        Scenario(
            "mesh-of-eight", "eight hosts that each call the first one are all connected, one link a pair",
            limit: .seconds(60)
        ) { lab throws(Failure) in
            let peers = try mesh(lab, of: 8)
            try lab.exchangeMessagesOfAll(peers)
            for peer in peers {
                // If two dialled each other at once, the connection that was not needed may still be closing.
                try lab.wait(for: "\(peer.name) to have one connection to each other") {
                    (try? Addresses.connections(of: peer.host))?.count == 7
                }
            }
            try lab.check("nobody failed to reach anybody", peers.allSatisfy { $0.failures.isEmpty })
        },
        Scenario(
            "mesh-coming-and-going",
            "members of a mesh leave, return and are killed in random order, one in the middle of an introduction",
            limit: .seconds(180)
        ) { lab throws(Failure) in
            var generator = SeededGenerator(seed: 20)
            var present = try mesh(lab, of: 6)
            var away: [PeerProcess] = []
            for _ in 0..<20 {
                if away.isEmpty || (present.count > 3 && generator.next() % 2 == 0) {
                    let index = Int(generator.next() % UInt64(present.count))
                    let leaving = present.remove(at: index)
                    leaving.quit()
                    away.append(leaving)
                    try lab.wait(for: "all others to be told that \(leaving.name) has left") {
                        present.allSatisfy { !$0.isConnected(to: leaving) }
                    }
                } else {
                    let former = away.remove(at: Int(generator.next() % UInt64(away.count)))
                    let host = present[Int(generator.next() % UInt64(present.count))]
                    let returned = try former.host.peer(former.name, former.options)
                    returned.call(host)
                    // If the only one that it knows left now, it would know nobody.
                    present.append(returned)
                    try lab.wait(for: "all to know \(returned.name)") {
                        returned.connectedCount(among: present) == present.count - 1
                    }
                }
            }
            try waitForAll(lab, present)
            lab.step("the one that the newcomer calls is killed as soon as it has taken the call")
            let guest = try lab.host("guest").peer("Guest", options(named: "guest"))
            let called = present.removeFirst()
            guest.call(called)
            try lab.wait(for: "the call to be taken") { guest.isConnected(to: called) }
            called.signal(SIGKILL)
            present.append(guest)
            if guest.connectedCount(among: present) == 0 { guest.call(present[0]) }
            try waitForAll(lab, present, within: .seconds(40))
            try lab.exchangeMessagesOfAll(present)
            try lab.wait(for: "nobody to be connected to the one that was killed", within: .seconds(40)) {
                present.allSatisfy { !$0.isConnected(to: called) }
            }
        },
    ]

    private static let names = ["Puma", "Lynx", "Ocelot", "Serval", "Margay", "Caracal", "Jaguar", "Bobcat"]

    private static func options(named name: String) -> PeerProcess.Options {
        var options = PeerProcess.Options.over("tcp:mdns=off").kept(in: name)
        options.isMesh = true
        return options
    }

    /// Starts hosts, of which all others call the first. Returns once all pairs are connected, within 5 s.
    private static func mesh(_ lab: Lab, of count: Int) throws(Failure) -> [PeerProcess] {
        var peers: [PeerProcess] = []
        for name in names.prefix(count) {
            peers.append(try lab.host(name.lowercased()).peer(name, options(named: name.lowercased())))
        }
        try lab.wait(for: "all to listen") { peers.allSatisfy { !$0.listening.isEmpty } }
        for peer in peers.dropFirst() { peer.call(peers[0]) }
        try waitForAll(lab, peers, within: .seconds(5))
        return peers
    }

    private static func waitForAll(
        _ lab: Lab, _ peers: [PeerProcess], within limit: Duration = .seconds(20)
    ) throws(Failure) {
        try lab.wait(for: "all pairs of \(peers.count) to be connected", within: limit) {
            peers.allSatisfy { $0.connectedCount(among: peers) == peers.count - 1 }
        }
    }
}

extension PeerProcess {
    /// Calls another one at its IPv4 address.
    func call(_ other: PeerProcess) {
        let address = other.listening.first { $0.contains(other.host.address()) } ?? ""
        sendCommand("call \(address)")
    }

    fileprivate func connectedCount(among others: [PeerProcess]) -> Int {
        others.count { $0 !== self && isConnected(to: $0) }
    }
}

extension Lab {
    /// Sends messages between all pairs, in both directions, and checks that all have arrived.
    fileprivate func exchangeMessagesOfAll(_ peers: [PeerProcess]) throws(Failure) {
        let pairs = peers.flatMap { one in peers.filter { $0 !== one }.map { (one, $0) } }
        for (one, other) in pairs { one.send(20, to: other, size: 500) }
        try wait(for: "20 messages between all of them", within: .seconds(20)) {
            pairs.allSatisfy { $0.sent(to: $1).count >= 20 && $0.hasDelivered(to: $1) }
        }
    }
}
