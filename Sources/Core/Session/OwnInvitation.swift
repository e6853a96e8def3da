/// What this session asks of a peer that it has no conversation with. Loop only.
final class OwnInvitation {
    /// The conversation that is proposed.
    let conversation: UInt64
    let context: [UInt8]
    /// Who wants to hear how it ends.
    var tokens: [CallToken]
    let attempt: Attempt

    init(conversation: UInt64, context: [UInt8], token: CallToken, attempt: Attempt) {
        self.conversation = conversation
        self.context = context
        tokens = [token]
        self.attempt = attempt
    }
}
