import NighCore

/// A table as its host sees it: decides the order of events, and notifies everybody at the table.
///
/// A value without I/O. The caller sends and shows the outputs, in their order.
public struct HostTable: Sendable {
    /// An instruction to the caller.
    public enum Output: Hashable, Sendable {
        /// Send these bytes, reliably.
        case send([UInt8], to: [PeerID])
        /// Show this news.
        case show(TableNews)
    }

    /// The most watchers. With the guest and one more, they are as many peers as a session takes.
    public static let watcherLimit = 62

    /// The table as it is now.
    public internal(set) var table = Table()
    /// The peer that plays yellow.
    public internal(set) var guest: PeerID?
    /// The peers that watch.
    public internal(set) var watchers: Set<PeerID> = []
    /// The visitors that can stay at the table when the host leaves, with their names.
    var stayingVisitors: [PeerID: SafeText] = [:]
    /// The last list of these visitors that was sent to them.
    var people = TablePeople()
    /// The host from which this one took over the table, if it did.
    public internal(set) var formerHost: PeerID?
    /// The offers of the former host's seat to the watchers.
    var offers = SeatOffers()
    /// The number of the last event that may have made a request impossible before the guest knew of it.
    var lastUnforeseen: UInt32 = 0
    /// The number of events that the guest knew of when it sent its last request.
    var lastKnown: UInt32 = 0

    /// Creates a table with a free seat.
    public init() {}

    /// Whether the seat is free.
    public var hasFreeSeat: Bool { guest == nil }

    private var everybody: [PeerID] { (guest.map { [$0] } ?? []) + watchers.sorted() }

    // MARK: Arriving and leaving

    /// Gives the seat, which must be free, to `peer`. The waiting game goes on; if there is none, another game begins.
    ///
    /// - Parameter canStay: whether the peer can stay at the table when the host leaves. Only such a peer may continue
    ///   a waiting game.
    public mutating func seat(_ peer: PeerID, name: SafeText, canStay: Bool = false) -> [Output] {
        precondition(guest == nil, "a seat was given to two")
        precondition(canStay || !table.isWaiting, "a game was continued by a peer that cannot")
        // The guest's welcome already contains this event.
        let outputs = apply(seatEvent(for: name), isUnforeseen: true)
        guest = peer
        lastKnown = 0
        offers.isActive = false
        if canStay { stayingVisitors[peer] = name }
        return [welcome(peer)] + outputs + peopleChanged()
    }

    /// Lets `peer` watch, or returns nil if there are too many watchers.
    ///
    /// - Parameter name: the name of the peer, if it can stay at the table when the host leaves.
    public mutating func watch(_ peer: PeerID, stayingAs name: SafeText? = nil) -> [Output]? {
        guard watchers.count < Self.watcherLimit else { return nil }
        let outputs = apply(.watched(by: UInt16(watchers.count + 1)), isUnforeseen: false)
        watchers.insert(peer)
        stayingVisitors[peer] = name
        return [welcome(peer)] + outputs + peopleChanged()
    }

    /// Removes `peer`, whether it had the seat or watched.
    public mutating func remove(_ peer: PeerID) -> [Output] {
        let event: Table.Event
        if peer == guest {
            guest = nil
            event = .left
        } else {
            guard watchers.remove(peer) != nil else { return [] }
            event = .watched(by: UInt16(watchers.count))
        }
        stayingVisitors[peer] = nil
        let wasOffered = offers.forget(peer)
        let outputs = apply(event, isUnforeseen: event == .left) + peopleChanged()
        return outputs + (wasOffered ? offerSeat() : [])
    }

    /// Returns the event when a visitor with this name takes the seat.
    func seatEvent(for name: SafeText) -> Table.Event { table.isWaiting ? .resumed(name) : .sat(name) }

    private func welcome(_ peer: PeerID) -> Output {
        let seated = peer == guest
        let message: TableMessage =
            formerHost != nil && stayingVisitors[peer] != nil
            ? .continued(table, seated: seated) : .welcome(table, seated: seated)
        return .send(message.bytes, to: [peer])
    }

    /// Sends the list of the visitors that can stay to each of them, if it has changed.
    mutating func peopleChanged() -> [Output] {
        var next = people
        next.guest = guest.flatMap { stayingVisitors[$0] == nil ? nil : $0 }
        next.watchers.removeAll { !watchers.contains($0) || stayingVisitors[$0] == nil }
        next.watchers += watchers.subtracting(next.watchers).filter { stayingVisitors[$0] != nil }.sorted()
        guard next != people else { return [] }
        people = next
        return next.all.isEmpty ? [] : [.send(TableMessage.people(next).bytes, to: next.all)]
    }

    // MARK: Actions

    /// Performs an action of the host. Throws, and changes nothing, if the action is not possible now.
    public mutating func act(_ action: Action) throws(Breach) -> [Output] {
        if let breach = table.breach(of: action, by: .red) { throw breach }
        return apply(table.event(of: action, by: .red), isUnforeseen: true)
    }

    /// Handles a message from `peer`.
    public mutating func received(_ bytes: [UInt8], from peer: PeerID) -> [Output] {
        guard peer == guest else { return receivedAnswer(bytes, from: peer) }
        do throws(Breach) {
            switch try TableMessage(bytes) {
            case .request(let request): return try grant(request)
            // The guest's program sees another game than this one, and nobody can tell which is right.
            case .protest(let breach): return breakOff(.red, breach)
            case .welcome, .happened, .continued, .people, .seat, .answer: throw .untimely
            }
        } catch {
            return breakOff(.yellow, error)
        }
    }

    private mutating func grant(_ request: TableMessage.Request) throws(Breach) -> [Output] {
        guard request.after >= lastKnown, request.after <= table.eventCount else { throw .falseReport }
        lastKnown = request.after
        let isLate = request.after < lastUnforeseen
        // A request that was meant for another game must not change this one.
        let isMisplaced: Bool
        switch request.action {
        case .move, .resign, .rematch: isMisplaced = request.game != table.game?.number
        case .say: isMisplaced = false
        }
        if let breach = isMisplaced ? .untimely : table.breach(of: request.action, by: .yellow) {
            guard !isLate else { return [] }
            throw breach
        }
        var event = table.event(of: request.action, by: .yellow)
        if case .moved(let disc, let column, _) = event {
            event = .moved(disc, column, request.claim)
        }
        var trial = table
        try trial.apply(event)
        return apply(event, isUnforeseen: false)
    }

    private mutating func breakOff(_ disc: Disc, _ breach: Breach) -> [Output] {
        table.isPlaying ? apply(.brokenOff(disc, breach), isUnforeseen: true) : []
    }

    /// Applies an event, and sends it to everybody at the table. A peer that is just arriving is not among them yet.
    mutating func apply(_ event: Table.Event, isUnforeseen: Bool) -> [Output] {
        let before = table
        do throws(Breach) {
            try table.apply(event)
        } catch {
            preconditionFailure("a table let something happen that it does not allow: \(error)")
        }
        if isUnforeseen { lastUnforeseen = table.eventCount }
        let message = TableMessage.happened(number: table.eventCount, event)
        let sent: [Output] = everybody.isEmpty ? [] : [.send(message.bytes, to: everybody)]
        return sent + table.news(of: event, before: before).map { .show($0) }
    }
}
