/// The session machine's record of a peer. Loop only.
///
/// It and `Link` refer to each other: a link knows its peer, and the record knows the link that carries the
/// conversation. Only the machine changes them.
final class PeerRecord {
    // The properties that each message uses are not checked for exclusive access; see `Conversation`.

    let id: PeerID
    @exclusivity(unchecked) var identity: PeerIdentity {
        didSet { if identity.current != oldValue.current { changed() } }
    }
    var name: DisplayName { didSet { if name != oldValue { changed() } } }
    var info = DiscoveryInfo.none { didSet { if info != oldValue { changed() } } }
    var isFull = false { didSet { if isFull != oldValue { changed() } } }
    @exclusivity(unchecked) var phase = PeerPhase.unavailable {
        didSet { census.phaseChanged(from: oldValue, to: phase) }
    }
    @exclusivity(unchecked) var routes: [RouteRecord] = [] {
        didSet { if !routes.isEmpty || handle?.routes.isEmpty == false { handle = nil } }
    }
    /// Whether the peer is a guest. Set by its first link.
    var isGuest = false
    /// The number of routes that come from discovery or from the program.
    var routesBesidesIntroduced: Int { routes.count { $0.source != .introduction } }
    /// The part that the next snapshots of the peer share; nil if it has to be made anew.
    @exclusivity(unchecked) var handle: PeerHandle?

    /// The pairing under way, regardless of the phase.
    var pairing: Pairing?
    /// The trust in the peer's key, as last reported to the program.
    var reportedTrust: PeerTrust?
    /// Consecutive failed moves to a better route, including moves to a link that broke within
    /// `timings.longestBetterRoute`.
    var failedMoves = 0

    /// A ticket from links that are over, which shortens the handshake of the next link.
    private var ticket: ResumptionTicket?

    /// The highest request number seen from the peer, and the peer's incarnation to which it belongs.
    var requestsSeen: UInt64 = 0
    var requestsSeenFrom: UInt64 = 0

    /// Bytes of ended conversations with the peer that the program has not read yet. They count against the next
    /// conversation, so that coming and going gives no peer more room.
    var unreadLeft = 0
    /// The number of links whose hello named this peer.
    var linkCount = 0
    var wakesAt = Moment.never
    var lastCounts: ConversationCounts?

    private let census: SessionCensus

    init(id: PeerID, name: DisplayName, census: SessionCensus) {
        self.id = id
        identity = PeerIdentity(of: id)
        self.name = name
        self.census = census
    }

    /// Something that is shown of the peer has changed.
    private func changed() {
        handle = nil
        madeLabel = nil
    }

    // MARK: Values of the phase

    /// The state that the program sees.
    var state: PeerState { phase.state }

    /// The peer's invitation that waits for the program.
    var invitation: IncomingInvitation? { phase.invitation }

    var conversation: Conversation? {
        switch phase {
        case .connected(let conversation, _), .reconnecting(let conversation, _): conversation
        case .unavailable, .available, .inviting, .settling, .ended: nil
        }
    }

    var carryingLink: CarryingLink? {
        if case .connected(_, let carryingLink) = phase { carryingLink } else { nil }
    }

    /// The link that carries the conversation.
    var link: Link? { carryingLink?.link }

    var recovery: Recovery? {
        if case .reconnecting(_, let recovery) = phase { recovery } else { nil }
    }

    /// This session's own request under way.
    var attempt: Attempt? {
        switch phase {
        case .inviting(let invitation): invitation.attempt
        case .connected(_, let carryingLink): carryingLink.attempt
        case .reconnecting(_, let recovery): recovery.attempt
        case .unavailable, .available, .settling, .ended: nil
        }
    }

    /// Takes the attempt out of the phase and returns it, if there is one.
    func takeAttempt() -> Attempt? {
        let attempt = attempt
        switch phase {
        case .inviting: phase = .settling
        case .connected(_, let carryingLink): carryingLink.attempt = nil
        case .reconnecting(_, let recovery): recovery.attempt = nil
        case .unavailable, .available, .settling, .ended: break
        }
        return attempt
    }

    // MARK: Between links

    /// Keeps the ticket that a link has brought, if there is one.
    func keepTicket(of link: Link) { ticket = link.machine.takeTicket() ?? ticket }

    /// Returns the newest ticket, and returns it only once.
    func takeTicket() -> ResumptionTicket? {
        if let link { keepTicket(of: link) }
        return ticket.take()
    }

    /// The name and the short PeerID of the identity, for errors. Made when the first error needs it.
    var label: String {
        if let madeLabel { return madeLabel }
        let label = name.label(of: identity.current)
        madeLabel = label
        return label
    }

    private var madeLabel: String?

    /// Whether nothing is lost when the record is forgotten.
    var isIdle: Bool {
        state == .unavailable && pairing == nil && routes.isEmpty && linkCount == 0 && unreadLeft == 0
    }
}
