/// A search for one link: to a peer along its routes, or to the unknown peer at an address.
///
/// Anybody can announce an address under another's PeerID, or listen at an address that was somebody's. An open pipe therefore proves
/// nothing: the race goes on until a link has proven who is at its other end. `SessionMachine` runs it; loop only.
final class DialRace {
    /// Somewhere to dial: a route, or one of the places behind it.
    struct Way {
        let route: RouteRecord
        let address: TransportAddress

        var isPlace: Bool { address != route.address }
    }

    /// One dial of a transport, and the link it led to.
    struct Try {
        let dial: DialID
        let way: Way
        let startedAt: Moment
        /// Whether the way is a route that may stand for several places, and nobody has asked for them yet.
        var mayHidePlaces: Bool
        /// Nil until the pipe is open.
        var link: Link?
    }

    let number: UInt64
    let purpose: DialPurpose
    /// When a dial is given up at the latest.
    let deadline: Moment
    /// Whether a conversation waits for the link: then dials that have proven nothing for a while do not hold up the next search.
    let isHurried: Bool
    /// Not dialled yet, the best first.
    var routes: [RouteRecord]
    /// Places behind a route that was dialled, each to be dialled by itself.
    var places: [Way] = []
    /// Dials under way, the oldest first.
    var tries: [Try] = []
    /// Where this race has been, or is about to go.
    var seen: Set<TransportAddress> = []
    /// When the last route was dialled.
    var lastRouteAt = Moment(nanoseconds: .min)
    /// Until when the places behind a route are waited for; nil while no transport was asked for them.
    var searchesUntil: Moment?
    var failures: [NighError] = []
    /// When the machine looks at it by itself.
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

    /// Whether nothing is under way, or about to be.
    var isAtRest: Bool { tries.isEmpty && places.isEmpty && searchesUntil == nil }

    /// Whether there is somewhere to go that nobody has dialled yet.
    var isWaiting: Bool { !routes.isEmpty || !places.isEmpty }

    /// Why it found no link, in one cause.
    var cause: NighError.Cause {
        switch failures.count {
        case 0: .noRoute
        case 1: failures[0].cause
        default: .allFailed
        }
    }

    /// The same as an error about an address: the one failure, or all of them.
    var failure: NighError {
        if failures.count == 1 { return failures[0] }
        return NighError(.connecting, cause, attempts: failures)
    }
}

/// Why a race is run.
enum DialPurpose {
    case peer(PeerID)
    /// Nobody knows yet who will answer at this address.
    case address(AddressCall)
    /// To learn who is there, and nothing else. (The address has its race in turn, so as to take it back.)
    case introduction(KnownAddress)
    /// The two are to be paired, and have no link yet.
    case pairing(PeerID)

    /// Whom it is meant for, where that is known.
    var peer: PeerID? {
        switch self {
        case .peer(let id), .pairing(let id): id
        case .address, .introduction: nil
        }
    }
}

/// A conversation asked for by address alone.
struct AddressCall {
    let token: CallToken
    let address: TransportAddress
    let transport: Int
    let context: [UInt8]
    let deadline: Moment
}
