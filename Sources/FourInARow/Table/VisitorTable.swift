import NighCore

/// A table as its guest or a watcher sees it: accepts the order of events from the host, and checks each event.
///
/// A value without I/O.
public struct VisitorTable: Sendable {
    /// An instruction to the caller.
    public enum Output: Hashable, Sendable {
        /// Send these bytes to the host, reliably.
        case send([UInt8])
        /// Show this news.
        case show(TableNews)
        /// Leave the table: the host's program broke the rules.
        case leave(Breach)
    }

    /// The most own chat lines that a guest keeps until the host passes them on. At this limit, it sends no more.
    public static let unconfirmedLimit = 64

    /// The table as it is now; nil before the host's welcome.
    public private(set) var table: Table?
    /// Whether this visitor has the seat.
    public private(set) var isSeated = false
    /// The action that was requested from the host and has not happened yet.
    public private(set) var pending: Action?
    /// The visitors that can stay at the table when the host leaves, as the host has last reported.
    var people = TablePeople()
    /// Whether this watcher may take the seat of a player that left.
    public private(set) var isSeatOffered = false
    /// Whether this watcher has accepted the seat and does not have it yet.
    private var hasAcceptedSeat = false
    /// The guest's own chat lines that the host has not passed on yet, oldest first.
    private var unconfirmed: [SafeText] = []
    /// Whether this side has protested. It then accepts nothing about the game until the next one begins.
    private var hasProtested = false

    /// Creates the table of a visitor that has just arrived.
    public init() {}

    /// Returns why the action is not possible now, or nil if it is possible.
    public func breach(of action: Action) -> Breach? {
        guard isSeated, let table else { return .untimely }
        // A chat line does not wait for the one before it to be passed on. Every other action waits for the last
        // request.
        let mustWait = action.isChat ? unconfirmed.count >= Self.unconfirmedLimit : pending != nil
        if mustWait { return .outOfTurn }
        return table.breach(of: action, by: .yellow)
    }

    /// Requests an action of the guest. The action is done when the host reports it. Throws if it is not possible now.
    public mutating func act(_ action: Action) throws(Breach) -> [Output] {
        if let breach = breach(of: action) { throw breach }
        guard let table else { return [] }
        var claim = Claim.goesOn
        if case .moved(_, _, let result) = table.event(of: action, by: .yellow) { claim = result }
        if case .say(let text) = action { unconfirmed.append(text) } else { pending = action }
        let request = TableMessage.Request(
            after: table.eventCount, game: table.game?.number ?? 0, action: action, claim: claim)
        return [.send(TableMessage.request(request).bytes)]
    }

    /// Takes or declines the seat that was offered. Does nothing if it is not offered any more.
    public mutating func answerOffer(takesSeat: Bool) -> [Output] {
        guard isSeatOffered else { return [] }
        isSeatOffered = false
        hasAcceptedSeat = takesSeat
        return [.send(TableMessage.answer(takesSeat: takesSeat).bytes)]
    }

    /// Handles a message from the host.
    public mutating func received(_ bytes: [UInt8]) -> [Output] {
        do throws(Breach) {
            return try handle(try TableMessage(bytes))
        } catch {
            return protest(error)
        }
    }

    private mutating func handle(_ message: TableMessage) throws(Breach) -> [Output] {
        switch (message, table) {
        case (.welcome(let welcome, let seated), nil):
            // Nobody has moved in the guest's place before it arrived.
            if seated, welcome.game.map({ $0 != Game(number: $0.number, starter: .red) }) ?? true {
                throw .falseReport
            }
            table = welcome
            isSeated = seated
            var outputs: [Output] = [.show(.joined(seated: seated))]
            if seated, let game = welcome.game {
                outputs.append(.show(.began(number: game.number, starter: game.starter)))
            }
            return outputs
        case (.continued(let table, let seated), nil):
            // The guest of a waiting game takes the seat of a player that left.
            if seated, !table.isPlaying { throw .falseReport }
            self.table = table
            isSeated = seated
            return [.show(.joined(seated: seated))]
                + (seated ? Self.news(ofSeatIn: table).map { .show($0) } : [])
        case (.people(let people), _?):
            self.people = people
            return []
        case (.seat(.offered), let table?):
            guard !isSeated, table.guest == nil else { throw .untimely }
            isSeatOffered = true
            return [.show(.seatOffered)]
        case (.seat(.given), _?):
            guard hasAcceptedSeat else { throw .falseReport }
            hasAcceptedSeat = false
            isSeated = true
            return []
        case (.happened(let number, let event), let before?):
            guard number == before.eventCount &+ 1 else { throw .falseReport }
            return try handle(event, before)
        case (.request, _), (.protest, _), (.answer, _), (.welcome, _?), (.continued, _?), (.people, nil),
            (.seat, nil), (.happened, nil):
            throw .untimely
        }
    }

    private static func news(ofSeatIn table: Table) -> [TableNews] {
        guard let game = table.game, let name = table.guest else { return [] }
        return game.moves.isEmpty ? [.began(number: game.number, starter: game.starter)] : [.resumed(name)]
    }

    private mutating func handle(_ event: Table.Event, _ before: Table) throws(Breach) -> [Output] {
        if hasProtested {
            switch event {
            case .rematch: hasProtested = false
            // Chat, watchers and the seat have nothing to do with the breach in the game.
            case .said, .watched, .sat, .left, .resumed: break
            case .moved, .resigned, .brokenOff:
                // Only the order of the events is still checked.
                table?.eventCount &+= 1
                return []
            }
        }
        if isSeated { try checkOwn(event) }
        var after = before
        try after.apply(event)
        table = after
        if after.guest != nil { isSeatOffered = false }
        if event.ownAction != nil { pending = nil }
        // The host has the same table, so it refuses actions that are no longer possible here.
        if let action = pending,
            after.breach(of: action, by: .yellow) != nil || after.game?.number != before.game?.number
        {
            pending = nil
        }
        return after.news(of: event, before: before).map { .show($0) }
    }

    /// Checks an event against the guest's own actions. The guest also knows that it has not left.
    private mutating func checkOwn(_ event: Table.Event) throws(Breach) {
        switch event {
        case .left: throw .falseReport
        case .said(.yellow, let text):
            guard let place = unconfirmed.firstIndex(of: text) else { throw .falseReport }
            // A host may lose chat lines, though it should not.
            unconfirmed.removeSubrange(...place)
        default: if let own = event.ownAction, own != pending { throw .falseReport }
        }
    }

    private mutating func protest(_ breach: Breach) -> [Output] {
        pending = nil
        guard isSeated, table?.isPlaying == true, !hasProtested else { return [.leave(breach)] }
        hasProtested = true
        table?.game?.end(.brokenOff(.red, breach))
        // The number of that event cannot be trusted, but the host did send one.
        table?.eventCount &+= 1
        return [.send(TableMessage.protest(breach).bytes), .show(.ended(.brokenOff(.red, breach)))]
    }
}

/// A visitor's reaction when the host of its table has left.
enum HostLoss {
    /// It hosts the table from now on.
    case takeOver(HostTable)
    /// It goes to the table of the guest, and shows the lost table there.
    case follow(PeerID, LostTable)
    /// The table is gone.
    case leave
}

extension VisitorTable {
    /// Returns this visitor's reaction when `host` has left. All visitors with the same messages come to the same
    /// successor: the guest.
    func afterLoss(of host: PeerID) -> HostLoss {
        guard let game = table?.game, let guest = people.guest else { return .leave }
        if isSeated { return HostTable(takingOver: self, from: host).map { .takeOver($0) } ?? .leave }
        return .follow(guest, LostTable(host: host, game: game))
    }
}

extension Table.Event {
    /// The action that the guest must have requested if this has happened; nil if it need not have requested any.
    fileprivate var ownAction: Action? {
        switch self {
        case .moved(.yellow, let column, _): .move(column)
        case .resigned(.yellow): .resign
        case .rematch(.yellow): .rematch
        default: nil
        }
    }
}
