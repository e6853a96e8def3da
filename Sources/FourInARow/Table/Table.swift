/// A table as everybody at it sees it: the guest, the number of watchers, and the game.
///
/// The host's program decides the order of events, numbers them, and sends them to everybody. Every program applies
/// them to a value of this type, and checks each. So all tables are equal after the same number.
///
/// In this value and in the messages, red stands for the host and yellow for its guest. People see the colours of
/// `shown`, which stay with the players when the guest becomes the host.
public struct Table: Hashable, Sendable {
    /// An event at a table.
    public enum Event: Hashable, Sendable {
        /// A player moved, and claims this result.
        case moved(Disc, Column, Claim)
        case resigned(Disc)
        /// Another game begins, in which this colour moves first.
        case rematch(Disc)
        case said(Disc, SafeText)
        /// A guest sat down. A game begins, in which the host moves first.
        case sat(SafeText)
        /// The guest has left.
        case left
        case brokenOff(Disc, Breach)
        /// The number of watchers has changed to this.
        case watched(by: UInt16)
        /// A guest took the seat of a player that left, and the waiting game goes on.
        case resumed(SafeText)
    }

    /// The name of the guest, who plays yellow; nil while the seat is free.
    public internal(set) var guest: SafeText?
    /// The number of watchers.
    public internal(set) var watcherCount = 0
    /// The current game, or the last one; nil before the first.
    public internal(set) var game: Game?
    /// The colour in which people see the discs of the host. It is yellow after the guest of a red host became the
    /// host.
    public internal(set) var hostDisc = Disc.red
    /// The number of events so far.
    public internal(set) var eventCount: UInt32 = 0

    /// Whether a game is being played.
    public var isPlaying: Bool { game.map { $0.ending == nil } ?? false }

    /// Whether a game waits for somebody to take the seat of a player that left.
    public var isWaiting: Bool { isPlaying && guest == nil }

    /// The colour that moves next; nil if nobody can move now.
    public var turn: Disc? { isWaiting ? nil : game?.turn }

    /// The table in the colours that people see.
    var shown: Table {
        var shown = self
        if hostDisc == .yellow { shown.game = game?.withColoursExchanged }
        return shown
    }

    /// Returns why `disc` cannot perform this action now, or nil if it can.
    public func breach(of action: Action, by disc: Disc) -> Breach? {
        switch action {
        case .move(let column):
            guard let game, !isWaiting else { return .untimely }
            return game.refusal(of: column, by: disc).map { Breach($0) }
        case .resign: return isPlaying && !isWaiting ? nil : .untimely
        case .rematch: return guest != nil && !isPlaying && game != nil ? nil : .untimely
        case .say: return guest != nil ? nil : .untimely
        }
    }

    /// Returns the event that this action leads to, if `disc` may perform it.
    func event(of action: Action, by disc: Disc) -> Event {
        switch action {
        case .move(let column):
            var tried = game
            _ = try? tried?.play(column, by: disc)
            return .moved(disc, column, Claim(tried?.ending))
        case .resign: return .resigned(disc)
        case .rematch: return .rematch(disc)
        case .say(let text): return .said(disc, text)
        }
    }

    /// Applies the next event. Throws, and changes nothing, if it cannot have happened.
    mutating func apply(_ event: Event) throws(Breach) {
        switch event {
        case .moved(let disc, let column, let claim):
            guard var next = game else { throw .untimely }
            do throws(Game.Refusal) {
                try next.play(column, by: disc)
            } catch {
                throw Breach(error)
            }
            guard Claim(next.ending) == claim else { throw .falseClaim }
            game = next
        case .resigned(let disc):
            guard isPlaying else { throw .untimely }
            game?.end(.resigned(disc))
        case .rematch(let disc):
            if let breach = breach(of: .rematch, by: disc) { throw breach }
            begin(starter: disc)
        case .said:
            guard guest != nil else { throw .untimely }
        case .sat(let name):
            guard guest == nil, !isWaiting else { throw .untimely }
            guest = name
            begin(starter: .red)
        case .left:
            guard guest != nil else { throw .untimely }
            game?.end(.left(.yellow))
            guest = nil
        case .brokenOff(let disc, let breach):
            guard isPlaying else { throw .untimely }
            game?.end(.brokenOff(disc, breach))
        case .watched(let count): watcherCount = Int(count)
        case .resumed(let name):
            guard isWaiting else { throw .untimely }
            guest = name
        }
        eventCount &+= 1
    }

    private mutating func begin(starter: Disc) {
        game = Game(number: (game?.number ?? 0) &+ 1, starter: starter)
    }
}
