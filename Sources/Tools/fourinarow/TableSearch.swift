import FourInARow
import NighCore
import SessionArguments

/// Waits until discovery sees the table that the command line asks for, and then names its host. A value without I/O.
struct TableSearch {
    /// The next step of the program.
    enum Step: Hashable {
        case join(PeerID)
        case joinAddress(TransportAddress)
        /// Several hosts have this name. The person has to choose by PeerID.
        case ambiguous(String, [PeerID])
    }

    private let target: GameCommand.Target?
    let role: TableRole
    private var isDone = false
    private var reportedAmbiguous: [PeerID] = []

    init(_ target: GameCommand.Target?, _ role: TableRole) {
        self.target = target
        self.role = role
    }

    /// The words for the table while the search goes on; nil when it is over.
    var description: String? {
        guard !isDone else { return nil }
        return switch target {
        case .name(let name): "\(name)'s table"
        case .address(let address): "a table at \(address)"
        case nil: role == .seat ? "a table with a free seat" : "a table to watch"
        }
    }

    /// Gives up the search, because the person has gone elsewhere.
    mutating func stop() { isDone = true }

    /// Returns the next step for the tables in this view, if there is one.
    mutating func next(for view: LobbyView) -> Step? {
        guard !isDone else { return nil }
        let fitting: [TableListing]
        switch target {
        case .address(let address):
            isDone = true
            return .joinAddress(address)
        case .name(let name):
            let named = PeerName(name).matching(view.tables) { ($0.knownID, DisplayName(fitting: $0.name)) }
            // Of several tables of one person, one with a free seat is better than one without.
            let isOnePerson = Set(named.map(\.knownID)).count == 1
            let best = named.first { !$0.isFull && $0.hasFreeSeat } ?? named.first
            fitting = isOnePerson ? best.map { [$0] } ?? [] : named
        case nil:
            fitting = Array(
                view.tables.filter { !$0.isFull && (role == .watch || $0.hasFreeSeat) }.prefix(1))
        }
        guard fitting.count < 2 else {
            let ids = fitting.map(\.knownID)
            guard ids != reportedAmbiguous, case .name(let name) = target else { return nil }
            reportedAmbiguous = ids
            return .ambiguous(name, ids)
        }
        guard let table = fitting.first else { return nil }
        isDone = true
        return .join(table.id)
    }
}
