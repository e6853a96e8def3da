/// The timings of one link.
package struct LinkTimings: Hashable, Sendable {
    /// The time limit from the opening of the pipe to the end of the hellos.
    package var handshake: Duration
    /// The time after which a silent peer is pinged.
    package var askAfter: Duration
    /// The time after which a silent peer is lost.
    package var loseAfter: Duration

    package init(handshake: Duration, askAfter: Duration, loseAfter: Duration) {
        self.handshake = handshake
        self.askAfter = askAfter
        self.loseAfter = loseAfter
    }
}
