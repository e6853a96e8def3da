/// Something that has happened at a table, to be shown to a person there. The new state of the table comes with it.
public enum TableNews: Hashable, Sendable {
    /// The local player is at the table now, in the seat or as a watcher.
    case joined(seated: Bool)
    /// A game begins. `number` is 1 for the first game of the table.
    case began(number: UInt32, starter: Disc)
    /// A disc was dropped.
    case moved(Disc, Cell)
    /// The game is over.
    case ended(Game.Ending)
    /// A player said something.
    case said(Disc, SafeText)
    /// Somebody sat down to play yellow.
    case guestJoined(SafeText)
    /// The guest, who played yellow, is gone.
    case guestLeft(SafeText)
    /// The number of watchers has changed to this.
    case watched(by: Int)
    /// Somebody took the seat of a player that left, and the game goes on.
    case resumed(SafeText)
    /// The local player, who watches, may take the seat of a player that left.
    case seatOffered
}

extension Table {
    /// Returns the news of an event that has changed `before` into this table.
    func news(of event: Event, before: Table) -> [TableNews] {
        var news: [TableNews] = []
        switch event {
        case .moved(let disc, _, _): if let cell = game?.lastCell { news.append(.moved(disc, cell)) }
        case .said(let disc, let text): news.append(.said(disc, text))
        case .sat(let name): news.append(.guestJoined(name))
        case .left: if let guest = before.guest { news.append(.guestLeft(guest)) }
        case .watched(let count): news.append(.watched(by: Int(count)))
        case .resumed(let name): news.append(.resumed(name))
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

extension TableNews {
    /// Returns the news in the colours that people see, where the host plays `hostDisc`.
    func shown(hostDisc: Disc) -> TableNews {
        guard hostDisc == .yellow else { return self }
        return switch self {
        case .began(let number, let starter): .began(number: number, starter: starter.other)
        case .moved(let disc, let cell): .moved(disc.other, cell)
        case .ended(let ending): .ended(ending.withColoursExchanged)
        case .said(let disc, let text): .said(disc.other, text)
        case .joined, .guestJoined, .guestLeft, .watched, .resumed, .seatOffered: self
        }
    }
}
