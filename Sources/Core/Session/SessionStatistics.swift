/// What has happened in a session so far, by cause.
public struct SessionStatistics: Hashable, Sendable {
    /// Peers with a conversation now or before, as long as they are known.
    public var peers: [PeerID: PeerStatistics] = [:]
    /// Dials begun.
    public var dials = 0
    /// Dials that opened no pipe, by cause.
    public var dialsFailed: [String: Int] = [:]
    /// Pipes that came in.
    public var pipesAccepted = 0
    /// Pipes closed because too many had not said who they are: at once, or to make room for the next.
    public var pipesRefused = 0
    /// Links that ended, by cause.
    public var linksEnded: [String: Int] = [:]
    /// Requests of others refused by this side, by reason.
    public var refusals: [String: Int] = [:]
    /// Sightings ignored because the limit of known peers or routes was reached.
    public var sightingsIgnored = 0
    /// Conversations ended, by cause.
    public var conversationsEnded: [String: Int] = [:]

    /// All zero.
    public init() {}
}
