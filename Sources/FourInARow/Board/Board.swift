/// The discs that lie on the board, a value of two words.
///
/// Whatever plays, watches or draws a game holds one. It knows how discs fall and what a line of four is; it does not
/// know whose turn it is, and does not end a game: the game above it does both. It does no input or output.
public struct Board: Hashable, Sendable {
    /// How wide it is.
    public static let columns = 7
    /// How high it is.
    public static let rows = 6

    private(set) var red: UInt64 = 0
    private(set) var yellow: UInt64 = 0

    /// A board without discs.
    public init() {}

    /// A board of these discs, as the bits that `Lines` numbers.
    init(red: UInt64, yellow: UInt64) {
        self.red = red
        self.yellow = yellow
    }

    /// How many discs lie on it.
    public var count: Int { occupied.nonzeroBitCount }

    /// Whether no column has room.
    public var isFull: Bool { occupied == Lines.cells }

    /// The disc in a cell; nil if it is empty.
    public subscript(cell: Cell) -> Disc? {
        let bit: UInt64 = 1 << UInt64(cell.bit)
        if red & bit != 0 { return .red }
        return yellow & bit != 0 ? .yellow : nil
    }

    /// Whether another disc may be dropped there.
    public func hasRoom(in column: Column) -> Bool { height(of: column) < Board.rows }

    /// How many discs lie in a column, which is also the row of the next one.
    public func height(of column: Column) -> Int {
        let whole: UInt64 = 1 << UInt64(Board.rows) - 1
        return (occupied >> UInt64(column.index * Lines.columnStride) & whole).nonzeroBitCount
    }

    /// Lets a disc fall, and says where it came to lie; nil if the column has no room, and then nothing has changed.
    public mutating func drop(_ disc: Disc, in column: Column) -> Cell? {
        guard let cell = Cell(column: column, row: height(of: column)) else { return nil }
        let bit: UInt64 = 1 << UInt64(cell.bit)
        switch disc {
        case .red: red |= bit
        case .yellow: yellow |= bit
        }
        return cell
    }

    /// The colour that has a line of four or more; nil if none has.
    ///
    /// No game goes on after a line. Where a caller drops discs all the same and both colours get one, this is red.
    public var winner: Disc? {
        if Lines.contains(red) { return .red }
        return Lines.contains(yellow) ? .yellow : nil
    }

    /// All cells of all lines of four or more that the winner has, sorted; empty if there is no winner.
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

    /// Six lines of seven signs, the top row first: "." where it is empty, "R" and "Y"; each line ends with "\n".
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
