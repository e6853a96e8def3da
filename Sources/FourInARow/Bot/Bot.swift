import NighCore

/// Plays the game: chooses a column for a board.
///
/// Create one bot for each game against the machine, and call `choose` when it is the bot's turn. Any thread may call
/// it, but not one that must not block, because an answer may take a second. A bot is a value without shared state. It
/// does not drop the disc itself, and knows nothing of tables, turns or peers. `docs/internals/fourinarow-bot.md`
/// describes how it chooses.
public struct Bot: Sendable {
    /// The levels, from the weakest to the one that plays perfectly.
    public static let levels = 1...9

    private let level: Level
    private var random: SeededGenerator
    private var table: HorizonTable
    /// Nil below the highest level.
    private var expert: Expert?

    /// Creates a bot of one of the `levels`.
    ///
    /// Equal seeds and equal questions give equal answers. The highest level uses 32 MiB, the others at most 1 MiB.
    ///
    /// - Precondition: `level` is 1 to 9.
    public init(level: Int, seed: UInt64) {
        precondition(Self.levels.contains(level), "there are levels 1 to 9")
        self.level = Level.all[level - 1]
        random = SeededGenerator(seed: seed)
        table = HorizonTable(entryBits: self.level.tableBits)
        expert = self.level.isPerfect ? Expert(book: .standard) : nil
    }

    /// Returns the column that the bot plays next with this colour.
    ///
    /// - Precondition: neither colour has a line, and at least one column has room.
    public mutating func choose(on board: Board, as disc: Disc) -> Column {
        precondition(board.winner == nil && !board.isFull, "the game is over")
        let position = Position(board, toMove: disc)
        if expert != nil { return expert!.choose(position, &table) }
        if let carelessness = level.carelessness, random.oneIn(carelessness) {
            return pick(Column.allCases.filter { board.hasRoom(in: $0) })
        }
        let values = table.moveValues(position, depth: level.depth, margin: level.margin)
        return pick(values.best(within: level.margin))
    }

    private mutating func pick(_ columns: [Column]) -> Column {
        columns[Int.random(in: columns.indices, using: &random)]
    }
}
