import NighLoop

/// Everything that one `nigh bench` measured, for its report.
struct BenchFindings: Sendable {
    /// The date and time of the start, as text.
    let startedAt: String
    let security: SessionSecurity
    let own: DisplayName
    let ownID: PeerID
    var peer: Peer?
    var limits = BenchLimits.own
    /// The software of the host, as the host describes it.
    var software = ""
    var idle = RoundTripRecord()
    var runs: [BenchRun] = []
    var wasInterrupted = false

    init(startedAt: String, security: SessionSecurity, own: DisplayName, ownID: PeerID) {
        self.startedAt = startedAt
        self.security = security
        self.own = own
        self.ownID = ownID
    }
}
