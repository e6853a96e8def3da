/// A conversation without a link looks for another.
struct Recovery {
    let deadline: Moment
    var retryAt: Moment
    /// The peer wants not to be asked again earlier.
    var notBefore = Moment(nanoseconds: .min)
    var pause: Duration
    var failures: [NighError] = []
    let cause: NighError.Cause
    /// The transport whose routes are tried after all others, better ones or not.
    let lastResort: Int?
}
