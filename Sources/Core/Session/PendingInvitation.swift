/// An invitation that the program has not answered.
struct PendingInvitation {
    let number: UInt64
    let link: Link
    let request: ConversationRequest
    let deadline: Moment
}
