import Glibc

/// Servers of one cluster, each on a host of its own. Clients reach them over the network `lan`, and they reach each
/// other over a network of their own.
final class NATSCluster {
    private static let routes = "routes"
    private static let routePort = 6_222

    let servers: [NATSServerProcess]
    private let lab: Lab

    /// Starts three servers, and waits until each knows of all.
    init(in lab: Lab) throws {
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
    func waitUntilComplete() throws {
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
    func server(of peer: PeerProcess) throws -> NATSServerProcess {
        let connections = try peer.host.connections()
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
    func separate(_ isSeparated: Bool, by cut: Cut) throws {
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

/// A running `nats-server` on a host.
final class NATSServerProcess {
    /// The port for clients.
    static let port = 4_222

    let host: Host
    /// The configuration file, as the host finds it.
    private static let file = "/run/nats.conf"
    /// The network on which it serves clients.
    private let network: String
    private var child: Child?
    /// The errors that it has logged, and the clients that it dropped.
    private(set) var complaints: [String] = []

    /// Starts a server for the clients on a network, or on all of the host's networks, and waits until it serves.
    ///
    /// - Parameter configuration: lines of its configuration file.
    init(on host: Host, for network: String? = nil, _ configuration: [String] = []) throws {
        self.host = host
        self.network = network ?? "lan"
        let address = network.map { host.address(on: $0) } ?? "0.0.0.0"
        let lines = [
            "server_name: \(host.name)", "host: \(address)", "port: \(Self.port)",
            "pid_file: /run/nats.pid", "logtime: false",
        ]
        try Lab.write((lines + configuration).joined(separator: "\n") + "\n", to: host.path("nats.conf"))
        try start()
    }

    /// The address for clients on the server's network, or on another one of the host.
    func address(on network: String? = nil) -> String {
        "nats://\(host.address(on: network ?? self.network)):\(Self.port)"
    }

    /// The spec of the transport with this server.
    func spec(on network: String? = nil) -> String { "nats:server=\(address(on: network))" }

    /// Starts it, and waits until it serves.
    func start() throws {
        let label = "\(host.name)/nats-server"
        let child = try host.lab.supervisor.start(
            label, host.launcher + ["nats-server", "--config", Self.file])
        self.child = child
        var isServing = false
        child.onLine = { [weak self, journal = host.lab.journal] _, line in
            if line.hasSuffix("Server is ready") { isServing = true }
            // It tells much about itself.
            guard !line.contains("[INF]") || line.contains("Slow Consumer") else { return }
            self?.complaints.append(line)
            journal.note(label, line)
        }
        try host.lab.wait(for: "the server on \(host.name)") { isServing }
    }

    /// Kills it at once, whatever it is doing.
    func kill() throws {
        host.lab.journal.note(host.name, "the server is killed")
        child?.mayEnd = true
        child?.signal(SIGKILL)
        try host.lab.wait(for: "the server on \(host.name) to be gone") { child?.isOver != false }
        child = nil
    }

    /// The line with which it greets a client.
    func greeting() throws -> String {
        let place = "/dev/tcp/\(host.address(on: network))/\(Self.port)"
        return try host.run(["bash", "-c", "exec 3<>\(place) && head --lines 1 <&3"]).first ?? ""
    }
}
