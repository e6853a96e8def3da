/// An invitation that the program has not answered. An object, so that the phase of a peer, which is copied often,
/// stays small.
final class IncomingInvitation {
    let number: UInt64
    let link: Link
    let request: ConversationRequest
    let deadline: Moment

    init(number: UInt64, link: Link, request: ConversationRequest, deadline: Moment) {
        self.number = number
        self.link = link
        self.request = request
        self.deadline = deadline
    }
}
