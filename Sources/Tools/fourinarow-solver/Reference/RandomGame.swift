import FourInARow
import NighCore

/// A game of random moves, played on the real board and on the reference board, and the first difference between the
/// two.
///
/// One game in eight is wild: its colours are random too, and it goes on after lines until the board is full.
struct RandomGame {
    private(set) var board = Board()
    private(set) var reference = ReferenceBoard()
    /// The first difference, in words; nil if there is none so far.
    private(set) var difference: String?

    /// Plays the game of this seed to its end. With `isThorough`, everything is compared after each move, otherwise
    /// only after the last.
    init(seed: UInt64, isThorough: Bool) {
        var random = SeededGenerator(seed: seed)
        let isWild = random.oneIn(8)
        var disc: Disc = random.oneIn(2) ? .red : .yellow
        var isOver = false
        while !isOver, difference == nil {
            let column = Column.allCases[Int(random.next() % 7)]
            guard drop(disc, column) else { continue }
            isOver = reference.count == 42 || (!isWild && reference.hasLine(through: column.index))
            if !isWild {
                expect((board.winner != nil) == reference.hasLine(through: column.index), "the winner")
            }
            if isThorough || isOver { compareAll(withText: isThorough) }
            disc = isWild ? (random.oneIn(2) ? .red : .yellow) : disc.other
        }
    }

    /// Drops a disc on both boards. Returns false if the column was full.
    private mutating func drop(_ disc: Disc, _ column: Column) -> Bool {
        let hadRoom = board.hasRoom(in: column)
        let before = board
        let cell = board.drop(disc, in: column)
        let row = reference.drop(disc, column.index)
        expect(cell == row.flatMap { Cell(column: column, row: $0) }, "where a disc came to lie")
        expect(hadRoom == (row != nil), "whether there is room")
        if cell == nil { expect(board == before, "a board on which nothing happened") }
        return row != nil
    }

    private mutating func compareAll(withText: Bool) {
        expect(board.count == reference.count, "the count")
        expect(board.isFull == (reference.count == 42), "whether it is full")
        for column in Column.allCases {
            let discs = reference.discs[column.index]
            expect(board.height(of: column) == discs.count, "the height of \(column)")
            for row in 0..<6 {
                let cell = Cell(column: column, row: row)!
                expect(board[cell] == (row < discs.count ? discs[row] : nil), "what is in \(cell)")
            }
        }
        let red = reference.lines(of: .red)
        let yellow = red.isEmpty ? reference.lines(of: .yellow) : []
        expect(board.winner == (!red.isEmpty ? .red : !yellow.isEmpty ? .yellow : nil), "the winner")
        let places = Set((red + yellow).joined())
        let cells = places.map { Cell(column: Column($0.column)!, row: $0.row)! }
        expect(board.winningCells == cells.sorted(), "the cells of the lines")
        if withText { expect(board.text == reference.text, "the text") }
    }

    private mutating func expect(_ isTrue: Bool, _ what: @autoclosure () -> String) {
        guard !isTrue, difference == nil else { return }
        difference =
            "after \(reference.count) discs: \(what())\n\(reference.text)and the real board\n\(board.text)"
    }
}
