/// The settings of one level of the bot.
struct Level {
    /// The number of moves that the bot looks ahead. With 0, it sees only a line that it can complete at once.
    let depth: Int
    /// The bot treats moves that seem worse than the best by up to this value as equally good, unless a win or loss is
    /// in sight.
    let margin: Int
    /// Once in this many moves on average, the bot plays any possible move; nil for never.
    let carelessness: Int?
    /// Whether the bot knows how each position ends.
    let isPerfect: Bool

    private init(_ depth: Int, margin: Int, carelessness: Int? = nil, isPerfect: Bool = false) {
        self.depth = depth
        self.margin = margin
        self.carelessness = carelessness
        self.isPerfect = isPerfect
    }

    /// The settings of all levels, from level 1 on.
    static let all = [
        Level(0, margin: .max, carelessness: 3),
        Level(1, margin: 60, carelessness: 4),
        Level(1, margin: 24, carelessness: 8),
        Level(2, margin: 16, carelessness: 12),
        Level(4, margin: 12, carelessness: 24),
        Level(6, margin: 8),
        Level(8, margin: 6),
        Level(12, margin: 4),
        Level(10, margin: 0, isPerfect: true),
    ]

    /// The size of the table for a search of this depth, for `HorizonTable`: 8 KiB or 1 MiB.
    var tableBits: Int { depth < 6 ? 10 : 17 }
}
