import Glibc
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

/// The date and time of people.
enum WallClock {
    /// As in `2026-11-21 22:44:07 UTC`.
    static var now: String {
        var seconds = time(nil)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, "%Y-%m-%d %H:%M:%S UTC", &parts)
        return String(decoding: text.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
