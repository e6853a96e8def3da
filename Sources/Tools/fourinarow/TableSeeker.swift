import FourInARow
import NighCore

/// Waits until the table that was named on the command line is seen, and says then whose it is. A value without I/O.
struct TableSeeker {
    /// What is to be done now.
    enum Finding: Hashable {
        case join(PeerID)
        case joinAddress(TransportAddress)
        /// Several have that name: say which by PeerID.
        case ambiguous(String, [PeerID])
    }

    private let target: Errand.Target?
    let wish: TableWish
    private var isDone = false
    private var toldAmbiguous: [PeerID] = []

    init(_ target: Errand.Target?, _ wish: TableWish) {
        self.target = target
        self.wish = wish
    }

    /// What to call it while it is looked for; nil where that is over.
    var description: String? {
        guard !isDone else { return nil }
        return switch target {
        case .name(let name): "\(name)'s table"
        case .address(let address): "a table at \(address)"
        case nil: wish == .seat ? "a table with a free seat" : "a table to watch"
        }
    }

    /// Gives it up: the person has gone elsewhere.
    mutating func stop() { isDone = true }

    /// What the tables that are seen now amount to.
    mutating func look(at view: LobbyView) -> Finding? {
        guard !isDone else { return nil }
        let fitting: [TableListing]
        switch target {
        case .address(let address):
            isDone = true
            return .joinAddress(address)
        case .name(let name):
            let wanted = name.lowercased()
            fitting = view.tables.filter {
                $0.name.lowercased() == wanted || (wanted.count >= 4 && $0.id.description.hasPrefix(wanted))
            }
        case nil: fitting = Array(view.tables.filter { wish == .watch || $0.hasFreeSeat }.prefix(1))
        }
        guard fitting.count < 2 else {
            let ids = fitting.map(\.id)
            guard ids != toldAmbiguous, case .name(let name) = target else { return nil }
            toldAmbiguous = ids
            return .ambiguous(name, ids)
        }
        guard let table = fitting.first else { return nil }
        isDone = true
        return .join(table.id)
    }
}
