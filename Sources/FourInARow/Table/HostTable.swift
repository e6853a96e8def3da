import NighCore

/// The table of whoever hosts it: decides in which order things happen, and tells everybody who sits or stands there. A value
/// without I/O; what it gives back is to be sent and told, in that order.
public struct HostTable: Sendable {
    /// What comes of a call.
    public enum Output: Hashable, Sendable {
        /// To be sent, reliably.
        case send([UInt8], to: [PeerID])
        /// To be shown.
        case tell(TableNews)
    }

    /// So many may watch; with the guest and one more they are as many peers as a session takes.
    public static let watcherLimit = 62

    /// The table as it is now.
    public private(set) var table = Table()
    /// Who plays yellow.
    public private(set) var guest: PeerID?
    /// Who watches.
    public private(set) var watchers: Set<PeerID> = []
    /// The last happening that the guest may not have known of when it wanted something that is not possible any more.
    private var lastSurprise: UInt32 = 0
    /// How many things the guest last said it knew of.
    private var lastAfter: UInt32 = 0

    /// A table with a free seat.
    public init() {}

    /// Whether somebody may sit down.
    public var hasFreeSeat: Bool { guest == nil }

    private var everybody: [PeerID] { (guest.map { [$0] } ?? []) + watchers.sorted() }

    // MARK: Who is there

    /// Gives the seat to `peer`, which must be free, and begins a game.
    public mutating func seat(_ peer: PeerID, name: Words) -> [Output] {
        precondition(guest == nil, "a seat was given to two")
        // What the guest is welcomed with has it seated already.
        let outputs = happen(.sat(name), surprises: true)
        guest = peer
        lastAfter = 0
        return [.send(TableMessage.welcome(table, seated: true).bytes, to: [peer])] + outputs
    }

    /// Lets `peer` watch. Nil where too many do.
    public mutating func watch(_ peer: PeerID) -> [Output]? {
        guard watchers.count < Self.watcherLimit else { return nil }
        let outputs = happen(.watched(by: UInt16(watchers.count + 1)), surprises: false)
        watchers.insert(peer)
        return [.send(TableMessage.welcome(table, seated: false).bytes, to: [peer])] + outputs
    }

    /// `peer` is gone, whether it sat or watched.
    public mutating func gone(_ peer: PeerID) -> [Output] {
        if peer == guest {
            guest = nil
            return happen(.left, surprises: true)
        }
        guard watchers.remove(peer) != nil else { return [] }
        return happen(.watched(by: UInt16(watchers.count)), surprises: false)
    }

    // MARK: What is done

    /// The host does something. Throws, and nothing happens, where it cannot do that now.
    public mutating func act(_ action: Action) throws(Breach) -> [Output] {
        if let breach = table.breach(of: action, by: .red) { throw breach }
        return happen(table.happening(of: action, by: .red), surprises: true)
    }

    /// Something came from `peer`.
    public mutating func received(_ bytes: [UInt8], from peer: PeerID) -> [Output] {
        // Whoever watches has nothing to say; what it says all the same is not listened to.
        guard peer == guest else { return [] }
        do throws(Breach) {
            switch try TableMessage(bytes) {
            case .request(let request): return try granted(request)
            // The guest's program sees something else than this one: nobody can tell who is right.
            case .protest(let breach): return breakOff(.red, breach)
            case .welcome, .happened: throw .untimely
            }
        } catch {
            return breakOff(.yellow, error)
        }
    }

    private mutating func granted(_ request: TableMessage.Request) throws(Breach) -> [Output] {
        guard request.after >= lastAfter, request.after <= table.happeningCount else { throw .falseReport }
        lastAfter = request.after
        let isLate = request.after < lastSurprise
        // What was meant for another game than this must not be done in this.
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
        var tried = table
        try tried.apply(happening)
        return happen(happening, surprises: false)
    }

    private mutating func breakOff(_ disc: Disc, _ breach: Breach) -> [Output] {
        table.isPlaying ? happen(.brokenOff(disc, breach), surprises: true) : []
    }

    /// Makes it so, and tells everybody who was there before.
    private mutating func happen(_ happening: Table.Happening, surprises: Bool) -> [Output] {
        let before = table
        do throws(Breach) {
            try table.apply(happening)
        } catch {
            preconditionFailure("a table let something happen that it does not allow: \(error)")
        }
        if surprises { lastSurprise = table.happeningCount }
        let message = TableMessage.happened(number: table.happeningCount, happening)
        let sent: [Output] = everybody.isEmpty ? [] : [.send(message.bytes, to: everybody)]
        return sent + table.news(of: happening, before: before).map { .tell($0) }
    }
}
