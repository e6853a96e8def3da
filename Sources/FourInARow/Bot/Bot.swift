import NighCore

/// Plays the game: given a board, it says where it would drop a disc.
///
/// Whoever plays against the machine holds one a game and calls `choose` when it is the bot's turn, on any thread, but
/// not on one that must not wait: an answer may take a second. It is a value without shared state. It never plays a
/// disc itself, and knows nothing of tables, turns or peers. How it thinks is in `docs/fourinarow-bot.md`.
public struct Bot: Sendable {
    /// From the weakest to the one that gives nothing away.
    public static let levels = 1...9

    private let level: Level
    private var random: SeededGenerator
    private var table: HorizonTable
    /// Nil below the highest level.
    private var expert: Expert?

    /// A bot of one of the `levels`; the same seed and the same questions give the same answers.
    ///
    /// The highest level takes 32 MiB, the others 1 MiB at most.
    ///
    /// - Precondition: `level` is 1 to 9.
    public init(level: Int, seed: UInt64) {
        precondition(Self.levels.contains(level), "there are levels 1 to 9")
        self.level = Level.all[level - 1]
        random = SeededGenerator(seed: seed)
        table = HorizonTable(entryBits: self.level.tableBits)
        expert = self.level.isPerfect ? Expert(book: .standard) : nil
    }

    /// The column it plays next as this colour.
    ///
    /// - Precondition: nobody has a line, and some column has room.
    public mutating func choose(on board: Board, as disc: Disc) -> Column {
        precondition(board.winner == nil && !board.isFull, "the game is over")
        let position = Position(board, toMove: disc)
        if expert != nil { return expert!.choose(position, &table) }
        if let carelessness = level.carelessness, random.oneIn(carelessness) {
            return pick(Column.allCases.filter { board.hasRoom(in: $0) })
        }
        let opinions = table.opinions(position, depth: level.depth, margin: level.margin)
        return pick(opinions.best(within: level.margin))
    }

    private mutating func pick(_ columns: [Column]) -> Column {
        columns[Int.random(in: columns.indices, using: &random)]
    }
}
