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
            try server.wait("to know the cluster") { greeting in
                servers.allSatisfy { greeting.contains(":\($0.port)\"") }
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
    package func greeting() -> String? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = read(descriptor, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
    }

    private func wait(_ what: String, until isTrue: (String) -> Bool) throws {
        let clock = LoadAdjustedClock()
        while true {
            if let greeting = greeting(), isTrue(greeting) { return }
            guard clock.elapsed < .seconds(30) else {
                throw Child.Failure(description: "nats-server takes too long \(what): \(log)")
            }
            usleep(20_000)
            clock.advance()
        }
    }

    /// Waits for the file in which a server names its ports, which it writes once it listens on all of them.
    private static func ports(in folder: String) throws -> String {
        let clock = LoadAdjustedClock()
        while true {
            if let name = TemporaryFolder.names(in: folder).first(where: { $0.hasSuffix(".ports") }) {
                let text = TemporaryFolder.text(of: folder + "/" + name)
                if text.hasSuffix("}") { return text }
            }
            guard clock.elapsed < .seconds(30) else {
                throw Child.Failure(
                    description: "nats-server does not start: \(TemporaryFolder.text(of: folder + "/log"))")
            }
            usleep(10_000)
            clock.advance()
        }
    }

    /// Returns the first port behind `key`: `"nats":["nats://127.0.0.1:4222"]`.
    private static func port(behind key: String, in text: String) -> UInt16? {
        let tokens = text.split(separator: "\"", omittingEmptySubsequences: false).map(String.init)
        guard let index = tokens.firstIndex(of: key), tokens.count > index + 2 else { return nil }
        return tokens[index + 2].split(separator: ":").last.flatMap { UInt16($0) }
    }
}
