import NighLoop
import NighCore

/// Checks one transport from the ground up: its own diagnosis, while it really listens and advertises, and what can be
/// seen from outside.
struct TransportExamination: Sendable {
    let trial: TransportTrial
    /// Whether the user named the transport. If not, missing hardware is no failure.
    let isAskedFor: Bool

    var scheme: String { trial.transport.scheme }

    /// How long pending lines of the diagnosis are waited for.
    private static let pendingTimeout = Duration.seconds(8)
    private static let pause = Duration.milliseconds(50)
    private static let reachTimeout = Duration.seconds(2)

    /// Lines that only count activity. They are reported only if they are no pass.
    private static let unremarkable: Set = ["pipes", "devices", "peers", "services-seen"]
    /// Lines about hardware that a machine may lack.
    private static let hardware: Set = ["kernel", "adapter"]

    /// Starts a transport and makes it listen and advertise, under a service and a PeerID that nobody else uses and
    /// that exist only for this examination.
    static func begin(_ transport: any Transport, isAskedFor: Bool) throws -> TransportExamination {
        let trial = try TransportTrial(of: transport)
        trial.advertise(
            Advertisement(
                service: Self.anyService(), peer: Identity.ephemeral().peerID, name: DoctorErrand.name))
        return TransportExamination(trial: trial, isAskedFor: isAskedFor)
    }

    private static func anyService() -> ServiceName {
        let digits = String(UInt64.random(in: 1 << 40..<1 << 41), radix: 36)
        return ServiceName("nd-\(digits)") ?? SessionOptions.ownService
    }

    /// Reports all lines of the diagnosis in order, each as soon as it and those before it are known. Returns whether
    /// the transport works.
    func tell(_ findings: Findings) async throws -> Bool {
        let clock = ContinuousClock()
        let deadline = clock.now + Self.pendingTimeout
        var reported: Set<String> = []
        while true {
            try Task.checkCancellation()
            let lines = await trial.diagnose()
            let isLate = clock.now >= deadline
            let known = isLate ? lines[...] : lines.prefix { !$0.isPending }
            for line in known where reported.insert(line.id).inserted {
                try await tell(line, findings)
            }
            guard known.count < lines.count else { break }
            findings.lookAt("\(scheme).\(lines[known.count].id)")
            try await Task.sleep(for: Self.pause)
        }
        return await trial.condition(within: .zero) == .up
    }

    private func tell(_ line: Diagnosis, _ findings: Findings) async throws {
        if line.verdict == .pass, Self.unremarkable.contains(line.id) { return }
        var finding = Finding(line, of: scheme)
        if finding.verdict == .fail, !isAskedFor, Self.hardware.contains(line.id) { finding.verdict = .warn }
        findings.tell(finding)
        guard scheme == "tcp", line.id == "port", line.verdict == .pass else { return }
        findings.lookAt("tcp.reach")
        let addresses = await trial.listeningAddresses()
        guard let port = addresses.lazy.compactMap(Self.port).first else { return }
        findings.tell(await reach(addresses, port))
        findings.tell(await Firewall.look(port: port))
    }

    private static func port(of address: TransportAddress) -> UInt16? {
        address.value.split(separator: ":").last.flatMap { UInt16($0) }
    }

    /// Dials this machine's own addresses: what cannot be reached from here cannot be reached from anywhere.
    private func reach(_ addresses: [TransportAddress], _ port: UInt16) async -> Finding {
        let (id, subject) = ("tcp.reach", "calls to oneself")
        let some = addresses.prefix(8)
        let outcomes = await withTaskGroup { group in
            for address in some {
                group.addTask {
                    (address, await trial.dial(address, timeout: Self.reachTimeout) { $0.close(.now) })
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
        let words = failed.map { "\($0.0.value): \($0.1.cause)" }.joined(separator: "; ")
        return Finding(
            id, subject, failed.count == some.count ? .fail : .warn, words,
            advice: "let TCP port \(port) through this machine's firewall")
    }
}
