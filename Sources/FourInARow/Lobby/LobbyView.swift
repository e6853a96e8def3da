import NighCore

/// Everything that a screen of the game shows at one moment.
public struct LobbyView: Hashable, Sendable {
    /// The name of the local player.
    public internal(set) var name: String
    /// The PeerID of the local player.
    public internal(set) var id: PeerID
    /// The tables nearby, sorted by name.
    public internal(set) var tables: [TableListing] = []
    /// Where the local player is.
    public internal(set) var place = Place.lobby
    /// The peers that want to sit down at the local player's table and wait for an answer, in the order in which they
    /// asked.
    public internal(set) var seatRequests: [SeatRequest] = []
    /// The addresses at which others can reach the local player's table without discovery.
    public internal(set) var addresses: [TransportAddress] = []
    /// The transports that do not work now, by scheme, with the reason.
    public internal(set) var brokenTransports: [String: NighError] = [:]
}

extension LobbyView {
    /// Creates the view of a lobby that has not started yet.
    public init(of lobby: Lobby) {
        self.init(name: lobby.session.name, id: lobby.session.identity)
    }
}

/// A table nearby, seen from outside.
public struct TableListing: Hashable, Sendable, Identifiable {
    /// The PeerID of the host.
    public let id: PeerID
    /// The identity that the host acts for; nil if that is its own key.
    public internal(set) var identity: PeerID?
    /// The PeerID by which people know the host.
    public var knownID: PeerID { identity ?? id }
    /// The name of the host.
    public let name: String
    /// Whether the seat is free, as far as is known.
    public let hasFreeSeat: Bool
    /// Whether the host accepts nobody more, not even to watch.
    public internal(set) var isFull = false
    /// The schemes of the transports that lead to the table, the preferred one first.
    public let transports: [String]
    /// The quality of the preferred route, 0 to 1; nil if it is not known.
    public let quality: Double?
    /// The trust in the host's key, as far as it is known.
    public internal(set) var trust: PeerTrust?
}

/// A peer that wants to sit down at the local player's table.
public struct SeatRequest: Hashable, Sendable, Identifiable {
    /// The PeerID of the peer.
    public let id: PeerID
    /// The name of the peer.
    public let name: String
    /// The transport over which the peer asks.
    public let transport: String
    /// The trust in the peer's key, as far as it is known.
    public internal(set) var trust: PeerTrust?
}

/// Where the local player is.
public enum Place: Hashable, Sendable {
    /// In the lobby, looking at the tables.
    case lobby
    /// At the local player's own table.
    case hosting(TableView)
    /// On the way to the table of the host with this name.
    case joining(name: String, TableRole)
    /// At somebody else's table.
    case visiting(TableView)

    /// The table that the local player is at.
    public var tableView: TableView? {
        switch self {
        case .hosting(let tableView), .visiting(let tableView): tableView
        case .lobby, .joining: nil
        }
    }
}

/// The local player's place at a table.
public struct TableView: Hashable, Sendable {
    /// The table.
    public internal(set) var table: Table
    /// The colour that the local player plays; nil for a watcher.
    public internal(set) var ownDisc: Disc?
    /// The host; nil if the local player hosts the table.
    public internal(set) var host: Person?
    /// The guest, for the host alone. Visitors have no link to the guest, and know its name from the table.
    public internal(set) var guest: Person?
    /// The action that the local player has requested and the host has not granted yet.
    public internal(set) var pending: Action?
    /// Whether the local player, who watches, may take the seat of a player that left.
    public internal(set) var isSeatOffered = false

    /// Whether the local player hosts the table.
    public var isHost: Bool { ownDisc == table.hostDisc }

    /// Whether the local player has the seat of the guest.
    public var isGuest: Bool { ownDisc == table.hostDisc.other }

    /// The person at the other end, if there is one.
    public var other: Person? { host ?? guest }

    /// Returns why the action is not possible now, as far as this side can see, or nil if it is possible.
    public func breach(of action: Action) -> Breach? {
        guard let ownDisc else { return .untimely }
        // The last request is still on its way.
        if pending != nil, !action.isChat { return .outOfTurn }
        return table.breach(of: action, by: ownDisc)
    }
}

/// A person that the local player is connected to.
public struct Person: Hashable, Sendable, Identifiable {
    /// The PeerID of the person.
    public let id: PeerID
    /// The name of the person.
    public internal(set) var name: String
    /// The trust in the person's key, as far as it is known.
    public internal(set) var trust: PeerTrust?
    /// The transport in use; nil while the link is broken.
    public internal(set) var transport: String?
    /// The moment at which the link broke; nil while there is a link.
    public internal(set) var linkLostAt: Moment?
    /// The round-trip time, as last measured.
    public internal(set) var roundTrip: Duration?
}

/// Something that has just happened, to be announced on the screen. The `LobbyView` beside it has the new state.
public enum LobbyNews: Hashable, Sendable {
    /// Something happened at the table.
    case table(TableNews)
    /// A peer wants to sit down.
    case seatRequested(SeatRequest)
    /// A peer no longer wants to sit down.
    case seatRequestWithdrawn(SeatRequest)
    /// The local player is about to talk to a peer that may pretend to be a known one, and was not asked about it.
    case hasKnownName(PeerID, name: String, PeerTrust)
    /// The link to this person broke. The session waits this long for the person to come back.
    case linkLost(Person, waiting: Duration)
    /// There is a link to this person again.
    case linkRestored(Person)
    /// The conversation continues over another transport.
    case changedTransport(Person, from: String)
    /// The host with this name was not reached, and is called again. Reported once for each attempt to join.
    case notReachedYet(name: String, NighError)
    /// The local player could not join the table of the host with this name: the host declined, or was not reached.
    case couldNotJoin(name: String, NighError)
    /// The table that the local player was at is gone: its host has left, or is lost.
    case tableClosed(name: String, NighError?)
    /// The host with this name has left, and its guest hosts the table now. `successor` is the guest's
    /// name; nil if the local player is the guest.
    case hostLeft(name: String, successor: String?)
    /// The host's program broke the rules, so the local player has left.
    case hostMisbehaved(name: String, Breach)
    /// A transport has started or stopped working.
    case transport(scheme: String, TransportCondition)
    /// Something else failed. It is tried again where that helps.
    case otherFailure(NighError)
    /// The local player is advertised over this transport under this name.
    case advertised(scheme: String, name: String)
}
