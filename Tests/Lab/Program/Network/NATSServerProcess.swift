import Glibc

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
    /// What it has logged of errors, and of clients that it dropped.
    private(set) var complaints: [String] = []

    /// Starts a server for the clients on a network, or on all of the host's networks, and waits until it serves.
    ///
    /// - Parameter configuration: lines of its configuration file.
    init(on host: Host, for network: String? = nil, _ configuration: [String] = []) throws(Failure) {
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
    func start() throws(Failure) {
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
    func kill() throws(Failure) {
        host.lab.journal.note(host.name, "the server is killed")
        child?.mayEnd = true
        child?.signal(SIGKILL)
        try host.lab.wait(for: "the server on \(host.name) to be gone") { child?.isOver != false }
        child = nil
    }

    /// The line with which it greets a client.
    func greeting() throws(Failure) -> String {
        let place = "/dev/tcp/\(host.address(on: network))/\(Self.port)"
        return try host.run(["bash", "-c", "exec 3<>\(place) && head --lines 1 <&3"]).first ?? ""
    }
}
