/// A search for one link: to a peer along its routes, or to the unknown peer at an address.
///
/// Anybody can announce an address under another's PeerID, or listen at an address that was another peer's. So an open
/// pipe proves nothing: the race goes on until a link has proven which peer is at its other end. `SessionMachine` runs
/// it. Loop only.
final class DialRace {
    /// Something to dial: a route, or one of the places behind it.
    struct Target {
        let route: RouteRecord
        let address: TransportAddress

        var isPlace: Bool { address != route.address }
    }

    /// One dial of a transport, and the link that it led to.
    struct Candidate {
        let dial: DialID
        let target: Target
        let startedAt: Moment
        /// Whether this dials a route that may stand for several places, and the transport was not asked for them yet.
        var mayHidePlaces: Bool
        /// Nil until the pipe is open.
        var link: Link?
    }

    // The lists are not checked for exclusive access, which each connection would pay; see `Conversation`.

    let number: UInt64
    let purpose: DialPurpose
    /// When a dial is given up at the latest.
    var deadline: Moment
    /// Whether a conversation waits for the link. If so, dials that have proven nothing for a while do not delay the
    /// next search.
    let isHurried: Bool
    /// The routes that were not dialled yet, the best first.
    @exclusivity(unchecked) var routes: [RouteRecord]
    /// The places behind dialled routes; each is to be dialled by itself.
    @exclusivity(unchecked) var places: [Target] = []
    /// The dials under way, the oldest first.
    @exclusivity(unchecked) var candidates: [Candidate] = []
    /// The addresses that this race has dialled or reached, or is about to dial.
    @exclusivity(unchecked) private var seen: [TransportAddress] = []
    /// When the last route was dialled.
    var lastRouteAt = Moment(nanoseconds: .min)
    /// Until when the race waits for the places behind a route; nil while no transport was asked for them.
    var placesDeadline: Moment?
    @exclusivity(unchecked) var failures: [NighError] = []
    /// When the machine looks at the race by itself.
    var wakesAt = Moment.never

    init(
        number: UInt64, purpose: DialPurpose, routes: [RouteRecord], deadline: Moment, isHurried: Bool
    ) {
        self.number = number
        self.purpose = purpose
        self.routes = routes
        self.deadline = deadline
        self.isHurried = isHurried
    }

    /// Notes an address as dialled, reached or about to be dialled. Returns whether it is new. The addresses are so few
    /// that looking at each is faster than hashing one.
    @discardableResult
    func noteSeen(_ address: TransportAddress) -> Bool {
        guard !hasSeen(address) else { return false }
        seen.append(address)
        return true
    }

    /// Whether the address was dialled or reached, or is about to be dialled.
    func hasSeen(_ address: TransportAddress) -> Bool { seen.contains(address) }

    /// Whether nothing is under way, or about to be.
    var isIdle: Bool { candidates.isEmpty && places.isEmpty && placesDeadline == nil }

    /// Whether there is a route or a place that was not dialled yet.
    var isWaiting: Bool { !routes.isEmpty || !places.isEmpty }

    /// The reason why the race found no link, as one cause.
    var cause: NighError.Cause {
        switch failures.count {
        case 0: .noRoute
        case 1: failures[0].cause
        default: .allFailed
        }
    }

    /// The reason why the race found no link, as an error about an address: the one failure, or all of them.
    var failure: NighError {
        if failures.count == 1 { return failures[0] }
        return NighError(.connecting, cause, attempts: failures)
    }
}

/// The purpose of a race.
enum DialPurpose {
    case peer(PeerID)
    /// A call by address. Nobody knows yet which peer will answer.
    case address(AddressCall)
    /// Only learns which peer is there. (The address refers to its race in turn, to be able to cancel it.)
    case knownAddress(KnownAddress)
    /// Pairing with a peer to which there is no link yet.
    case pairing(PeerID)

    /// The peer that the race is for, if it is known.
    var peer: PeerID? {
        switch self {
        case .peer(let id), .pairing(let id): id
        case .address, .knownAddress: nil
        }
    }
}

/// A request for a conversation by address alone.
struct AddressCall {
    let token: CallToken
    let address: TransportAddress
    let transport: Int
    let context: [UInt8]
    let deadline: Moment
}
