/// This session's request to a peer with which it has no conversation. Loop only.
final class OutgoingInvitation {
    // All of this is touched on the loop only, and no access lasts across a call to other code. So it needs no run-time
    // check for exclusive access.

    /// The ID of the proposed conversation.
    let conversation: UInt64
    let context: [UInt8]
    /// The calls that get the outcome.
    @exclusivity(unchecked) var tokens: [CallToken]
    let attempt: Attempt
    /// Who has introduced this session to the peer; empty if nobody has.
    @exclusivity(unchecked) var introduction: [UInt8] = []
    /// What the peer's own invitation said, if the peer gave it up to accept this one.
    @exclusivity(unchecked) var crossedContext: [UInt8]?

    init(conversation: UInt64, context: [UInt8], token: CallToken, attempt: Attempt) {
        self.conversation = conversation
        self.context = context
        tokens = [token]
        self.attempt = attempt
    }
}
