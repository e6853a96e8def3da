/// The spans of time that one link goes by.
package struct LinkTimings: Hashable, Sendable {
    /// From an open pipe to the end of the hellos.
    package var handshake: Duration
    /// A peer not heard for this long is asked whether it is there.
    package var askAfter: Duration
    /// A peer not heard for this long is lost.
    package var loseAfter: Duration

    /// All of them.
    package init(handshake: Duration, askAfter: Duration, loseAfter: Duration) {
        self.handshake = handshake
        self.askAfter = askAfter
        self.loseAfter = loseAfter
    }
}
