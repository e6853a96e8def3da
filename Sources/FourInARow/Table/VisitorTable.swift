/// A table as its guest sees it, or somebody who watches: believes the host in what order things happen, and checks each of
/// them. A value without I/O.
public struct VisitorTable: Sendable {
    /// What comes of a call.
    public enum Output: Hashable, Sendable {
        /// To be sent to the host, reliably.
        case send([UInt8])
        /// To be shown.
        case tell(TableNews)
        /// What the host's program says makes no sense: there is no point in staying.
        case leave(Breach)
    }

    /// So many of its own words a guest keeps that the host has not passed on; it says no more before one of them is.
    public static let unheardLimit = 64

    /// The table as it is now; nil before the host has said so.
    public private(set) var table: Table?
    /// Whether one has the seat.
    public private(set) var isSeated = false
    /// What was asked of the host and has not happened yet.
    public private(set) var pending: Action?
    /// What this side has said and the host has not passed on, the oldest first.
    private var unheard: [Words] = []
    /// After this side has protested, nothing is believed of the game until the next.
    private var hasProtested = false

    /// A table that one has just come to.
    public init() {}

    /// Why that cannot be done now; nil when it can.
    public func breach(of action: Action) -> Breach? {
        guard isSeated, let table else { return .untimely }
        // What was said needs no answer before the next is said; everything else does.
        let mustWait = action.isWords ? unheard.count >= Self.unheardLimit : pending != nil
        if mustWait { return .outOfTurn }
        return table.breach(of: action, by: .yellow)
    }

    /// The guest wants to do something. It is done when the host has said so. Throws where it cannot be done now.
    public mutating func act(_ action: Action) throws(Breach) -> [Output] {
        if let breach = breach(of: action) { throw breach }
        guard let table else { return [] }
        var claim = Claim.goesOn
        if case .moved(_, _, let result) = table.happening(of: action, by: .yellow) { claim = result }
        if case .say(let words) = action { unheard.append(words) } else { pending = action }
        let request = TableMessage.Request(
            after: table.happeningCount, game: table.game?.number ?? 0, action: action, claim: claim)
        return [.send(TableMessage.request(request).bytes)]
    }

    /// Something came from the host.
    public mutating func received(_ bytes: [UInt8]) -> [Output] {
        do throws(Breach) {
            return try taken(try TableMessage(bytes))
        } catch {
            return protest(error)
        }
    }

    private mutating func taken(_ message: TableMessage) throws(Breach) -> [Output] {
        switch (message, table) {
        case (.welcome(let welcome, let seated), nil):
            // Nobody has done anything in the guest's place before it came.
            if seated, welcome.game.map({ $0 != Game(number: $0.number, starter: .red) }) ?? true {
                throw .falseReport
            }
            table = welcome
            isSeated = seated
            var outputs: [Output] = [.tell(.cameIn(seated: seated))]
            if seated, let game = welcome.game {
                outputs.append(.tell(.began(number: game.number, starter: game.starter)))
            }
            return outputs
        case (.happened(let number, let happening), let before?):
            guard number == before.happeningCount &+ 1 else { throw .falseReport }
            return try taken(happening, before)
        case (.request, _), (.protest, _), (.welcome, _?), (.happened, nil): throw .untimely
        }
    }

    private mutating func taken(_ happening: Table.Happening, _ before: Table) throws(Breach) -> [Output] {
        if hasProtested {
            switch happening {
            case .rematch: hasProtested = false
            // What is said beside the game is no part of what went wrong.
            case .said, .watched, .sat, .left: break
            case .moved, .resigned, .brokenOff:
                // Only the order is still held against the host.
                table?.happeningCount &+= 1
                return []
            }
        }
        if isSeated { try checkOwn(happening) }
        var after = before
        try after.apply(happening)
        table = after
        if happening.ownAction != nil { pending = nil }
        // What the host cannot grant any more it will not grant: it has the same table.
        if let action = pending,
            after.breach(of: action, by: .yellow) != nil || after.game?.number != before.game?.number
        {
            pending = nil
        }
        return after.news(of: happening, before: before).map { .tell($0) }
    }

    /// Whoever sits here knows what it did, and that it is there.
    private mutating func checkOwn(_ happening: Table.Happening) throws(Breach) {
        switch happening {
        case .left: throw .falseReport
        case .said(.yellow, let words):
            guard let place = unheard.firstIndex(of: words) else { throw .falseReport }
            // A host may lose words, though it should not.
            unheard.removeSubrange(...place)
        default: if let own = happening.ownAction, own != pending { throw .falseReport }
        }
    }

    private mutating func protest(_ breach: Breach) -> [Output] {
        pending = nil
        guard isSeated, table?.isPlaying == true, !hasProtested else { return [.leave(breach)] }
        hasProtested = true
        table?.game?.end(.brokenOff(.red, breach))
        // Its number was one nobody can trust, but that one thing was told is certain.
        table?.happeningCount &+= 1
        return [.send(TableMessage.protest(breach).bytes), .tell(.ended(.brokenOff(.red, breach)))]
    }
}

extension Table.Happening {
    /// What the guest must have asked for, if this has happened; nil for what it need not have.
    fileprivate var ownAction: Action? {
        switch self {
        case .moved(.yellow, let column, _): .move(column)
        case .resigned(.yellow): .resign
        case .rematch(.yellow): .rematch
        default: nil
        }
    }
}
