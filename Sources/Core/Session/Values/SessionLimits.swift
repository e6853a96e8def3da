/// The limits of a session, with their defaults. Reaching a limit causes an error, or a counted drop, that names it.
public struct SessionLimits: Hashable, Sendable {
    /// Peers connected at once, including those being connected. More are refused as "full".
    public var peers = 64
    /// Peers known at once, by discovery or by an open link. Further sightings are ignored and counted.
    public var knownPeers = 1_024
    /// Addresses that a transport was given, which the session dials to learn which peer is there. Further ones are
    /// ignored and counted.
    public var knownAddresses = 16
    /// Routes kept for one peer.
    public var routesPerPeer = 8
    /// Places dialled behind one route where no link has proven which peer is there. These are the addresses announced
    /// for one peer, forged ones among them. Further ones are left out.
    public var placesPerRoute = 64
    /// Pipes that have not said hello yet, or have no conversation yet. When one more comes, the oldest one is closed:
    /// of the pipes on which no whole preface has come, or of the others, whichever are more. If all wait for the
    /// program's answer, the new one is closed at once.
    public var unauthenticatedPipes = 64
    /// Invitations that wait for the program's answer. More are refused as "busy".
    public var pendingInvitations = 16
    /// Bytes of an invitation's context; at most 4,096.
    public var invitationContext = 4_096
    /// Bytes of one reliable message.
    public var message = 16 << 20
    /// Bytes of one unreliable message; at most the bytes that the peer accepts in one frame.
    public var unreliableMessage = 8_192
    /// Bytes of one frame's payload; at least 8,192. Longer messages travel in pieces of this size.
    public var frame = 16_384
    /// Bytes accepted for one peer on one lane and not acknowledged yet. A message is accepted while fewer bytes wait,
    /// so the last one may exceed the limit by its own size.
    public var sendBuffer = 4 << 20
    /// Bytes from one peer that the program has not read yet, for each lane. Beyond this limit the peer may send no
    /// more. A message that is being received may exceed it by its own size.
    public var receiveWindow = 1 << 20
    /// Streams that one peer may have open at once, besides those that this session has open to it; at most 65,535.
    /// With 0 the session has no streams in either direction.
    public var streams = 256
    /// Bytes of one stream that wait in each direction: from the program, and for it. Beyond this limit `write` waits.
    /// Of files that come, up to four times this may wait for the disk.
    public var streamWindow = 256 << 10
    /// Bytes of a ping's payload; at most 1,024.
    public var pingPayload = 1_024
    /// Pings to one peer that wait for their answer; at most 192.
    public var pendingPings = 64
    /// Events that wait to be read. Beyond this limit the oldest are dropped, and `.eventsDropped` reports their
    /// number.
    public var unreadEvents = 1_024

    /// Creates the default limits.
    public init() {}

    /// The terms for streams, also for those with these purposes, in this session's hello; nil if it has no streams.
    func streamTerms(for purposes: some Sequence<StreamPurpose>) -> StreamTerms? {
        streams > 0 ? StreamTerms(streams: streams, window: streamWindow, for: purposes) : nil
    }

    /// The name of a limit whose value the protocol does not allow; nil if there is none.
    var invalidLimit: String? {
        let limits: [(name: String, isValid: Bool)] = [
            ("frame", frame >= Hello.leastMaximumFrame && frame <= FrameHeader.maximumPayload),
            ("message", message > 0 && message <= Int(UInt32.max)),
            ("invitationContext", invitationContext <= ConversationRequest.contextLimit),
            ("unreliableMessage", unreliableMessage <= Hello.leastMaximumFrame),
            ("pingPayload", pingPayload <= FrameType.pingPayloadLimit),
            ("pendingPings", pendingPings <= LinkMachine.maximumPendingPings * 3 / 4),
            ("receiveWindow", receiveWindow > 0),
            ("sendBuffer", sendBuffer > 0),
            ("streams", (0...Int(UInt16.max)).contains(streams)),
            ("streamWindow", streamWindow > 0 && streamWindow <= Int(UInt32.max)),
        ]
        return limits.first { !$0.isValid }?.name
    }
}
