/// Every bound of a session, with its default. Reaching one gives an error (or a counted drop) that names it.
public struct SessionLimits: Hashable, Sendable {
    /// Peers connected at once, also counting those being connected. More are refused as "full".
    public var peers = 64
    /// Peers known at once by discovery or by an open link. Sightings beyond it are ignored and counted.
    public var knownPeers = 1_024
    /// Addresses dialled to learn who is there, because a transport was given them. Further ones are ignored and counted.
    public var knownAddresses = 16
    /// Routes kept for one peer.
    public var routesPerPeer = 8
    /// Places dialled behind one route where a link has not proven who is there: the addresses announced for one peer, forged
    /// ones among them. Further ones are left out.
    public var placesPerRoute = 64
    /// Pipes that have not said hello yet, or have no conversation yet. When one more comes, the oldest
    /// of them makes room, of those that have said nothing or of those that have, whichever are more. Where all wait for
    /// the program's answer, the new one is closed at once.
    public var unauthenticatedPipes = 64
    /// Invitations waiting for the program's answer. More are refused as "busy".
    public var pendingInvitations = 16
    /// Bytes of the context of an invitation; at most 4,096.
    public var invitationContext = 4_096
    /// Bytes of one reliable message.
    public var message = 16 << 20
    /// Bytes of one unreliable message; at most what the peer takes in one frame.
    public var unreliableMessage = 8_192
    /// Bytes of one frame's payload. Longer messages travel in pieces of this size. At least 8,192.
    public var frame = 16_384
    /// Bytes accepted for one peer on one lane and not yet acknowledged by it. A message is taken while less than this
    /// waits, so the last one may exceed it by its own size.
    public var sendBuffer = 4 << 20
    /// Bytes from one peer that the program has not read yet, for each lane, beyond which the peer may send no more. A
    /// message being received may exceed it by its own size.
    public var receiveWindow = 1 << 20
    /// Bytes of a ping's payload; at most 1,024.
    public var pingPayload = 1_024
    /// Pings to one peer that wait for their answer; at most 192.
    public var pendingPings = 64
    /// Events waiting to be read. The oldest are dropped beyond it, and their number told.
    public var unreadEvents = 1_024

    /// The defaults.
    public init() {}

    /// Stops the program where a limit has a value the protocol cannot do with.
    func check() {
        precondition(frame >= Hello.leastMaximumFrame && frame <= FrameHeader.maximumPayload, "limits.frame")
        precondition(message > 0 && message <= Int(UInt32.max), "limits.message")
        precondition(invitationContext <= ConversationRequest.contextLimit, "limits.invitationContext")
        precondition(unreliableMessage <= Hello.leastMaximumFrame, "limits.unreliableMessage")
        precondition(pingPayload <= FrameType.pingPayloadLimit, "limits.pingPayload")
        precondition(pendingPings <= LinkMachine.pingsRemembered * 3 / 4, "limits.pendingPings")
        precondition(receiveWindow > 0 && sendBuffer > 0, "limits.receiveWindow, limits.sendBuffer")
    }
}

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
