/// Servers of one cluster, each on a host of its own. Clients reach them over the network `lan`, and they reach each
/// other over a network of their own.
final class NATSCluster {
    private static let routes = "routes"
    private static let routePort = 6_222

    let servers: [NATSServerProcess]
    private let lab: Lab

    /// Starts three servers, and waits until each knows of all.
    init(in lab: Lab) throws(Failure) {
        self.lab = lab
        var hosts: [Host] = []
        for name in ["ibis", "heron", "crane"] {
            let host = try lab.host(name, addresses: .version4)
            try host.plug("eth1", into: Self.routes, .version4)
            hosts.append(host)
        }
        let all = hosts.map { "nats://\($0.address(on: Self.routes)):\(Self.routePort)" }
        var servers: [NATSServerProcess] = []
        for (number, host) in hosts.enumerated() {
            let others = all.enumerated().filter { $0.offset != number }.map(\.element)
            let cluster = """
                cluster {
                    name: lab
                    host: \(host.address(on: Self.routes))
                    port: \(Self.routePort)
                    routes: [\(others.joined(separator: ", "))]
                }
                """
            servers.append(try NATSServerProcess(on: host, for: "lan", [cluster]))
        }
        self.servers = servers
        try waitUntilComplete()
    }

    /// Waits until every server tells its clients of all servers.
    func waitUntilComplete() throws(Failure) {
        let places = servers.map { "\($0.host.address()):\(NATSServerProcess.port)" }
        let start = lab.elapsed
        for server in servers {
            while case let greeting = try server.greeting(), !places.allSatisfy({ greeting.contains($0) }) {
                guard lab.elapsed - start < .seconds(20) else {
                    throw Failure("the server on \(server.host.name) does not know all others: \(greeting)")
                }
                try lab.pass(.milliseconds(50))
            }
        }
        lab.journal.note("lab", "the cluster is complete")
    }

    /// The server to which a peer is connected.
    func server(of peer: PeerProcess) throws(Failure) -> NATSServerProcess {
        let connections = try Addresses.connections(of: peer.host)
        let used = servers.filter { server in
            connections.contains { $0.hasSuffix(" \(server.host.address()):\(NATSServerProcess.port)") }
        }
        guard used.count == 1 else {
            throw Failure("\(peer.name) is connected to \(used.count) servers: \(connections)")
        }
        return used[0]
    }

    /// How the servers are separated.
    enum Cut {
        /// Connections between servers are reset, and no new ones can be made: what they have for each other is lost.
        case reset
        /// Nothing passes between them, and the connections stay: what they have for each other waits.
        case silent
    }

    /// Separates each server from the others, or joins them again. Clients still reach all.
    func separate(_ isSeparated: Bool, by cut: Cut) throws(Failure) {
        for server in servers {
            switch cut {
            case .silent: try server.host.setSilent(isSeparated, "eth1", on: Self.routes)
            case .reset where isSeparated:
                // Resets pass, so that both ends notice.
                try server.host.filter(
                    in: "iifname eth1 meta l4proto tcp tcp flags & rst == 0 reject with tcp reset")
            case .reset: try server.host.filter()
            }
        }
    }
}
