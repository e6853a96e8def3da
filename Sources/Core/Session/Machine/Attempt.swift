/// A request of this session under way: it dials one route after another, sends the request, and waits for the answer.
/// The phase of its peer tells its purpose: a conversation, a resume, or a move. Loop only.
final class Attempt {
    /// When the attempt is given up.
    var deadline: Moment
    /// The search for the link on which the request is sent.
    let race: DialRace
    var link: Link?
    var requestSent = false
    /// When this side gives up the link on which the request was sent, and tries the next route. For an invitation,
    /// when the time named in the request is over, if the invitation lasts longer by now.
    var routeDeadline = Moment.never
    /// The bytes of each lane that the request grants to the peer, if this grant counts only after the answer.
    var granted: UInt64?
    /// The moment until which this side waits for the peer's own request, because the peer preferred its own link.
    /// After it, this side tries again.
    var waitsForPeerUntil = Moment.never

    init(race: DialRace, deadline: Moment, link: Link? = nil) {
        self.race = race
        self.deadline = deadline
        self.link = link
    }

    /// When something of the attempt is due.
    var nextDeadline: Moment { min(deadline, waitsForPeerUntil, routeDeadline) }

    /// Whether it looks for a link, and neither has one nor waits for the peer.
    var isSearching: Bool { link == nil && waitsForPeerUntil == .never }

    /// Forgets the link on which the request was sent, because it is of no use any more.
    func forgetLink() {
        link = nil
        requestSent = false
        routeDeadline = .never
    }
}
