/// A pipe, and what the session knows about the peer on it. Internal to the session machine and its driver; loop only.
final class Link {
    /// The purpose of the link, known once its hellos are exchanged.
    enum Purpose {
        /// Not known yet. The link waits for the hellos, then for a request.
        case unsettled
        /// Carries this session's own request, which waits for its answer.
        case requesting
        /// Brought an invitation that waits for the program's answer.
        case invited
        /// Carries the conversation.
        case carrying
        /// Carries nothing but a pairing.
        case pairing
        /// Over. Nothing but a goodbye is still to be written.
        case finished
    }

    // The properties that each message uses are not checked for exclusive access; see `Conversation`.

    let number: UInt64
    @exclusivity(unchecked) var machine: LinkMachine
    let transport: Int
    let dial: DialID?
    /// Whether the other end is a guest.
    let isGuest: Bool
    let openedAt: Moment
    @exclusivity(unchecked) private(set) var peer: PeerRecord?
    @exclusivity(unchecked) var purpose = Purpose.unsettled {
        didSet { census.purposeChanged(from: isStranger(for: oldValue), to: isStranger) }
    }
    private let census: SessionCensus
    /// The conversation that it carries, and since when.
    @exclusivity(unchecked) var conversation: Conversation?
    var carriesSince = Moment.never
    /// Whether received bytes stay unread until the answer on another link. This link carries the conversation, and the
    /// other one may take over.
    var isHeld = false
    /// Whether it took over from a link on a worse transport.
    var isBetter = false
    /// The path for datagrams, once this side has one.
    @exclusivity(unchecked) var datagrams: DatagramPath?
    /// Whether the transport was asked for a datagram port.
    var hasAskedForDatagrams = false
    /// Whether the transport had no datagram port.
    var lacksPort = false
    /// The pings that wait for the path.
    var packetPings: [PacketPings.Request] = []
    /// Where the other side takes packets, until the path has begun.
    var datagramOffer: DatagramOffer?
    /// The newest unreliable messages of keys, which wait for room within the link.
    @exclusivity(unchecked) var newest = NewestMessages()
    /// The introducer's token that the other side has sent, not checked yet; empty without one.
    var introduction: [UInt8] = []
    /// Whether it is in the queue of links that may have something to write.
    var isDirty = false
    /// Whether it is in the queue of links that have packets to send.
    var hasPackets = false
    /// The earliest moment at which the session machine will look at this link by itself.
    var wakesAt = Moment.never

    init(
        number: UInt64, machine: consuming LinkMachine, transport: Int, dial: DialID?, isGuest: Bool,
        census: SessionCensus, now: Moment
    ) {
        self.number = number
        self.machine = machine
        self.transport = transport
        self.dial = dial
        self.isGuest = isGuest
        self.census = census
        openedAt = now
        census.purposeChanged(from: false, to: isStranger)
    }

    /// Whether it is an accepted pipe without a conversation. One with an invitation counts, because it lingers like
    /// any other if it is refused.
    var isStranger: Bool { isStranger(for: purpose) }

    private func isStranger(for purpose: Purpose) -> Bool {
        dial == nil && (purpose == .unsettled || purpose == .invited || purpose == .pairing)
    }

    /// Assigns the link to its peer, once that is known.
    func assign(to peer: PeerRecord) {
        guard self.peer == nil else { return }
        self.peer = peer
        peer.linkCount += 1
    }

    /// Forgets the pings of the datagram path that have no answer yet, and returns them.
    func takePacketPings() -> [PacketPings.Request] {
        defer { packetPings = [] }
        return packetPings + (datagrams?.abandonPings() ?? [])
    }

    /// Lets go of the peer, which may refer to the link, at the end of the session.
    func forgetPeer() { peer = nil }
}
