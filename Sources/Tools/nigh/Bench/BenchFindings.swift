import Nigh

/// All that one `nigh bench` has found out, for its report.
struct BenchFindings: Sendable {
    /// The date and time, in words.
    let startedAt: String
    let security: SessionSecurity
    let own: DisplayName
    let ownID: PeerID
    var peer: Peer?
    var limits = BenchLimits.own
    /// What the other side runs on, in its own words.
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
