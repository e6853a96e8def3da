/// The link that carries a conversation, and the move to a better link, if one is due or under way. Loop only.
final class CarryingLink {
    // The properties that each message uses are not checked for exclusive access; see `SessionMachine`.

    let link: Link
    /// When the conversation moves to a better route; never if there is none.
    @exclusivity(unchecked) var movesAt = Moment.never
    /// This session's request to move, if one is under way.
    @exclusivity(unchecked) var attempt: Attempt?

    init(link: Link) { self.link = link }
}
