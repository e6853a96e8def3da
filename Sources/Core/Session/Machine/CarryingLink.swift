/// The link that carries a conversation, and the move to a better link, if one is due or under way. Loop only.
final class CarryingLink {
    let link: Link
    /// When the conversation moves to a better route; never if there is none.
    var movesAt = Moment.never
    /// This session's request to move, if one is under way.
    var attempt: Attempt?

    init(link: Link) { self.link = link }
}
