/// What the session machine keeps of a peer. Loop only.
final class PeerRecord {
    let id: PeerID
    var name: DisplayName
    var info = DiscoveryInfo.none
    var state = PeerState.unavailable
    var routes: [RouteRecord] = []

    var conversation: Conversation?
    /// The incarnation the conversation is with.
    var incarnation: UInt64 = 0
    /// The link that carries the conversation.
    var link: Link? { didSet { conversation?.carrier = link } }

    /// This session's own request under way.
    var attempt: Attempt?
    /// The peer's invitation that waits for the program.
    var invitation: PendingInvitation?
    var recovery: Recovery?
    var departure: Departure?
    /// The two are being paired.
    var pairing: Pairing?
    /// What the program was last told of its key.
    var trustTold: PeerTrust?
    /// How many links in a row have broken shortly after they began to carry the conversation.
    var briefLinks = 0

    /// When the conversation moves to a better route that is there.
    var movesAt = Moment.never
    /// How many times in a row that led nowhere, or to a link that soon broke.
    var vainMoves = 0

    /// What shortens the handshake of the next link to it, from links that are over.
    private var ticket: ResumptionTicket?

    /// The highest request number seen from the peer, in the incarnation below.
    var requestsSeen: UInt64 = 0
    var requestsSeenFrom: UInt64 = 0

    /// Bytes of ended conversations with the peer that the program has not read yet. They count against the next one, so
    /// that coming and going gives nobody more room.
    var unreadLeft = 0
    /// How many links there are whose hello named this peer.
    var linkCount = 0
    var wakesAt = Moment.never
    var lastStatistics: PeerStatistics?

    init(id: PeerID, name: DisplayName) {
        self.id = id
        self.name = name
    }

    /// Keeps the ticket that a link has brought, if it has.
    func keepTicket(of link: Link) { ticket = link.machine.takeTicket() ?? ticket }

    /// The newest ticket there is, once.
    func takeTicket() -> ResumptionTicket? {
        if let link { keepTicket(of: link) }
        return ticket.take()
    }

    /// For errors: the name and enough of the PeerID.
    var label: String { "\(name) (\(id.short))" }

    /// Whether forgetting the record would lose anything.
    var isIdle: Bool {
        state == .unavailable && conversation == nil && attempt == nil && invitation == nil && pairing == nil
            && routes.isEmpty
            && linkCount == 0 && unreadLeft == 0
    }
}
