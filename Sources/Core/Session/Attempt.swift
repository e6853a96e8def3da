/// A request of this session's on its way: dial one route after another, send the request, wait for the answer.
struct Attempt {
    /// What is asked for.
    enum Kind: Equatable {
        case invite(conversation: UInt64, context: [UInt8])
        case resume
        /// The same while the old link is still there, over a better route.
        case move

        /// Whether it goes on with a conversation: to the other side it is a resume.
        var isResume: Bool { self == .resume || self == .move }
    }

    let kind: Kind
    /// Who wants to hear how it ends.
    var tokens: [CallToken]
    /// When to give up; for a resumption the recovery decides.
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
}
