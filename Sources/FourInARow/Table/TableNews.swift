/// What somebody at a table is told when something has happened there. The table as it is then comes beside it.
public enum TableNews: Hashable, Sendable {
    /// One is at the table now, with a seat or to watch.
    case cameIn(seated: Bool)
    /// A game begins; `number` 1 is the table's first.
    case began(number: UInt32, starter: Disc)
    /// A disc was dropped.
    case moved(Disc, Cell)
    /// The game is over.
    case ended(Game.Ending)
    /// A player said something.
    case said(Disc, Words)
    /// Somebody sat down to play yellow.
    case guestCame(Words)
    /// Whoever played yellow is gone.
    case guestLeft(Words)
    /// So many watch now.
    case watched(by: Int)
}

extension Table {
    /// What `happening` is to people, once it was applied to `before` and this came of it.
    func news(of happening: Happening, before: Table) -> [TableNews] {
        var news: [TableNews] = []
        switch happening {
        case .moved(let disc, _, _): if let cell = game?.lastCell { news.append(.moved(disc, cell)) }
        case .said(let disc, let words): news.append(.said(disc, words))
        case .sat(let name): news.append(.guestCame(name))
        case .left: if let guest = before.guest { news.append(.guestLeft(guest)) }
        case .watched(let count): news.append(.watched(by: Int(count)))
        case .resigned, .rematch, .brokenOff: break
        }
        if let game {
            if game.number != before.game?.number {
                news.append(.began(number: game.number, starter: game.starter))
            }
            if let ending = game.ending, before.isPlaying { news.append(.ended(ending)) }
        }
        return news
    }
}
