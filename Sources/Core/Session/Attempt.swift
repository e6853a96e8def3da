/// A request of this session's on its way: dial one route after another, send the request, wait for the answer. What it asks
/// for is said by the phase of the peer that has it: a conversation, that one goes on, or that it moves. Loop only.
final class Attempt {
    /// When to give up.
    var deadline: Moment
    /// Looks for the link to ask on.
    let race: DialRace
    var link: Link?
    var requestSent = false
    /// When the next route is tried in place of the link that was asked on.
    var routeDeadline = Moment.never
    /// How many bytes of each lane the request allows the peer to send, where nothing counts before the answer.
    var granted: UInt64?
    /// The peer preferred its own link: wait for that one's request, and try again at this moment if none comes.
    var yieldsUntil = Moment.never

    init(race: DialRace, deadline: Moment, link: Link? = nil) {
        self.race = race
        self.deadline = deadline
        self.link = link
    }

    /// When something of it is due.
    var nextLook: Moment { min(deadline, yieldsUntil, routeDeadline) }

    /// The link that was asked on is of no use any more.
    func forgetLink() {
        link = nil
        requestSent = false
        routeDeadline = .never
    }
}
