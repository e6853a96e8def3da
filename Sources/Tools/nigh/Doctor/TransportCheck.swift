import NighLoop
import NighCore
import NighWeb

/// Checks one transport from the ground up: its own diagnosis, while it really listens and advertises, and its
/// visibility from outside.
struct TransportCheck: Sendable {
    let runner: TransportRunner
    /// Whether the user named the transport. If not, missing hardware is no failure.
    let isNamedByUser: Bool

    var scheme: String { runner.transport.scheme }

    /// How long pending lines of the diagnosis are waited for.
    private static let pendingTimeout = Duration.seconds(8)
    private static let pause = Duration.milliseconds(50)
    private static let reachTimeout = Duration.seconds(2)

    /// Lines that only count activity. They are reported only if they are no pass.
    private static let unremarkable: Set = ["pipes", "devices", "peers", "services-seen", "guests"]
    /// The diagnosis lines that a transport has only after a search for peers.
    private static let ofSearch: Set = ["services-seen", "announcements"]
    /// Lines about hardware that a machine may lack.
    private static let hardware: Set = ["kernel", "adapter"]

    /// Starts a transport and makes it listen and advertise, under a service and a PeerID that nobody else uses and
    /// that exist only for this check.
    static func begin(_ transport: any Transport, isNamedByUser: Bool) throws -> TransportCheck {
        let runner = try TransportRunner(of: transport)
        runner.advertise(
            Advertisement(
                service: Self.anyService(), peer: Identity.ephemeral().peerID, name: DoctorCommand.name))
        return TransportCheck(runner: runner, isNamedByUser: isNamedByUser)
    }

    private static func anyService() -> ServiceName {
        let digits = String(UInt64.random(in: 1 << 40..<1 << 41), radix: 36)
        return ServiceName("nd-\(digits)") ?? SessionOptions.ownService
    }

    /// Reports all lines of the diagnosis in order, each as soon as it and those before it are known. Returns whether
    /// the transport works.
    func report(to reporter: FindingReporter) async throws -> Bool {
        let clock = ContinuousClock()
        let deadline = clock.now + Self.pendingTimeout
        var reported: Set<String> = []
        while true {
            try Task.checkCancellation()
            let lines = await runner.diagnose()
            let isLate = clock.now >= deadline
            let known = isLate ? lines[...] : lines.prefix { !$0.isPending }
            for line in known where reported.insert(line.id).inserted {
                try await report(line, to: reporter)
            }
            guard known.count < lines.count else { break }
            reporter.showProgress("\(scheme).\(lines[known.count].id)")
            try await Task.sleep(for: Self.pause)
        }
        return await runner.condition(within: .zero) == .up
    }

    /// Reports faulty announcements that a search for peers has seen.
    func reportSearch(to reporter: FindingReporter) async {
        for line in await runner.diagnose() where Self.ofSearch.contains(line.id) && line.verdict != .pass {
            reporter.report(Finding(line, of: scheme))
        }
    }

    private func report(_ line: Diagnosis, to reporter: FindingReporter) async throws {
        if line.verdict == .pass, Self.unremarkable.contains(line.id) { return }
        var finding = Finding(line, of: scheme)
        if finding.verdict == .fail, !isNamedByUser, Self.hardware.contains(line.id) {
            finding.verdict = .warn
        }
        reporter.report(finding)
        guard line.id == "port", line.verdict == .pass else { return }
        if scheme == WebTransport.schemeName { return await reportPage(to: reporter) }
        guard scheme == "tcp" else { return }
        reporter.showProgress("tcp.reach")
        let addresses = await runner.listeningAddresses()
        guard let port = addresses.lazy.compactMap(Self.port).first else { return }
        reporter.report(await reach(addresses, port))
        for finding in await Firewall.check(port: port) { reporter.report(finding) }
    }

    /// Reports whether the page for guests can be had.
    private func reportPage(to reporter: FindingReporter) async {
        reporter.showProgress("web.reach")
        let addresses = await runner.listeningAddresses()
        reporter.report(await WebCheck.reach(addresses))
        if let port = addresses.lazy.compactMap(Self.port).first {
            for var finding in await Firewall.check(port: port) where finding.id == "tcp.firewall" {
                finding.id = "web.firewall"
                reporter.report(finding)
            }
        }
        if let finding = WebCheck.isolation() { reporter.report(finding) }
    }

    private static func port(of address: TransportAddress) -> UInt16? {
        address.value.split(separator: ":").last.flatMap { UInt16($0) }
    }

    /// Dials this machine's own addresses: an address that does not answer here does not answer anywhere.
    private func reach(_ addresses: [TransportAddress], _ port: UInt16) async -> Finding {
        let (id, subject) = ("tcp.reach", "connections to itself")
        let some = addresses.prefix(8)
        let outcomes = await withTaskGroup { group in
            for address in some {
                group.addTask {
                    (address, await runner.dial(address, timeout: Self.reachTimeout) { $0.close(.now) })
                }
            }
            return await group.reduce(into: [TransportAddress: Result<Moment.Span, NighError>]()) {
                $0[$1.0] = $1.1
            }
        }
        let failed: [(TransportAddress, NighError)] = some.compactMap { address in
            guard case .failure(let error)? = outcomes[address] else { return nil }
            return (address, error)
        }
        guard !failed.isEmpty else {
            return Finding(id, subject, .pass, "answered at each of \(some.count) addresses")
        }
        let finding = failed.map { "\($0.0.value): \($0.1.cause)" }.joined(separator: "; ")
        return Finding(
            id, subject, failed.count == some.count ? .fail : .warn, finding,
            advice: "allow TCP port \(port) in this machine's firewall")
    }
}
