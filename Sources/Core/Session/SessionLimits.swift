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
