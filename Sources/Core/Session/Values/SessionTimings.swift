/// The timeouts and intervals of a session, with their defaults.
public struct SessionTimings: Hashable, Sendable {
    /// The silence after which a peer is asked for a sign of life. It is suspected after twice this time, or halfway
    /// between this and `loseAfter` if that is sooner.
    public var pingAfter: Duration = .seconds(5)
    /// The silence after which a peer is lost.
    public var loseAfter: Duration = .seconds(15)
    /// The timeout from an open pipe to the end of the hellos, and from there to a request.
    public var handshake: Duration = .seconds(10)
    /// The timeout for opening one pipe.
    public var dial: Duration = .seconds(10)
    /// The time for which a conversation whose link broke waits for another link.
    public var grace: Duration = .seconds(10)
    /// The pause before the second attempt to resume; it doubles with each attempt, with jitter.
    public var firstRetry: Duration = .milliseconds(250)
    /// The longest pause between two attempts to resume.
    public var longestRetry: Duration = .seconds(2)
    /// The time that a dial or an open pipe may take to prove which peer is there. After it, the next route or place is
    /// tried at the same time. The session waits just as long for an answer if a conversation's link broke and there
    /// are other routes, or if a conversation moves to a better route.
    public var nextRoute: Duration = .seconds(2)
    /// The time for which a better route must have been there before a conversation moves to it. It doubles each time
    /// that the move fails or does not last, with jitter. The side with the smaller PeerID waits twice as long.
    public var betterRoute: Duration = .seconds(3)
    /// The longest wait for a better route. A better link that has lasted for this time has proven itself.
    public var longestBetterRoute: Duration = .seconds(120)
    /// The pause before an address that a transport was given is dialled again after nobody has answered there. It
    /// doubles each time, with jitter.
    public var addressRetry: Duration = .seconds(1)
    /// The longest pause between two dials of an address that a transport was given.
    public var longestAddressRetry: Duration = .seconds(30)
    /// The interval at which the session checks that a peer is still at an address that a transport was given, while
    /// there is no conversation with it.
    public var addressCheck: Duration = .seconds(15)
    /// The time for which leaving waits for acknowledgements before it gives the messages up.
    public var linger: Duration = .seconds(5)
    /// The longest time for which a closing session waits until its last bytes have left the process.
    public var goodbye: Duration = .seconds(1)
    /// The time that two people have to compare the digits of a pairing.
    public var pairing: Duration = .seconds(120)
    /// The longest time for which a received message may go unacknowledged when nothing else is written.
    public var acknowledge: Duration = .milliseconds(100)

    /// Creates the default timings.
    public init() {}

    /// The timings that a link uses.
    var link: LinkTimings {
        LinkTimings(handshake: handshake, pingAfter: pingAfter, loseAfter: loseAfter)
    }
}
