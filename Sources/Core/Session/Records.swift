/// A pipe and what the session knows of who is on it. Internal to the session machine and its driver; loop only.
final class Link {
    /// What the link is for, once its hellos are exchanged.
    enum Purpose {
        /// Not known yet: waits for the hellos, then for a request.
        case unsettled
        /// Carries this session's own request, which waits for its answer.
        case asking
        /// Brought an invitation that waits for the program's answer.
        case invited
        /// Carries the conversation.
        case carrying
        /// Carries nothing but a pairing.
        case pairing
        /// Over; what is still to be written is only a goodbye.
        case finished
    }

    let number: UInt64
    let machine: LinkMachine
    let transport: Int
    let dial: DialID?
    let openedAt: Moment
    private(set) var peer: PeerRecord?
    var purpose = Purpose.unsettled
    /// The conversation it carries, and from when on.
    var conversation: Conversation?
    var carriesSince = Moment.never
    /// Whether what comes is left where it is until another link's answer: this one carries the conversation, and that
    /// one may take over.
    var isHeld = false
    /// Whether it took over from a link on a worse transport.
    var isBetter = false
    /// Whether it is among the links that have something to write.
    var isDirty = false
    /// The earliest moment at which the session machine will look at this link by itself.
    var wakesAt = Moment.never

    init(number: UInt64, machine: LinkMachine, transport: Int, dial: DialID?, now: Moment) {
        self.number = number
        self.machine = machine
        self.transport = transport
        self.dial = dial
        openedAt = now
    }

    /// The hello has said who is there.
    func belongs(to peer: PeerRecord) {
        guard self.peer == nil else { return }
        self.peer = peer
        peer.linkCount += 1
    }
}

/// One way to a peer.
struct RouteRecord: Equatable {
    let transport: Int
    let address: TransportAddress
    var quality: Double?
    /// Given by hand, not seen by discovery; kept as long as the conversation it led to.
    var isManual = false
    /// Where the peer proved itself when it was dialled along this route last: the route's address, or a place behind it.
    var provenAt: TransportAddress?
}

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

/// A request of this session's on its way: dial one route after another, send the request, wait for the answer.
struct Attempt {
    /// What is asked for.
    enum Kind: Equatable {
        case invite(conversation: UInt64, context: [UInt8])
        case resume
        /// The same while the old link is still there, over a better route.
        case move

        /// Whether it goes on with a conversation: to the other side it is a resume.
        var isResume: Bool { self == .resume || self == .move }
    }

    let kind: Kind
    /// Who wants to hear how it ends.
    var tokens: [CallToken]
    /// When to give up; for a resumption the recovery decides.
    var deadline: Moment
    /// Looks for the link to ask on.
    let race: DialRace
    var link: Link?
    var requestSent = false
    /// When the next route is tried in place of the link that was asked on.
    var routeDeadline = Moment.never
    /// How many bytes of each lane the request allows the peer to send, where nothing counts before the answer.
    var granted: UInt64?
    /// The peer preferred its own link: wait for that one's request, and try again at this moment if none comes.
    var yieldsUntil = Moment.never
}

/// An invitation the program has not answered.
struct PendingInvitation {
    let number: UInt64
    let link: Link
    let request: ConversationRequest
    let deadline: Moment
}

/// A conversation without a link looks for another.
struct Recovery {
    let deadline: Moment
    var retryAt: Moment
    /// The peer wants not to be asked again earlier.
    var notBefore = Moment(nanoseconds: .min)
    var pause: Duration
    var failures: [NighError] = []
    let cause: NighError.Cause
    /// The transport whose routes are tried after all others, better ones or not.
    let lastResort: Int?
}

/// This side wants to leave as soon as all it sent is acknowledged.
struct Departure {
    var deadline: Moment
    var tokens: [CallToken]
}

/// Names a call of the program whose outcome will be told by `Directive.finish`.
struct CallToken: Hashable {
    let number: UInt64
}

/// What the session machine wants done: the driver carries these out in order.
enum Directive {
    case dial(DialID, transport: Int, TransportAddress, timeout: Duration)
    case cancelDial(DialID, transport: Int)
    /// Ask the transport which places are behind a route, for a race.
    case findPlaces(race: UInt64, behind: RouteRecord)
    /// Read nothing from the link.
    case hold(Link)
    /// Read from it again, first what has come meanwhile.
    case release(Link)
    /// Write what the link still has, then close its pipe.
    case close(Link)
    case tell(SessionEvent)
    case finish(CallToken, Result<PeerID, NighError>)
    case answerPing(CallToken, Result<Moment.Span, NighError>)
    /// Messages may be sent through this port from now on.
    case openPort(PeerPort)
    /// The port is closed; nothing more comes from this peer either.
    case closePort(PeerPort)
    /// What is known of peers has changed, and is to be kept.
    case saveTrust
    /// All conversations have ended after `close`.
    case allLeft
}
