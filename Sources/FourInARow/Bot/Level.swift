/// How strong a level of the bot is.
struct Level {
    /// How many moves it looks ahead; 0 sees no more than a line it can complete at once.
    let depth: Int
    /// Moves that seem worse than the best by up to so much are as good to it, except where a win or loss is in sight.
    let margin: Int
    /// Once in so many moves on average it does not think at all; nil: never.
    let carelessness: Int?
    /// Whether it knows how each position ends.
    let isPerfect: Bool

    private init(_ depth: Int, margin: Int, carelessness: Int? = nil, isPerfect: Bool = false) {
        self.depth = depth
        self.margin = margin
        self.carelessness = carelessness
        self.isPerfect = isPerfect
    }

    /// The levels from 1 on.
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

    /// The table a search of this depth needs: 8 KiB, or 1 MiB.
    var tableBits: Int { depth < 6 ? 10 : 17 }
}
