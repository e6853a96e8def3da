/// An invitation that the program has not answered.
struct IncomingInvitation {
    let number: UInt64
    let link: Link
    let request: ConversationRequest
    let deadline: Moment
}
