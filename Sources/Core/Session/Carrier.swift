/// The link that carries a conversation, and what is under way to move it to a better link. Loop only.
final class Carrier {
    let link: Link
    /// When the conversation moves to a better route that is there.
    var movesAt = Moment.never
    /// This session's request to move, if one is under way.
    var attempt: Attempt?

    init(link: Link) { self.link = link }
}
