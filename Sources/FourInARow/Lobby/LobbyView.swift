import NighCore

/// Everything a screen of the game shows, at one moment.
public struct LobbyView: Hashable, Sendable {
    /// What this side is called.
    public internal(set) var name: String
    /// Who this side is.
    public internal(set) var id: PeerID
    /// The tables near, by name.
    public internal(set) var tables: [TableListing] = []
    /// Where this side is.
    public internal(set) var place = Place.lobby
    /// Who wants to sit down at this side's table and waits for an answer, the first who asked first.
    public internal(set) var askers: [Asker] = []
    /// Where others can reach this side's table without discovery.
    public internal(set) var addresses: [TransportAddress] = []
    /// The transports that do not work now, by scheme, and why.
    public internal(set) var brokenTransports: [String: NighError] = [:]
}

extension LobbyView {
    /// What `lobby` shows before it has started.
    public init(of lobby: Lobby) {
        self.init(name: lobby.session.configuration.name.description, id: lobby.session.id)
    }
}

/// Somebody's table, as one sees it from outside.
public struct TableListing: Hashable, Sendable, Identifiable {
    /// Whose it is.
    public let id: PeerID
    /// What the host is called.
    public let name: String
    /// Whether its seat is free, as far as is known.
    public let hasFreeSeat: Bool
    /// The ways to it, the preferred first: schemes of transports.
    public let transports: [String]
    /// How good the preferred way looks, 0 to 1, where that is known.
    public let quality: Double?
    /// What is known of the host's key.
    public internal(set) var trust: PeerTrust?
}

/// Somebody who wants to sit down at one's table.
public struct Asker: Hashable, Sendable, Identifiable {
    /// Who.
    public let id: PeerID
    /// What they are called.
    public let name: String
    /// The transport they ask over.
    public let transport: String
    /// What is known of their key.
    public internal(set) var trust: PeerTrust?
}

/// Where one is.
public enum Place: Hashable, Sendable {
    /// Looking at the tables.
    case lobby
    /// At one's own table.
    case hosting(Sitting)
    /// On the way to the table of whoever is called that.
    case joining(name: String, TableWish)
    /// At somebody else's table.
    case visiting(Sitting)

    /// The table one is at.
    public var sitting: Sitting? {
        switch self {
        case .hosting(let sitting), .visiting(let sitting): sitting
        case .lobby, .joining: nil
        }
    }
}

/// Being at a table.
public struct Sitting: Hashable, Sendable {
    /// The table.
    public internal(set) var table: Table
    /// What one plays; nil for whoever watches.
    public internal(set) var ownDisc: Disc?
    /// The host, for everybody else.
    public internal(set) var host: Person?
    /// The guest, for the host alone: others have no link to it, and know its name from the table.
    public internal(set) var guest: Person?
    /// What one has asked for and the host has not granted yet.
    public internal(set) var pending: Action?

    /// The one at the other end, where there is one.
    public var other: Person? { host ?? guest }

    /// Why one cannot do that here now, as far as can be seen from here; nil when one can.
    public func breach(of action: Action) -> Breach? {
        guard let ownDisc else { return .untimely }
        // What was asked for last is still on its way.
        if pending != nil, !action.isWords { return .outOfTurn }
        return table.breach(of: action, by: ownDisc)
    }
}

/// Somebody one has a conversation with.
public struct Person: Hashable, Sendable, Identifiable {
    /// Who.
    public let id: PeerID
    /// What they are called.
    public internal(set) var name: String
    /// The transport in use now; nil while the link is broken.
    public internal(set) var transport: String?
    /// Since when the link is broken; nil while it is not.
    public internal(set) var awaySince: Moment?
    /// How long a message takes there and back, as last measured.
    public internal(set) var roundTrip: Duration?
}

/// Something that has just happened, for a sentence on the screen. What is so now stands in the `LobbyView` beside it.
public enum LobbyNews: Hashable, Sendable {
    /// At the table.
    case table(TableNews)
    /// Somebody wants to sit down.
    case asked(Asker)
    /// They do not any more.
    case askedNoMore(Asker)
    /// One is about to talk to somebody who has the name of a known device and another key, and was not asked about them.
    case hasKnownName(PeerID, name: String, PeerTrust)
    /// The link to them broke; so long is waited for them to come back.
    case wentAway(Person, waiting: Duration)
    /// There is a link again.
    case cameBack(Person)
    /// The conversation goes on over another transport.
    case changedTransport(Person, from: String)
    /// The host of that name was not reached, and is called again. Reported once a journey.
    case notReachedYet(name: String, NighError)
    /// One could not come to the table of whoever is called that: declined, not reached.
    case couldNotJoin(name: String, NighError)
    /// The table one was at is there no more: its host has left, or is lost.
    case tableClosed(name: String, NighError?)
    /// The host's program says what cannot be so, and one has left.
    case hostMisbehaved(name: String, Breach)
    /// A transport came up, or went down.
    case transport(scheme: String, TransportCondition)
    /// Something else did not work; it is tried again where that helps.
    case trouble(NighError)
    /// One can be found there under that name.
    case advertised(scheme: String, name: String)
}
