import FourInARow
import NighCore

/// Everybody at one table, with the messages on their way between them, and what each may believe.
struct TableSimulation {
    /// Somebody at the table other than the host.
    struct Visitor {
        let id: PeerID
        var table = VisitorTable()
        var checker = TableChecker("a visitor")
        var fromHost: [[UInt8]] = []
        var toHost: [[UInt8]] = []
        /// Whether no message on the way from or to it was tampered with.
        var isClean = true
        /// The last action that it asked for. Nobody else may make it do anything.
        var requestedAction: FourInARow.Action?
        /// What it said, and has not yet seen reported.
        var said: [Words] = []
        /// The game in which it protested.
        var protested: UInt32?

        /// Starts over after its table was used outside this simulation.
        mutating func reset() {
            isClean = false
            checker.reset(table.table)
            requestedAction = table.pending
        }
    }

    let tampersToHost: Bool
    let tampersToVisitors: Bool
    let columns: Int
    private(set) var host = HostTable()
    private var checker = TableChecker("the host")
    var visitors: [Visitor] = []
    var coverage = TableTarget.Coverage()
    /// The host's table at each `happeningCount`.
    private var history = [HostTable().table]
    /// The last messages, whatever they were.
    private(set) var recentMessages: [[UInt8]] = [[1, 17, 4]]
    /// The `after` of the last request that the host may have believed.
    private var lastAfter: UInt32 = 0

    init(tampersToHost: Bool, tampersToVisitors: Bool, columns: Int) {
        self.tampersToHost = tampersToHost
        self.tampersToVisitors = tampersToVisitors
        self.columns = columns
    }

    func recentMessage(_ mutator: inout Mutator) -> [UInt8] { mutator.pick(recentMessages) }

    var guestIndex: Int? { host.guest.flatMap { guest in visitors.firstIndex { $0.id == guest } } }

    /// Whether no message from or to the guest was tampered with.
    private var isGuestClean: Bool { guestIndex.map { visitors[$0].isClean } ?? true }

    private static let peers: [PeerID] = (1...6).compactMap {
        PeerID(bytes: [UInt8](repeating: $0, count: PeerID.byteCount))
    }

    /// Whether a visitor can stay at the table without its host: every second one.
    private static func canStay(_ id: PeerID) -> Bool { id.bytes[0].isMultiple(of: 2) }

    private static let guestName = Words("Lynx")

    // MARK: Coming and going

    /// Lets somebody come to the table, if there is room.
    mutating func addVisitor(_ request: TableWish) throws {
        let present = Set(visitors.map(\.id))
        guard let id = Self.peers.first(where: { !present.contains($0) }), let name = Self.guestName else {
            return
        }
        if request == .seat, !host.hasFreeSeat { return }
        visitors.append(Visitor(id: id))
        if request == .seat {
            lastAfter = 0
            try handle(host.seat(id, name: name, canStay: Self.canStay(id)), by: .red)
        } else {
            guard let outputs = host.watch(id, stayingAs: Self.canStay(id) ? name : nil) else {
                throw Finding("too many watch: \(visitors.count)")
            }
            try handle(outputs, by: .red)
        }
    }

    mutating func leave(_ index: Int) throws {
        let gone = visitors.remove(at: index)
        try handle(host.remove(gone.id), by: nil)
    }

    // MARK: Actions

    mutating func actAsHost(_ action: FourInARow.Action) throws {
        let before = host.table
        guard before.breach(of: action, by: .red) == nil else { return }
        try handle(host.act(action), by: .red)
        guard case .move(let column) = action else { return }
        guard let game = host.table.game, game.moves == (before.game?.moves ?? []) + [column],
            game.lastCell.flatMap({ game.board[$0] }) == .red
        else { throw Finding("the host's own move was not made") }
    }

    mutating func actAsGuest(_ action: FourInARow.Action) throws {
        guard let index = guestIndex, visitors[index].table.breach(of: action) == nil else { return }
        let outputs = try visitors[index].table.act(action)
        if case .say(let words) = action {
            visitors[index].said.append(words)
        } else {
            visitors[index].requestedAction = action
        }
        try handle(outputs, [], index)
    }

    // MARK: Delivery

    mutating func deliverToHost(from index: Int) throws {
        guard !visitors[index].toHost.isEmpty else { return }
        let bytes = visitors[index].toHost.removeFirst()
        try receiveAtHost(bytes, from: visitors[index].id)
    }

    mutating func receiveAtHost(_ bytes: [UInt8], from peer: PeerID) throws {
        remember(bytes)
        try TableMessageCheck.check(bytes)
        let before = host.table
        let outputs = host.received(bytes, from: peer)
        guard peer == host.guest else {
            guard outputs.isEmpty, host.table == before else { throw Finding("a watcher changed the table") }
            return
        }
        let request = ParsedRequest(bytes)
        if request == nil, case .request? = try? TableMessage(bytes) {
            throw Finding("\(bytes) is read as a request, and is none")
        }
        let isBelieved = request.map { $0.after >= lastAfter && $0.after <= before.happeningCount } ?? false
        try handle(outputs, by: .yellow)
        guard let request, isBelieved else {
            try expectNothingDone(since: before, "on \(bytes)")
            return
        }
        lastAfter = request.after
        if request.kind != 4, request.game != before.game?.number {
            try expectNothingDone(since: before, "for another game")
        }
        try checkClaim(request.claim, since: before.game, host.table.game)
    }

    /// Checks that the host did nothing, or at most broke off the game.
    private func expectNothingDone(since before: Table, _ words: String) throws {
        guard host.table != before else { return }
        guard before.isPlaying, case .brokenOff? = host.table.game?.ending,
            host.table.game?.moves == before.game?.moves
        else { throw Finding("the host did what it must not \(words)") }
    }

    /// Checks that a move that was played made a true claim.
    private func checkClaim(_ claim: UInt8?, since before: Game?, _ now: Game?) throws {
        guard let now, now.number == before?.number, now.moves.count > before?.moves.count ?? 0 else {
            return
        }
        let truth: UInt8 =
            switch now.ending {
            case .line: 1
            case .draw: 2
            default: 0
            }
        if claim != truth { throw Finding("a move was played that claimed \(String(describing: claim))") }
    }

    mutating func deliverToVisitor(_ index: Int) throws {
        guard !visitors[index].fromHost.isEmpty else { return }
        let bytes = visitors[index].fromHost.removeFirst()
        remember(bytes)
        try TableMessageCheck.check(bytes)
        let before = visitors[index].table
        let outputs = visitors[index].table.received(bytes)
        let id = visitors[index].id
        var news: [TableNews] = []
        for case .show(let one) in outputs { news.append(one) }
        let isMove = bytes.count == 10 && bytes.starts(with: [1, 2]) && bytes[6] == 1
        try checkClaim(isMove ? bytes[9] : nil, since: before.table?.game, visitors[index].table.table?.game)
        try handle(outputs, news, index)
        // The visitor may have left.
        guard let index = visitors.firstIndex(where: { $0.id == id }) else { return }
        let visitor = visitors[index]
        guard visitor.isClean, let table = visitor.table.table else { return }
        guard table == history[Int(table.happeningCount)] else {
            throw Finding("a visitor nobody lied to sees another table than the host")
        }
    }

    private mutating func remember(_ bytes: [UInt8]) {
        if recentMessages.count == 32 { recentMessages.removeFirst(8) }
        recentMessages.append(bytes)
    }

    // MARK: Outputs

    /// Takes the outputs of the host's table after an action of `actor`, or after something that happened by itself.
    private mutating func handle(_ outputs: [HostTable.Output], by actor: Disc?) throws {
        var news: [TableNews] = []
        for output in outputs {
            switch output {
            case .show(let one): news.append(one)
            case .send(let bytes, let peers):
                guard Set(peers).count == peers.count else { throw Finding("the host sends bytes twice") }
                for peer in peers {
                    guard let index = visitors.firstIndex(where: { $0.id == peer }) else {
                        throw Finding("the host sends to a visitor that is gone")
                    }
                    visitors[index].fromHost.append(bytes)
                }
            }
        }
        if outputs.count - news.count > 3 { throw Finding("the host sends too much: \(outputs.count)") }
        try checker.check(host.table, news)
        if host.table.happeningCount == UInt32(history.count) { history.append(host.table) }
        guard host.watchers.count == host.table.watcherCount,
            (host.guest == nil) == (host.table.guest == nil),
            host.table == history[Int(host.table.happeningCount)]
        else { throw Finding("the host's table does not show who is there") }
        for one in news { try check(one, by: actor) }
    }

    private mutating func check(_ news: TableNews, by actor: Disc?) throws {
        switch news {
        case .moved(let disc, _), .said(let disc, _), .ended(.line(let disc)), .ended(.resigned(let disc)),
            .began(_, let disc):
            if disc != actor { throw Finding("\(disc) did not do what is reported: \(news)") }
        case .ended(.brokenOff):
            coverage.breaches += 1
            if isGuestClean { throw Finding("a game was broken off between honest players") }
        default: break
        }
        if case .ended(.line) = news { coverage.lines += 1 }
        if case .began(let number, _) = news, number > 1 { coverage.rematches += 1 }
    }

    /// Takes the outputs of a visitor's table.
    private mutating func handle(
        _ outputs: [VisitorTable.Output], _ news: [TableNews], _ index: Int
    ) throws {
        let id = visitors[index].id
        var isLeaving = false
        for output in outputs {
            switch output {
            case .show: break
            case .leave(let breach):
                isLeaving = true
                if visitors[index].isClean { throw Finding("a visitor nobody lied to leaves: \(breach)") }
            case .send(let bytes):
                try TableMessageCheck.check(bytes)
                if bytes[1] == 17 { try recordProtest(by: index) }
                visitors[index].toHost.append(bytes)
            }
        }
        if let table = visitors[index].table.table {
            try visitors[index].checker.check(table, news)
            if visitors[index].table.isSeated { for one in news { try visitors[index].checkOwn(one) } }
        }
        if isLeaving, let index = visitors.firstIndex(where: { $0.id == id }) { try leave(index) }
    }

    private mutating func recordProtest(by index: Int) throws {
        let visitor = visitors[index]
        let game = visitor.table.table?.game?.number
        if visitor.isClean { throw Finding("a visitor nobody lied to protests") }
        if visitor.protested == game { throw Finding("somebody protests twice in a game") }
        visitors[index].protested = game
    }

    // MARK: The end

    /// Delivers everything unchanged.
    mutating func deliverAll() throws {
        var rounds = 0
        while let index = visitors.firstIndex(where: { !$0.toHost.isEmpty || !$0.fromHost.isEmpty }) {
            rounds += 1
            if rounds > 20_000 { throw Finding("the table never comes to rest") }
            if visitors[index].fromHost.isEmpty {
                try deliverToHost(from: index)
            } else {
                try deliverToVisitor(index)
            }
        }
    }

    /// Checks that every visitor without tampered messages has the host's table, once everything has arrived.
    mutating func deliverAllAndCheck() throws {
        try deliverAll()
        for visitor in visitors where visitor.isClean {
            guard visitor.table.table == host.table else {
                throw Finding("a visitor nobody lied to has another table in the end")
            }
            if visitor.table.pending != nil { throw Finding("a guest waits for an answer for ever") }
        }
    }
}

extension TableSimulation.Visitor {
    /// Checks that a guest sees itself do only what it asked for.
    fileprivate mutating func checkOwn(_ news: TableNews) throws {
        switch news {
        case .moved(.yellow, let cell): try expect(.move(cell.column))
        case .ended(.resigned(.yellow)): try expect(.resign)
        case .began(let number, .yellow) where number > 1: try expect(.rematch)
        case .said(.yellow, let words):
            guard let place = said.firstIndex(of: words) else {
                throw Finding("a guest did not say \(words)")
            }
            said.removeSubrange(...place)
        case .guestLeft, .guestJoined: throw Finding("a guest gets news of its own absence: \(news)")
        default: break
        }
    }

    private mutating func expect(_ action: FourInARow.Action) throws {
        guard requestedAction == action else { throw Finding("a guest did not \(action)") }
        requestedAction = nil
    }
}

/// A request, read in the simplest way.
private struct ParsedRequest {
    let after: UInt32
    let game: UInt32
    let kind: UInt8
    /// The claim of a move.
    let claim: UInt8?

    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 11, bytes.starts(with: [1, 16]) else { return nil }
        after = bytes[2..<6].reduce(0) { $0 << 8 | UInt32($1) }
        game = bytes[6..<10].reduce(0) { $0 << 8 | UInt32($1) }
        kind = bytes[10]
        let isRight =
            switch kind {
            case 1: bytes.count == 13 && bytes[11] < 7 && bytes[12] < 3
            case 2, 3: bytes.count == 11
            case 4: bytes.count > 12 && bytes.count == 12 + Int(bytes[11])
            default: false
            }
        guard isRight else { return nil }
        claim = kind == 1 ? bytes[12] : nil
    }
}
