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
    public private(set) var table = Table()
    /// The peer that plays yellow.
    public private(set) var guest: PeerID?
    /// The peers that watch.
    public private(set) var watchers: Set<PeerID> = []
    /// The number of the last happening that may have made a request impossible before the guest knew of it.
    private var lastUnforeseen: UInt32 = 0
    /// The number of happenings that the guest knew of when it sent its last request.
    private var lastKnown: UInt32 = 0

    /// Creates a table with a free seat.
    public init() {}

    /// Whether the seat is free.
    public var hasFreeSeat: Bool { guest == nil }

    private var everybody: [PeerID] { (guest.map { [$0] } ?? []) + watchers.sorted() }

    // MARK: Arriving and leaving

    /// Gives the seat, which must be free, to `peer`, and begins a game.
    public mutating func seat(_ peer: PeerID, name: Words) -> [Output] {
        precondition(guest == nil, "a seat was given to two")
        // The guest's welcome already contains this happening.
        let outputs = apply(.sat(name), isUnforeseen: true)
        guest = peer
        lastKnown = 0
        return [.send(TableMessage.welcome(table, seated: true).bytes, to: [peer])] + outputs
    }

    /// Lets `peer` watch, or returns nil if there are too many watchers.
    public mutating func watch(_ peer: PeerID) -> [Output]? {
        guard watchers.count < Self.watcherLimit else { return nil }
        let outputs = apply(.watched(by: UInt16(watchers.count + 1)), isUnforeseen: false)
        watchers.insert(peer)
        return [.send(TableMessage.welcome(table, seated: false).bytes, to: [peer])] + outputs
    }

    /// Removes `peer`, whether it had the seat or watched.
    public mutating func remove(_ peer: PeerID) -> [Output] {
        if peer == guest {
            guest = nil
            return apply(.left, isUnforeseen: true)
        }
        guard watchers.remove(peer) != nil else { return [] }
        return apply(.watched(by: UInt16(watchers.count)), isUnforeseen: false)
    }

    // MARK: Actions

    /// Performs an action of the host. Throws, and changes nothing, if the action is not possible now.
    public mutating func act(_ action: Action) throws(Breach) -> [Output] {
        if let breach = table.breach(of: action, by: .red) { throw breach }
        return apply(table.happening(of: action, by: .red), isUnforeseen: true)
    }

    /// Handles a message from `peer`.
    public mutating func received(_ bytes: [UInt8], from peer: PeerID) -> [Output] {
        // A watcher has nothing to send. What it sends is ignored.
        guard peer == guest else { return [] }
        do throws(Breach) {
            switch try TableMessage(bytes) {
            case .request(let request): return try grant(request)
            // The guest's program sees another game than this one, and nobody can tell which is right.
            case .protest(let breach): return breakOff(.red, breach)
            case .welcome, .happened: throw .untimely
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
    private mutating func apply(_ happening: Table.Happening, isUnforeseen: Bool) -> [Output] {
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
