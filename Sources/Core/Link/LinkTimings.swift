/// The timings of one link.
package struct LinkTimings: Hashable, Sendable {
    /// The time limit from the opening of the pipe to the end of the hellos.
    package var handshake: Duration
    /// The time after which a silent peer is pinged.
    package var pingAfter: Duration
    /// The time after which a silent peer is lost.
    package var loseAfter: Duration

    package init(handshake: Duration, pingAfter: Duration, loseAfter: Duration) {
        self.handshake = handshake
        self.pingAfter = pingAfter
        self.loseAfter = loseAfter
    }
}
