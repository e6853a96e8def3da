/// Every span of time a session goes by, with its default.
public struct SessionTimings: Hashable, Sendable {
    /// A peer not heard for this long is asked whether it is there; after twice this it is suspected.
    public var askAfter: Duration = .seconds(5)
    /// A peer not heard for this long is lost.
    public var loseAfter: Duration = .seconds(15)
    /// From an open pipe to the end of the hellos, and from there to a request.
    public var handshake: Duration = .seconds(10)
    /// For opening one pipe.
    public var dial: Duration = .seconds(10)
    /// How long a conversation whose link broke waits for another.
    public var grace: Duration = .seconds(10)
    /// Before the second attempt to find a way back; doubles with each one, with jitter.
    public var firstRetry: Duration = .milliseconds(250)
    /// The longest pause between two such attempts.
    public var longestRetry: Duration = .seconds(2)
    /// How long a dial or an open pipe may go without proof of who is there, before the next route or place is tried beside it.
    /// Where a conversation's link broke and there are other routes, and where it moves to a better one, the answer is waited for
    /// as long.
    public var nextRoute: Duration = .seconds(2)
    /// How long a better route must have been there before a conversation moves to it; doubles each time where that fails
    /// or does not last, with jitter. The side with the smaller PeerID waits twice as long.
    public var betterRoute: Duration = .seconds(3)
    /// The longest wait for that. A better link that has lasted so long has proven itself.
    public var longestBetterRoute: Duration = .seconds(120)
    /// Before an address that a transport was given is dialled again after nobody has answered; doubles each time, with
    /// jitter.
    public var addressRetry: Duration = .seconds(1)
    /// The longest pause between two such dials.
    public var longestAddressRetry: Duration = .seconds(30)
    /// How often it is looked whether a peer is still at such an address, while there is no conversation with it.
    public var addressCheck: Duration = .seconds(15)
    /// How long leaving waits for messages to be acknowledged before it gives them up.
    public var linger: Duration = .seconds(5)
    /// How long a closing session waits at most for its last bytes to leave the process.
    public var goodbye: Duration = .seconds(1)
    /// How long two people have for comparing the digits of a pairing.
    public var pairing: Duration = .seconds(120)
    /// How long a received message may go unacknowledged when nothing else is written.
    public var acknowledge: Duration = .milliseconds(100)

    /// The defaults.
    public init() {}

    /// Those that a link goes by.
    var link: LinkTimings {
        LinkTimings(handshake: handshake, askAfter: askAfter, loseAfter: loseAfter)
    }
}
