import NighCore

/// Checks sessions over a transport against what sessions promise over any transport. Runs the checks of
/// ``SessionConformance``, each on a rig of its own.
///
/// Run it on a transport that passes `checkTransportConformance`. The suite wraps the transports in `FaultyTransport`,
/// so that it can cut, stall and block links. It needs no test framework, and blocks the calling thread until all
/// checks are done.
///
/// - Parameter names: the checks to run; all if nil.
public func checkSessionConformance(
    only names: [String]? = nil, _ makeRig: () throws -> TransportRig
) -> ConformanceReport {
    let checks = SessionConformance.checks.filter { names?.contains($0.name) ?? true }
    return ConformanceReport(outcomes: checks.map { $0.run(makeRig) })
}

/// The conformance checks for sessions.
public enum SessionConformance {
    /// All checks, in the order in which failures are best investigated.
    public static let checks: [ConformanceCheck] =
        meetingChecks + invitationChecks + messageChecks + slowReaderChecks + byteStreamChecks + fileChecks
        + resumeChecks + leavingChecks + strangerChecks
}
