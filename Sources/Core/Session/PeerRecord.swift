/// What the session machine keeps of a peer. Loop only.
///
/// It and `Link` name each other: a link knows whose it is, and the record which link carries the conversation. The machine alone
/// changes either.
final class PeerRecord {
    let id: PeerID
    var name: DisplayName
    var info = DiscoveryInfo.none
    var phase = PeerPhase.unavailable
    var routes: [RouteRecord] = []

    /// The two are being paired, whatever else is between them.
    var pairing: Pairing?
    /// What the program was last told of its key.
    var trustTold: PeerTrust?
    /// Consecutive failed moves to a better route, including moves to a link that soon broke.
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

    // MARK: What belongs to the phase

    /// What the program sees.
    var state: PeerState { phase.state }

    /// The peer's invitation that waits for the program.
    var invitation: PendingInvitation? {
        if case .available(let invitation) = phase { invitation } else { nil }
    }

    var conversation: Conversation? {
        switch phase {
        case .connected(let conversation, _), .reconnecting(let conversation, _): conversation
        case .unavailable, .available, .asking, .settling, .parted: nil
        }
    }

    var carrier: Carrier? {
        if case .connected(_, let carrier) = phase { carrier } else { nil }
    }

    /// The link that carries the conversation.
    var link: Link? { carrier?.link }

    var recovery: Recovery? {
        if case .reconnecting(_, let recovery) = phase { recovery } else { nil }
    }

    /// This session's own request under way.
    var attempt: Attempt? {
        switch phase {
        case .asking(let invitation): invitation.attempt
        case .connected(_, let carrier): carrier.attempt
        case .reconnecting(_, let recovery): recovery.attempt
        case .unavailable, .available, .settling, .parted: nil
        }
    }

    /// Takes the attempt out of the record, if there is one.
    func takeAttempt() -> Attempt? {
        let attempt = attempt
        switch phase {
        case .asking: phase = .settling
        case .connected(_, let carrier): carrier.attempt = nil
        case .reconnecting(_, let recovery): recovery.attempt = nil
        case .unavailable, .available, .settling, .parted: break
        }
        return attempt
    }

    // MARK: Between links

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
        state == .unavailable && pairing == nil && routes.isEmpty && linkCount == 0 && unreadLeft == 0
    }
}
