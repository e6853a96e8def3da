import NighCore

/// Holds sessions over a transport to what sessions promise, whatever carries them: every check of
/// ``SessionConformance``, each on a rig of its own.
///
/// Run it where `checkTransportConformance` passes. The transports are wrapped in `FaultyTransport`, so that links can be cut,
/// stalled and blocked. It needs no test framework, and blocks the calling thread until all is done.
///
/// - Parameter names: the checks to run; all when nil.
public func checkSessionConformance(
    only names: [String]? = nil, _ makeRig: () throws -> TransportRig
) -> ConformanceReport {
    let checks = SessionConformance.checks.filter { names?.contains($0.name) ?? true }
    return ConformanceReport(outcomes: checks.map { $0.run(makeRig) })
}

/// The checks there are.
public enum SessionConformance {
    /// All, in the order in which it makes sense to look at failures.
    public static let checks: [ConformanceCheck] =
        meetingChecks + answeringChecks + messageChecks + slownessChecks + breakingChecks + leavingChecks
        + strangerChecks
}
