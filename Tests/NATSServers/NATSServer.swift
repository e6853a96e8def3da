import ChildPrograms
import Glibc
import NighTestKit

/// A real nats-server on loopback, for a test. It is killed with the last reference.
///
/// `@unchecked Sendable`: a test uses it on one thread at a time.
package final class NATSServer: @unchecked Sendable {
    /// Which server to run.
    package enum Version: String, CaseIterable, Sendable, CustomStringConvertible {
        /// The one of Debian 12, 2.9.10.
        case debian
        /// A current one, from PyPI.
        case current

        package var description: String { rawValue }

        /// The path of the program. Fetches a current server on its first use, which takes some seconds.
        func path() throws -> String {
            switch self {
            case .debian:
                let path = "/usr/sbin/nats-server"
                guard access(path, X_OK) == 0 else {
                    throw Child.Failure(description: "nats-server is missing: make setup-test")
                }
                return path
            case .current: return try Self.fetched.get()
            }
        }

        private static let fetched = Result {
            let setup = try Child(
                "/usr/bin/env", ["bash", BuiltPackages.root + "/Tests/NATSServers/current/setup"],
                patience: 300)
            let path = try setup.line(where: { $0.hasSuffix("/nats-server") })
            guard try setup.end().status == 0 else {
                throw Child.Failure(description: "no current nats-server")
            }
            return path
        }
    }

    /// The port for clients.
    package let port: UInt16
    /// The port of the monitor, if the configuration asks for one.
    package let monitorPort: UInt16?
    /// The port for the other servers of a cluster; 0 if the server is alone.
    package let clusterPort: UInt16
    private let child: Child
    private let folder = TemporaryFolder()

    /// Starts a server and waits until it listens.
    ///
    /// - Parameters:
    ///   - configuration: lines of its configuration file.
    ///   - port: the port for clients; the system chooses one if it is nil.
    ///   - host: the address at which it listens.
    ///   - cluster: the name of the cluster to be in, and the port of a server that is in it.
    package init(
        _ version: Version = .debian, _ configuration: String = "", port: UInt16? = nil,
        host: String = "127.0.0.1", cluster: (name: String, port: UInt16?)? = nil
    ) throws {
        var lines = [
            "host: \"\(host)\"", "port: \(port.map(Int.init) ?? -1)", "ports_file_dir: \"\(folder.path)\"",
            "log_file: \"\(folder.path)/log\"", "server_name: \"s\(UInt32.random(in: .min ... .max))\"",
            configuration,
        ]
        if let cluster {
            let routes = cluster.port.map { "[\"nats://127.0.0.1:\($0)\"]" } ?? "[]"
            lines.append(
                "cluster { name: \"\(cluster.name)\", host: \"127.0.0.1\", port: -1, routes: \(routes) }")
        }
        let file = folder.file("nats.conf", lines.joined(separator: "\n") + "\n")
        child = try Child(try version.path(), ["--config", file])
        let text = try Self.ports(in: folder.path)
        guard let port = Self.port(behind: "nats", in: text) else {
            throw Child.Failure(description: "nats-server names no port: \(text)")
        }
        self.port = port
        clusterPort = Self.port(behind: "cluster", in: text) ?? 0
        monitorPort = Self.port(behind: "monitoring", in: text)
    }

    /// Starts a cluster of `count` servers, and waits until each knows of all.
    package static func cluster(
        of count: Int, _ version: Version = .debian, _ configuration: String = ""
    ) throws -> [NATSServer] {
        let name = "c\(UInt32.random(in: .min ... .max))"
        var servers: [NATSServer] = []
        for _ in 0..<count {
            servers.append(
                try NATSServer(version, configuration, cluster: (name, servers.first?.clusterPort)))
        }
        for server in servers {
            _ = try wait("to know the cluster", in: server.folder.path) {
                let greeting = server.greeting() ?? ""
                return servers.allSatisfy { greeting.contains(":\($0.port)\"") } ? greeting : nil
            }
        }
        return servers
    }

    /// The address for clients.
    package var address: String { "nats://127.0.0.1:\(port)" }

    /// The log of the server.
    package var log: String { TemporaryFolder.text(of: folder.path + "/log") }

    /// Kills the server at once. Its connections end with it.
    package func kill() throws {
        child.send(SIGKILL)
        _ = try child.end()
    }

    /// Has the server shut down, and waits for that.
    package func stop() throws {
        child.send(SIGTERM)
        _ = try child.end()
    }

    /// Has the server tell its clients to go elsewhere, as `nats-server --signal ldm` does.
    package func enterLameDuckMode() { child.send(SIGUSR2) }

    /// Has the server read its configuration again, after `configuration` has been added to it.
    package func reload(_ configuration: String) {
        let old = TemporaryFolder.text(of: folder.path + "/nats.conf")
        _ = folder.file("nats.conf", old + configuration + "\n")
        child.send(SIGHUP)
    }

    /// Stops the server's process, or lets it go on.
    package func suspend(_ isSuspended: Bool = true) { child.send(isSuspended ? SIGSTOP : SIGCONT) }

    /// Returns the line with which the server greets a client.
    private func greeting() -> String? {
        let call = "exec 3<>/dev/tcp/127.0.0.1/\(port) && head --lines 1 <&3"
        return try? Child("/usr/bin/env", ["bash", "-c", call]).line(where: { _ in true })
    }

    /// Waits until `find` finds something.
    private static func wait<Found>(
        _ words: String, in folder: String, until find: () -> Found?
    ) throws -> Found {
        let clock = LoadAdjustedClock()
        while true {
            if let found = find() { return found }
            guard clock.elapsed < .seconds(30) else {
                let log = TemporaryFolder.text(of: folder + "/log")
                throw Child.Failure(description: "nats-server takes too long \(words): \(log)")
            }
            usleep(10_000)
            clock.advance()
        }
    }

    /// Waits for the file in which a server names its ports, which it writes once it listens on all of them.
    private static func ports(in folder: String) throws -> String {
        try wait("to start", in: folder) {
            let name = TemporaryFolder.names(in: folder).first { $0.hasSuffix(".ports") }
            let text = name.map { TemporaryFolder.text(of: folder + "/" + $0) }
            return text?.hasSuffix("}") == true ? text : nil
        }
    }

    /// Returns the first port behind `key`: `"nats":["nats://127.0.0.1:4222"]`.
    private static func port(behind key: String, in text: String) -> UInt16? {
        let tokens = text.split(separator: "\"", omittingEmptySubsequences: false).map(String.init)
        guard let index = tokens.firstIndex(of: key), tokens.count > index + 2 else { return nil }
        return tokens[index + 2].split(separator: ":").last.flatMap { UInt16($0) }
    }
}
