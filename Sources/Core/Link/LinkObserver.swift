/// Receives everything that passes on a session's links, as the two ends see it:
/// after decryption, and before encryption.
///
/// For tracing and for records. A session has the observers that its layers have; a `SessionLayer` that conforms to
/// this protocol is one itself.
///
/// The session calls it on its loop, for one event after another, also while it calls the program's handlers. So it
/// must not block, must not take long, and must not call back into the session. It may do so from another thread, or by
/// `EventLoop.execute`. The first event of a link is `opened` and the last is `ended`. After the session's `close` has
/// returned, there are no more events.
///
/// An observer sees every message in plaintext, but no keys.
public protocol LinkObserver: AnyObject, Sendable {
    /// Called when something has happened on the link numbered `link`. The number is unique in its session.
    func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment)
}

/// An event on a link.
public enum LinkEvent: Sendable {
    /// A pipe is open. The peer at the other end is not known yet.
    case opened(LinkOpening)
    /// The other side has proven its key. Not reported without encryption, where nothing is proven.
    case secured(peer: PeerID, wasResumed: Bool)
    /// The hellos are exchanged, and the other side's hello is valid.
    case greeted(LinkGreeting)
    /// Bytes have arrived: first the eight bytes of the other side's preface, then those of its frames, split anywhere.
    /// They lie where the link reads them, so a slice that is kept keeps its whole chunk in memory.
    case received(ByteSlice)
    /// Bytes are handed to the pipe: first the eight bytes of this side's preface, then those of frames, split
    /// anywhere. A slice that is kept keeps its whole chunk in memory.
    case sent(ByteSlice)
    /// A genuine packet has arrived on the datagram path: its header (16 bytes) and its content, without the tag.
    /// Packets that are forged, damaged or repeated are only counted, in ``DatagramStatistics``.
    case packetReceived(ByteSlice)
    /// A packet is about to leave on the datagram path: its header (16 bytes) and its content, without the tag.
    /// Reported also if it is then dropped because it cannot leave at once.
    case packetSent(ByteSlice)
    /// The link has ended.
    case ended(LinkEnding)
}

/// How a link begins.
public struct LinkOpening: Hashable, Sendable {
    /// Whether this side has dialled.
    public var isDialled: Bool
    /// The scheme of the transport.
    public var scheme: String
    /// The address of this end, if the transport can name it.
    public var localAddress: TransportAddress?
    /// The address of the other end, if the transport can name it.
    public var remoteAddress: TransportAddress?

    /// Creates an opening from all its values.
    public init(
        isDialled: Bool, scheme: String, localAddress: TransportAddress? = nil,
        remoteAddress: TransportAddress? = nil
    ) {
        self.isDialled = isDialled
        self.scheme = scheme
        self.localAddress = localAddress
        self.remoteAddress = remoteAddress
    }
}

/// The peer at the other end of a link, as its hello describes it.
public struct LinkGreeting: Hashable, Sendable {
    /// The peer's ID. A `LinkEvent.secured` has proven it before; without encryption it is only a claim.
    public var peer: PeerID
    /// The peer's display name.
    public var name: DisplayName
    /// The service that the peer offers and looks for.
    public var service: ServiceName
    /// A number that distinguishes the peer's session from earlier ones.
    public var incarnation: UInt64

    /// Creates a greeting from all its values.
    public init(peer: PeerID, name: DisplayName, service: ServiceName, incarnation: UInt64) {
        self.peer = peer
        self.name = name
        self.service = service
        self.incarnation = incarnation
    }
}

/// Why a link ended.
public struct LinkEnding: Hashable, Sendable {
    /// The cause in words.
    public var reason: String
    /// The code of the close frame that ended the link (docs/reference/PROTOCOL.md, 6). Nil if there was none.
    public var code: UInt16?
    /// Whether the other side ended the link.
    public var isByPeer: Bool

    /// Creates an ending from all its values.
    public init(reason: String, code: UInt16?, isByPeer: Bool) {
        self.reason = reason
        self.code = code
        self.isByPeer = isByPeer
    }
}

/// Collects the events of a link until the driver passes them to the observer, because the link itself
/// calls nobody. Used on the loop only.
package final class LinkTap {
    private var events: [LinkEvent] = []

    /// Records one event.
    func note(_ event: LinkEvent) { events.append(event) }

    /// Records all bytes of `queue`, which stay in the queue.
    func note(_ queue: borrowing ByteQueue, as event: (ByteSlice) -> LinkEvent) {
        for index in 0..<queue.sliceCount { events.append(event(queue[index])) }
    }

    /// Returns a tap that records the packets of the datagram path. They are copied, because they lie in memory that is
    /// used again.
    func packetTap() -> PacketTap {
        PacketTap(
            received: { self.events.append(.packetReceived(ByteSlice(copying: $0))) },
            sent: { self.events.append(.packetSent(ByteSlice(copying: $0))) })
    }

    /// Records the other side's hello.
    func note(greetingBy hello: Hello) {
        events.append(
            .greeted(
                LinkGreeting(
                    peer: hello.peer, name: hello.name, service: hello.service, incarnation: hello.incarnation
                )))
    }

    /// Removes and returns all recorded events, in order.
    package func take() -> [LinkEvent] {
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }
}
