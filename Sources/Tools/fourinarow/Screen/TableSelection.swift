import FourInARow
import NighCore

/// The chosen one of the tables nearby. The choice stays when other tables come and go.
struct TableSelection {
    private var id: PeerID?
    private var index = 0
    private var click: (PeerID, Moment)?

    private static let doubleClick = Moment.Span.milliseconds(500)

    /// Returns the index of the chosen table, or nil if there are no tables.
    func index(in tables: [TableListing]) -> Int? {
        guard !tables.isEmpty else { return nil }
        return tables.firstIndex { $0.id == id } ?? min(index, tables.count - 1)
    }

    /// Returns the chosen table.
    func table(in tables: [TableListing]) -> TableListing? { index(in: tables).map { tables[$0] } }

    mutating func choose(_ index: Int, in tables: [TableListing]) {
        guard !tables.isEmpty else { return }
        self.index = min(max(index, 0), tables.count - 1)
        id = tables[self.index].id
    }

    mutating func move(_ steps: Int, in tables: [TableListing]) {
        choose((index(in: tables) ?? 0) + steps, in: tables)
    }

    /// Keeps the choice when the list changes.
    mutating func follow(_ tables: [TableListing]) {
        if let index = index(in: tables) { choose(index, in: tables) }
    }

    /// Chooses a table by mouse, and returns whether this is the second click on it within a short time.
    mutating func click(_ index: Int, in tables: [TableListing], now: Moment) -> Bool {
        choose(index, in: tables)
        guard let id else { return false }
        if let click, click.0 == id, now - click.1 <= Self.doubleClick {
            self.click = nil
            return true
        }
        click = (id, now)
        return false
    }
}
