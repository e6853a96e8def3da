import NighCore

/// The offers of a former host's seat, to one watcher after the other. The first one that accepts gets it.
struct SeatOffers: Hashable, Sendable {
    /// Whether the seat is still to be given away.
    var isActive = false
    /// The watchers of the former table that are expected, in the order in which they came to it.
    var order: [PeerID] = []
    /// Whether the first offer was made.
    var hasBegun = false
    /// The peers that were offered the seat.
    private(set) var offered: Set<PeerID> = []
    /// The peers in `offered` that have not declined.
    private(set) var open: Set<PeerID> = []

    /// Adds the next offer, and returns its receiver: the first present peer, in the old order, without an offer.
    mutating func next(among present: [PeerID]) -> PeerID? {
        hasBegun = true
        let sorted = order.filter(present.contains) + present.filter { !order.contains($0) }
        guard let next = sorted.first(where: { !offered.contains($0) }) else { return nil }
        offered.insert(next)
        open.insert(next)
        return next
    }

    /// Notes that a peer does not want the seat. Returns false if it had no offer.
    mutating func declined(_ peer: PeerID) -> Bool { open.remove(peer) != nil }

    /// Forgets a peer that is gone. It may get another offer if it comes back. Returns whether it had an offer.
    mutating func forget(_ peer: PeerID) -> Bool {
        offered.remove(peer)
        return open.remove(peer) != nil
    }
}

// A guest takes over the table of a host that left, and gives away the free seat.
extension HostTable {
    /// Creates the table that a guest continues when its host has left. Returns nil if this visitor does not play, or
    /// if there is nobody who could take the other seat.
    public init?(takingOver visitor: VisitorTable, from host: PeerID) {
        guard visitor.isSeated, let table = visitor.table, var game = table.game,
            !visitor.people.watchers.isEmpty
        else { return nil }
        // The guest's pending action, which the host has not reported, takes effect now.
        switch visitor.pending {
        case .move(let column): _ = try? game.play(column, by: .yellow)
        case .resign: game.end(.resigned(.yellow))
        case .rematch, .say, nil: break
        }
        self.init()
        self.table.eventCount = table.eventCount
        self.table.hostDisc = table.hostDisc.other
        // The guest is the host now, and red stands for the host.
        self.table.game = game.withColoursExchanged
        lastUnforeseen = table.eventCount
        formerHost = host
        offers.isActive = true
        offers.order = visitor.people.watchers
    }

    /// Whether nobody is at the table besides the host.
    public var isEmpty: Bool { guest == nil && watchers.isEmpty }

    /// Whether the seat belongs to the watchers for now: not all of them were asked, or one has not answered.
    public var isSeatReserved: Bool { offers.isActive && (!offers.hasBegun || !offers.open.isEmpty) }

    /// Whether the host that left has a seat here that it may have back.
    public var awaitsFormerHost: Bool { offers.isActive }

    /// Whether the seat is free for anybody.
    public var hasOpenSeat: Bool { hasFreeSeat && !isSeatReserved }

    /// Whether somebody was offered the seat and has not answered.
    public var hasOpenOffer: Bool { !offers.open.isEmpty }

    /// Whether there is an open offer that was not open `before`.
    func hasNewOffer(since before: SeatOffers) -> Bool { !offers.open.isSubset(of: before.open) }

    /// Whether all watchers of the former table are here.
    public var isComplete: Bool { offers.order.allSatisfy { watchers.contains($0) || $0 == guest } }

    /// Whether the first offer of the seat was made.
    public var hasOfferedSeat: Bool { offers.hasBegun }

    /// Adds the last move of the former host from the table of a watcher that has seen it.
    ///
    /// The former host can have made one more move than this side knows, or have given up. Everything else in the
    /// watcher's table is ignored.
    mutating func adopt(_ lost: LostTable) -> [Output] {
        guard table.isWaiting, lost.host == formerHost, let game = table.game, lost.game.number == game.number
        else { return [] }
        let theirs = lost.game.withColoursExchanged
        guard theirs.starter == game.starter, theirs.moves.starts(with: game.moves) else { return [] }
        if theirs.moves.count > game.moves.count {
            guard game.turn == .yellow else { return [] }
            let action = Action.move(theirs.moves[game.moves.count])
            return apply(table.event(of: action, by: .yellow), isUnforeseen: true)
        }
        guard theirs.ending == .resigned(.yellow) else { return [] }
        return apply(.resigned(.yellow), isUnforeseen: true)
    }

    /// Offers the seat of the host that left to the next watcher. Offers that were made before stay open.
    public mutating func offerSeat() -> [Output] {
        guard offers.isActive, let next = offers.next(among: people.watchers) else { return [] }
        return [.send(TableMessage.seat(.offered).bytes, to: [next])]
    }

    /// Handles the answer of a watcher to an offer. Everything else that a watcher sends is ignored.
    mutating func receivedAnswer(_ bytes: [UInt8], from peer: PeerID) -> [Output] {
        guard case .answer(let takesSeat)? = try? TableMessage(bytes), let name = stayingVisitors[peer],
            offers.isActive, offers.declined(peer)
        else { return [] }
        guard takesSeat else { return offerSeat() }
        watchers.remove(peer)
        guest = peer
        lastKnown = 0
        offers.isActive = false
        return [.send(TableMessage.seat(.given).bytes, to: [peer])]
            + apply(.watched(by: UInt16(watchers.count)), isUnforeseen: false)
            + apply(seatEvent(for: name), isUnforeseen: true) + peopleChanged()
    }
}
