/// Counts the peers and links that a session's limits are about.
///
/// Records and links report each change to it. So a session with thousands of peers need not go through all of them
/// for each one that comes. Loop only.
final class SessionCensus {
    /// The peers that count against `limits.peers`.
    private(set) var engaged = 0
    /// The peers with a conversation.
    private(set) var conversing = 0
    /// The invitations that wait for the program.
    private(set) var invitations = 0
    /// The accepted pipes without a conversation.
    private(set) var strangers = 0

    func phaseChanged(from old: PeerPhase, to new: PeerPhase) {
        engaged += Self.change(old.state.isEngaged, new.state.isEngaged)
        conversing += Self.change(old.state.hasConversation, new.state.hasConversation)
        invitations += Self.change(old.invitation != nil, new.invitation != nil)
    }

    func purposeChanged(from wasStranger: Bool, to isStranger: Bool) {
        strangers += Self.change(wasStranger, isStranger)
    }

    private static func change(_ before: Bool, _ after: Bool) -> Int { (after ? 1 : 0) - (before ? 1 : 0) }
}
