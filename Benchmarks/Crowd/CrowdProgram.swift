import Arguments
import CBenchmark
import Glibc
import NighLoop
import ProgramSupport

/// The program `bench-crowd`. It runs itself for each size, and a host runs it again for its guests.
enum CrowdProgram {
    static let name = "bench-crowd"
    /// The service of all sessions here.
    static let service: ServiceName = "crowd"

    /// The parsed command line.
    private struct Options: Sendable {
        let sizes: [Int]
        let security: SessionSecurity
        /// Set if this process is the host of that many guests.
        let host: Int?
        /// Set if this process is guests of the host at this port.
        let port: Int?
        let guests: Int
    }

    private static let program = Program(
        Command(
            name, "Measures one session with many peers over TCP on loopback, in rows of a table",
            Option(
                "sizes", .list(of: .integer("COUNTS", in: 1...100_000), atMost: 16),
                default: [10, 100, 1_000, 10_000], "the numbers of guests, a row each"),
            Option(flag: "tls", "encrypt everything"),
            Option("host", .integer(in: 1...100_000), "be the host of this many guests, and print one row"),
            Option("port", .integer(in: 1...65_535), "be guests of the host at this port"),
            Option("guests", .integer(in: 1...100_000), default: 1, "how many guests to be")
        ) { sizes, isEncrypted, host, port, guests in
            Options(
                sizes: sizes, security: isEncrypted ? .encrypted : .none, host: host, port: port,
                guests: guests)
        })

    static func run(_ arguments: [String]) async -> Int32 {
        let options = program.parseOrExit(arguments, as: name)
        raiseDescriptorLimit()
        if let port = options.port {
            CrowdGuests(options.guests, of: port, options.security).run()
            return 0
        }
        if let size = options.host {
            do {
                print(try await CrowdHost(of: size, options.security).run().row)
                return 0
            } catch {
                LineOutput.printError("\(size) guests: \(error)", by: name)
                return 1
            }
        }
        print(CrowdResult.header)
        fflush(nil)
        var status: Int32 = 0
        for size in options.sizes {
            status = max(status, runHost(of: size, options.security))
        }
        return status
    }

    /// Runs a host in a process of its own, so that the memory of one does not count for the next.
    private static func runHost(of size: Int, _ security: SessionSecurity) -> Int32 {
        do {
            var host = try CrowdProcess(["--host", "\(size)"], security)
            // Its row, or nothing.
            while let line = host.readLine() { print(line) }
            fflush(nil)
            return host.wait()
        } catch {
            LineOutput.printError("\(error)", by: name)
            return 1
        }
    }

    /// Takes as many descriptors as the system gives.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// Returns the settings of a session: the defaults, with room for `peers` peers.
    static func configuration(
        _ role: SessionRole, peers: Int, _ security: SessionSecurity
    ) -> SessionConfiguration {
        var configuration = SessionConfiguration(
            service: service, name: DisplayName(fitting: role == .server ? "host" : "guest"), role: role)
        configuration.security = security
        configuration.limits.peers = max(configuration.limits.peers, peers)
        configuration.limits.knownPeers = max(configuration.limits.knownPeers, peers)
        configuration.limits.unauthenticatedPipes = max(configuration.limits.unauthenticatedPipes, peers)
        return configuration
    }

    static func transport() -> TCPTransport {
        var options = TCPOptions()
        options.discovery = .off
        options.interface = "lo"
        return TCPTransport(options)
    }
}

/// This program, running again with other arguments.
struct CrowdProcess: ~Copyable {
    private var process: benchmark_process
    private let output: UnsafeMutablePointer<FILE>?

    init(_ arguments: [String], _ security: SessionSecurity) throws(NighError) {
        let all = ["/proc/self/exe"] + arguments + (security == .encrypted ? ["--tls"] : [])
        var pointers: [UnsafeMutablePointer<CChar>?] = all.map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        pointers.append(nil)
        process = benchmark_start(&pointers, -1)
        guard process.identifier > 0 else {
            throw NighError(.starting, .unavailable("another process"))
        }
        output = fdopen(process.output, "r")
    }

    /// Returns the next line that it prints; nil at its end.
    mutating func readLine() -> String? {
        var line: UnsafeMutablePointer<CChar>?
        var room = 0
        defer { free(line) }
        guard let output, getline(&line, &room, output) > 0, let line else { return nil }
        return String(String(cString: line).dropLast())
    }

    /// Waits for its end. Returns its status.
    mutating func wait() -> Int32 {
        close(process.input)
        var status = benchmark_wait(process.identifier, 60_000)
        if status < 0 {
            kill(process.identifier, SIGKILL)
            status = benchmark_wait(process.identifier, 10_000)
        }
        return status
    }
}
