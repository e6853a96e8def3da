/// Counts of the events in a session so far, by cause.
public struct SessionStatistics: Hashable, Sendable {
    /// Peers with a conversation now or earlier, as long as they are known.
    public var peers: [PeerID: PeerStatistics] = [:]
    /// Dials started.
    public var dials = 0
    /// Dials that opened no pipe, by cause.
    public var dialsFailed: [String: Int] = [:]
    /// Pipes accepted.
    public var pipesAccepted = 0
    /// Accepted pipes closed because too many had no conversation yet (the new one at once, or an older one to make
    /// room for it), or because the session was closing.
    public var pipesRefused = 0
    /// Links that ended, by cause.
    public var linksEnded: [String: Int] = [:]
    /// Requests of peers that this side refused, by reason, and pairings that ended without success, by cause.
    public var refusals: [String: Int] = [:]
    /// Sightings ignored because the limit of known peers, of routes or of known addresses was reached.
    public var sightingsIgnored = 0
    /// Conversations ended, by cause.
    public var conversationsEnded: [String: Int] = [:]

    /// Creates counts that are all zero.
    public init() {}
}
