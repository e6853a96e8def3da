/// A conversation without a link looks for another. Loop only.
final class Recovery {
    let deadline: Moment
    var retryAt: Moment
    /// The peer wants not to be asked again earlier.
    var notBefore = Moment(nanoseconds: .min)
    var pause: Duration
    var failures: [NighError] = []
    let cause: NighError.Cause
    /// The transport whose routes are tried after all others, better ones or not.
    let lastResort: Int?
    /// This session's request to go on, under way.
    var attempt: Attempt?

    init(deadline: Moment, retryAt: Moment, pause: Duration, cause: NighError.Cause, lastResort: Int?) {
        self.deadline = deadline
        self.retryAt = retryAt
        self.pause = pause
        self.cause = cause
        self.lastResort = lastResort
    }
}
