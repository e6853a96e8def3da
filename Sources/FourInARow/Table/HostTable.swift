import NighCore

/// A table as its host sees it: decides the order of happenings, and notifies everybody at the table.
///
/// A value without I/O. The caller sends and shows the outputs, in their order.
public struct HostTable: Sendable {
    /// What the caller has to do after a call.
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
    var stayers: [PeerID: Words] = [:]
    /// The same, as they were told.
    var people = TablePeople()
    /// The host from which this one took over the table, if it did.
    public internal(set) var formerHost: PeerID?
    /// The offers of the former host's seat to the watchers.
    var offers = SeatOffers()
    /// The number of the last happening that may have made a request impossible before the guest knew of it.
    var lastUnforeseen: UInt32 = 0
    /// The number of happenings that the guest knew of when it sent its last request.
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
    public mutating func seat(_ peer: PeerID, name: Words, canStay: Bool = false) -> [Output] {
        precondition(guest == nil, "a seat was given to two")
        precondition(canStay || !table.isWaiting, "a game was continued by a peer that cannot")
        // The guest's welcome already contains this happening.
        let outputs = apply(sitting(name), isUnforeseen: true)
        guest = peer
        lastKnown = 0
        offers.isActive = false
        if canStay { stayers[peer] = name }
        return [welcome(peer)] + outputs + peopleChanged()
    }

    /// Lets `peer` watch, or returns nil if there are too many watchers.
    ///
    /// - Parameter name: the name of the peer, if it can stay at the table when the host leaves.
    public mutating func watch(_ peer: PeerID, stayingAs name: Words? = nil) -> [Output]? {
        guard watchers.count < Self.watcherLimit else { return nil }
        let outputs = apply(.watched(by: UInt16(watchers.count + 1)), isUnforeseen: false)
        watchers.insert(peer)
        stayers[peer] = name
        return [welcome(peer)] + outputs + peopleChanged()
    }

    /// Removes `peer`, whether it had the seat or watched.
    public mutating func remove(_ peer: PeerID) -> [Output] {
        let happening: Table.Happening
        if peer == guest {
            guest = nil
            happening = .left
        } else {
            guard watchers.remove(peer) != nil else { return [] }
            happening = .watched(by: UInt16(watchers.count))
        }
        stayers[peer] = nil
        let wasOffered = offers.forget(peer)
        let outputs = apply(happening, isUnforeseen: happening == .left) + peopleChanged()
        return outputs + (wasOffered ? offerSeat() : [])
    }

    /// Returns what happens when somebody with this name takes the seat.
    func sitting(_ name: Words) -> Table.Happening { table.isWaiting ? .resumed(name) : .sat(name) }

    private func welcome(_ peer: PeerID) -> Output {
        let seated = peer == guest
        let message: TableMessage =
            formerHost != nil && stayers[peer] != nil
            ? .continued(table, seated: seated) : .welcome(table, seated: seated)
        return .send(message.bytes, to: [peer])
    }

    /// Tells the visitors that can stay who they are, if that has changed.
    mutating func peopleChanged() -> [Output] {
        var next = people
        next.guest = guest.flatMap { stayers[$0] == nil ? nil : $0 }
        next.watchers.removeAll { !watchers.contains($0) || stayers[$0] == nil }
        next.watchers += watchers.subtracting(next.watchers).filter { stayers[$0] != nil }.sorted()
        guard next != people else { return [] }
        people = next
        return next.all.isEmpty ? [] : [.send(TableMessage.people(next).bytes, to: next.all)]
    }

    // MARK: Actions

    /// Performs an action of the host. Throws, and changes nothing, if the action is not possible now.
    public mutating func act(_ action: Action) throws(Breach) -> [Output] {
        if let breach = table.breach(of: action, by: .red) { throw breach }
        return apply(table.happening(of: action, by: .red), isUnforeseen: true)
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
        guard request.after >= lastKnown, request.after <= table.happeningCount else { throw .falseReport }
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
        var happening = table.happening(of: request.action, by: .yellow)
        if case .moved(let disc, let column, _) = happening {
            happening = .moved(disc, column, request.claim)
        }
        var trial = table
        try trial.apply(happening)
        return apply(happening, isUnforeseen: false)
    }

    private mutating func breakOff(_ disc: Disc, _ breach: Breach) -> [Output] {
        table.isPlaying ? apply(.brokenOff(disc, breach), isUnforeseen: true) : []
    }

    /// Applies a happening, and sends it to everybody at the table. A peer that is just arriving is not among them yet.
    mutating func apply(_ happening: Table.Happening, isUnforeseen: Bool) -> [Output] {
        let before = table
        do throws(Breach) {
            try table.apply(happening)
        } catch {
            preconditionFailure("a table let something happen that it does not allow: \(error)")
        }
        if isUnforeseen { lastUnforeseen = table.happeningCount }
        let message = TableMessage.happened(number: table.happeningCount, happening)
        let sent: [Output] = everybody.isEmpty ? [] : [.send(message.bytes, to: everybody)]
        return sent + table.news(of: happening, before: before).map { .show($0) }
    }
}
