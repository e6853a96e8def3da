/// Sees what passes on a session's links as the two ends understand it: after decryption, and before encryption. For tracing and
/// for records; see `SessionConfiguration.observer`.
///
/// The session calls it on its loop, for one thing after another, also while it calls the program's handlers. So it must
/// not block and must not take long, and it must not call back into the session; from another thread, or by `EventLoop.execute`, it
/// may. What it is told about a link begins with `opened` and ends with `ended`; nothing comes for that link afterwards, and
/// nothing at all once the session's `close` has returned.
///
/// Whoever has this sees every message in the clear, and keys of nobody.
public protocol LinkObserver: AnyObject, Sendable {
    /// Something has happened on the link numbered `link`, which is unique in its session.
    func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment)
}

/// What happens on a link.
public enum LinkEvent: Sendable {
    /// A pipe is open; who is at the other end is not known yet.
    case opened(LinkOpening)
    /// The other side has proven its key. Not told without encryption, where nobody proves anything.
    case secured(peer: PeerID, wasResumed: Bool)
    /// The hellos are exchanged, and the other side's was good.
    case greeted(LinkGreeting)
    /// Bytes came: first the eight of the other side's preface, then those of its frames, cut anywhere. They lie where the link
    /// reads them: a slice that is kept keeps its whole chunk in memory.
    case received(ByteSlice)
    /// Bytes are handed to the pipe: first the eight of the own preface, then those of frames, cut anywhere. The same holds for them.
    case sent(ByteSlice)
    /// The link is over.
    case ended(LinkEnding)
}

/// How a link begins.
public struct LinkOpening: Hashable, Sendable {
    /// Whether this side has dialled.
    public var isDialled: Bool
    /// The transport's scheme.
    public var scheme: String
    /// This end, where the transport can name it.
    public var localAddress: TransportAddress?
    /// The other end, where the transport can name it.
    public var remoteAddress: TransportAddress?

    /// All of it.
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

/// Who is at the other end of a link, as their hello says.
public struct LinkGreeting: Hashable, Sendable {
    /// Proven by `LinkEvent.secured` before, or without encryption merely said.
    public var peer: PeerID
    /// Their name.
    public var name: DisplayName
    /// What they offer and look for.
    public var service: ServiceName
    /// Tells their session from one before.
    public var incarnation: UInt64

    /// All of it.
    public init(peer: PeerID, name: DisplayName, service: ServiceName, incarnation: UInt64) {
        self.peer = peer
        self.name = name
        self.service = service
        self.incarnation = incarnation
    }
}

/// Why a link is over.
public struct LinkEnding: Hashable, Sendable {
    /// The cause in words.
    public var words: String
    /// The code of the close frame that ended it (docs/PROTOCOL.md, 6); nil where there was none.
    public var code: UInt16?
    /// Whether the other side has ended it.
    public var isByPeer: Bool

    /// All of it.
    public init(words: String, code: UInt16?, isByPeer: Bool) {
        self.words = words
        self.code = code
        self.isByPeer = isByPeer
    }
}

/// Where a link leaves what its observer is to be told, until the driver comes for it: the link itself calls nobody.
/// Loop only.
package final class LinkTap {
    private var events: [LinkEvent] = []

    /// Notes one thing.
    func note(_ event: LinkEvent) { events.append(event) }

    /// Notes all bytes of `queue`, which stay where they are.
    func note(_ queue: borrowing ByteQueue, as event: (ByteSlice) -> LinkEvent) {
        for index in 0..<queue.sliceCount { events.append(event(queue[index])) }
    }

    /// Notes who is there.
    func note(greetingBy hello: Hello) {
        events.append(
            .greeted(
                LinkGreeting(
                    peer: hello.peer, name: hello.name, service: hello.service, incarnation: hello.incarnation
                )))
    }

    /// Everything noted since the last time, in order.
    package func take() -> [LinkEvent] {
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }
}
