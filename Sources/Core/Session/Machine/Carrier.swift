/// The link that carries a conversation, and what is under way to move it to a better link. Loop only.
final class Carrier {
    // All of this is touched on the loop only, and no access lasts across a call to other code. So it needs no run-time
    // check for exclusive access.

    let link: Link
    /// When the conversation moves to a better route that is there.
    @exclusivity(unchecked) var movesAt = Moment.never
    /// This session's request to move, if one is under way.
    @exclusivity(unchecked) var attempt: Attempt?

    init(link: Link) { self.link = link }
}
