/// The state of a conversation that has lost its link and looks for another one. Loop only.
final class Recovery {
    let deadline: Moment
    var retryAt: Moment
    /// The peer does not want to be asked again before this moment.
    var notBefore = Moment(nanoseconds: .min)
    var pause: Duration
    var failures: [NighError] = []
    let cause: NighError.Cause
    /// The transport whose routes are tried after all others, even if they are better ones.
    let lastResort: Int?
    /// This session's request to resume, if one is under way.
    var attempt: Attempt?

    init(deadline: Moment, retryAt: Moment, pause: Duration, cause: NighError.Cause, lastResort: Int?) {
        self.deadline = deadline
        self.retryAt = retryAt
        self.pause = pause
        self.cause = cause
        self.lastResort = lastResort
    }
}
