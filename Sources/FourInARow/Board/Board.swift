/// The discs on the board, stored in two words.
///
/// Code that plays, watches or draws a game uses this value. It knows how discs fall and what a line of four is. It
/// does not know whose turn it is, and does not end a game; `Game` does both. It does no I/O.
public struct Board: Hashable, Sendable {
    /// The number of columns.
    public static let columns = 7
    /// The number of rows.
    public static let rows = 6

    private(set) var red: UInt64 = 0
    private(set) var yellow: UInt64 = 0

    /// Creates an empty board.
    public init() {}

    /// Creates a board from two bitboards in the bit order of `Lines`.
    init(red: UInt64, yellow: UInt64) {
        self.red = red
        self.yellow = yellow
    }

    /// The number of discs on the board.
    public var count: Int { occupied.nonzeroBitCount }

    /// Whether all columns are full.
    public var isFull: Bool { occupied == Lines.cells }

    /// The disc in a cell, or nil if the cell is empty.
    public subscript(cell: Cell) -> Disc? {
        let bit: UInt64 = 1 << UInt64(cell.bit)
        if red & bit != 0 { return .red }
        return yellow & bit != 0 ? .yellow : nil
    }

    /// Returns whether the column has room for another disc.
    public func hasRoom(in column: Column) -> Bool { height(of: column) < Board.rows }

    /// Returns the number of discs in a column, which is also the row of the next disc.
    public func height(of column: Column) -> Int {
        let whole: UInt64 = 1 << UInt64(Board.rows) - 1
        return (occupied >> UInt64(column.index * Lines.columnStride) & whole).nonzeroBitCount
    }

    /// Drops a disc and returns the cell where it lands, or changes nothing and returns nil if the column is full.
    public mutating func drop(_ disc: Disc, in column: Column) -> Cell? {
        guard let cell = Cell(column: column, row: height(of: column)) else { return nil }
        let bit: UInt64 = 1 << UInt64(cell.bit)
        switch disc {
        case .red: red |= bit
        case .yellow: yellow |= bit
        }
        return cell
    }

    /// The colour that has a line of four or more, or nil if neither has.
    ///
    /// A game ends with the first line. If a caller goes on after that and both colours have a line, the winner is red.
    public var winner: Disc? {
        if Lines.contains(red) { return .red }
        return Lines.contains(yellow) ? .yellow : nil
    }

    /// All cells of all the winner's lines of four or more, sorted; empty if there is no winner.
    public var winningCells: [Cell] {
        guard let winner else { return [] }
        var bits = Lines.all(in: winner == .red ? red : yellow)
        var cells: [Cell] = []
        while bits != 0 {
            cells.append(Cell(bit: bits.trailingZeroBitCount))
            bits &= bits - 1
        }
        return cells
    }

    /// The board as six lines of seven characters, top row first: "." for an empty cell, "R" and "Y" for the discs.
    /// Each line ends with "\n".
    public var text: String {
        var text = ""
        for row in (0..<Board.rows).reversed() {
            for column in Column.allCases {
                switch Cell(column: column, row: row).flatMap({ self[$0] }) {
                case .red: text += "R"
                case .yellow: text += "Y"
                case nil: text += "."
                }
            }
            text += "\n"
        }
        return text
    }

    private var occupied: UInt64 { red | yellow }
}
