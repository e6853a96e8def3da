import FourInARow
import NighCore

/// A game of Four in a Row: a host, a guest and watchers, with the messages on their way between them. On some of the
/// routes, messages are changed, repeated, dropped and made up. What each side may believe is computed here
/// independently, from the bytes and the protocol's page.
struct TableTarget {
    /// Somebody at the table other than the host.
    fileprivate struct Visitor {
        let id: PeerID
        var table = VisitorTable()
        var checker = TableChecker(name: "a visitor")
        var fromHost: [[UInt8]] = []
        var toHost: [[UInt8]] = []
        /// Whether no message on the way from or to it was tampered with.
        var isClean = true
        /// The last action that it asked for. Nobody else may make it do anything.
        var requested: FourInARow.Action?
        /// The words that it said, and has not yet seen reported.
        var said: [SafeText] = []
        /// The game in which it protested.
        var protested: UInt32?
    }

    /// Enough for a whole game, its watchers and a hundred waiting remarks, with room to spare.
    private static let valueLimit = 3_000
    private static let peers = (1...6).compactMap { PeerID(bytes: [UInt8](repeating: $0, count: 32)) }
    private static let words = ["hello", "ça va?", "👩‍👩‍👧‍👦"].compactMap { SafeText($0) }

    private var host = HostTable()
    private var checker = TableChecker(name: "the host")
    private var visitors: [Visitor] = []
    /// The host's table at each `eventCount`.
    private var history = [HostTable().table]
    /// The `after` of the last request that the host may have believed.
    private var lastAfter: UInt32 = 0

    private var guestIndex: Int? { visitors.firstIndex { $0.id == host.guest } }

    static func run(_ input: inout Input) throws {
        var target = TableTarget()
        try target.arrive(isSeated: true)
        while !input.isAtEnd { try target.step(&input) }
        try target.deliverAll()
        for visitor in target.visitors where visitor.isClean {
            try expect(
                visitor.table.table == target.host.table, "an honest visitor has another table in the end")
            try expect(visitor.table.pending == nil, "a guest waits for an answer for ever")
        }
        let held = ([target.host] + target.visitors.map(\.table)).map(count).max() ?? 0
        try expect(held <= valueLimit, "a table holds \(held) values")
    }

    /// Counts the plain values that a value consists of, including all that it holds.
    private static func count(_ value: Any) -> Int {
        if let text = value as? String { return 1 + text.utf8.count / 8 }
        return Mirror(reflecting: value).children.reduce(1) { $0 + count($1.value) }
    }

    private mutating func step(_ input: inout Input) throws {
        let index = visitors.isEmpty ? nil : input.number(below: visitors.count)
        switch input.number(below: 12) {
        case 0, 1:
            // Without this, hardly any game would end.
            try deliverAll()
            try actAsHost(action(&input))
            try deliverAll()
            try actAsGuest(action(&input))
        case 2: try actAsHost(action(&input))
        case 3: try actAsGuest(action(&input))
        case 4: if let index { try deliverToHost(from: index) }
        case 5: if let index { try deliverToVisitor(index) }
        case 6: if let index { tamper(\.toHost, index, &input) }
        case 7: if let index { tamper(\.fromHost, index, &input) }
        case 8: if let index { insert(request(&input), \.toHost, index, copies: input.pick([1, 1, 100])) }
        case 9:
            guard let index else { return }
            insert(hostMessage(for: index, &input), \.fromHost, index, copies: input.pick([1, 1, 100]))
        case 10: try arrive(isSeated: input.isUsual())
        default: if let index { try handle(host.remove(visitors.remove(at: index).id), by: nil) }
        }
    }

    private func action(_ input: inout Input) -> FourInARow.Action {
        switch input.number(below: 12) {
        case 0: .rematch
        case 1: .resign
        case 2: .say(input.pick(Self.words))
        default: .move(input.pick(Column.allCases))
        }
    }

    /// Lets somebody come to the table, if there is room.
    private mutating func arrive(isSeated: Bool) throws {
        let present = Set(visitors.map(\.id))
        guard let id = Self.peers.first(where: { !present.contains($0) }) else { return }
        if isSeated, !host.hasFreeSeat { return }
        visitors.append(Visitor(id: id))
        let canStay = id.bytes[0].isMultiple(of: 2)
        if isSeated {
            lastAfter = 0
            try handle(host.seat(id, name: Self.words[0], canStay: canStay), by: .red)
        } else {
            let outputs = host.watch(id, stayingAs: canStay ? Self.words[0] : nil)
            try expect(outputs != nil, "too many watch: \(visitors.count)")
            try handle(outputs ?? [], by: .red)
        }
    }

    private mutating func actAsHost(_ action: FourInARow.Action) throws {
        let before = host.table
        guard before.breach(of: action, by: .red) == nil else { return }
        try handle(host.act(action), by: .red)
        guard case .move(let column) = action else { return }
        let game = host.table.game
        let isMade =
            game?.moves == (before.game?.moves ?? []) + [column]
            && game?.lastCell.flatMap { game?.board[$0] } == .red
        try expect(isMade, "the host's own move was not made")
    }

    private mutating func actAsGuest(_ action: FourInARow.Action) throws {
        guard let index = guestIndex, visitors[index].table.breach(of: action) == nil else { return }
        let outputs = try visitors[index].table.act(action)
        if case .say(let words) = action {
            visitors[index].said.append(words)
        } else {
            visitors[index].requested = action
        }
        try handle(outputs, of: index)
    }

    // MARK: Tampering

    private typealias Route = WritableKeyPath<Visitor, [[UInt8]]>

    private mutating func tamper(_ route: Route, _ index: Int, _ input: inout Input) {
        guard var message = visitors[index][keyPath: route].first else { return }
        visitors[index].isClean = false
        let other = input.pick(visitors)
        switch input.number(below: 4) {
        case 0: visitors[index][keyPath: route].removeFirst()
        case 1: visitors[index][keyPath: route].append(message)
        case 2: message = (input.isUsual() ? other.toHost : other.fromHost).first ?? message
        default: message = input.edited(message)
        }
        if !visitors[index][keyPath: route].isEmpty { visitors[index][keyPath: route][0] = message }
    }

    private mutating func insert(_ bytes: [UInt8], _ route: Route, _ index: Int, copies: Int) {
        visitors[index].isClean = false
        visitors[index][keyPath: route].insert(contentsOf: Array(repeating: bytes, count: copies), at: 0)
    }

    /// A number near `value`.
    private static func near(_ value: UInt32, _ input: inout Input) -> [UInt8] {
        let number = value &+ UInt32(truncatingIfNeeded: input.pick([0, 0, 0, -1, 1, -3]))
        return withUnsafeBytes(of: number.bigEndian, Array.init)
    }

    /// A request that a guest could have sent, or nearly.
    private func request(_ input: inout Input) -> [UInt8] {
        let head =
            Self.near(host.table.eventCount, &input) + Self.near(host.table.game?.number ?? 0, &input)
        return [1, 16] + head + input.content()
    }

    /// A message that a host could have sent next, or nearly.
    private func hostMessage(for index: Int, _ input: inout Input) -> [UInt8] {
        let count = visitors[index].table.table?.eventCount ?? 0
        return [1, 2 - UInt8(input.number(below: 2))] + Self.near(count &+ 1, &input) + input.content()
    }

    // MARK: Delivery

    private mutating func deliverAll() throws {
        var rounds = 0
        while let index = visitors.firstIndex(where: { !$0.toHost.isEmpty || !$0.fromHost.isEmpty }) {
            rounds += 1
            try expect(rounds <= 20_000, "the table never comes to rest")
            if visitors[index].fromHost.isEmpty {
                try deliverToHost(from: index)
            } else {
                try deliverToVisitor(index)
            }
        }
    }

    private mutating func deliverToHost(from index: Int) throws {
        guard !visitors[index].toHost.isEmpty else { return }
        let bytes = visitors[index].toHost.removeFirst()
        try Self.checkMessage(bytes)
        let before = host.table
        let outputs = host.received(bytes, from: visitors[index].id)
        guard index == guestIndex else {
            return try expect(outputs.isEmpty && host.table == before, "a watcher changed the table")
        }
        try handle(outputs, by: .yellow)
        let isRequest = if case .request? = try? TableMessage(bytes) { true } else { false }
        let request = Request(bytes)
        try expect(!isRequest || request != nil, "\(bytes) is read as a request, and is none")
        // The host does nothing, or at most breaks off the game.
        let isBrokenOff = if case .brokenOff? = host.table.game?.ending { before.isPlaying } else { false }
        let hasDoneNothing =
            host.table == before || isBrokenOff && host.table.game?.moves == before.game?.moves
        guard let request, request.after >= lastAfter, request.after <= before.eventCount else {
            return try expect(hasDoneNothing, "the host did what it must not on \(bytes)")
        }
        lastAfter = request.after
        let isMeant = request.kind == 4 || request.game == before.game?.number
        try expect(isMeant || hasDoneNothing, "the host did what it must not for another game")
        try Self.checkClaim(request.claim, since: before.game, host.table.game)
    }

    private mutating func deliverToVisitor(_ index: Int) throws {
        guard !visitors[index].fromHost.isEmpty else { return }
        let bytes = visitors[index].fromHost.removeFirst()
        try Self.checkMessage(bytes)
        let before = visitors[index].table.table?.game
        let outputs = visitors[index].table.received(bytes)
        let isMove = bytes.count == 10 && bytes.starts(with: [1, 2]) && bytes[6] == 1
        try Self.checkClaim(isMove ? bytes[9] : nil, since: before, visitors[index].table.table?.game)
        let id = visitors[index].id
        try handle(outputs, of: index)
        // The visitor may have left.
        let visitor = visitors.first { $0.id == id }
        guard let visitor, visitor.isClean, let table = visitor.table.table else { return }
        try expect(
            table == history[Int(table.eventCount)], "an honest visitor sees another table than the host")
    }

    /// Checks that a move that was played made a true claim.
    private static func checkClaim(_ claim: UInt8?, since before: Game?, _ now: Game?) throws {
        guard let now, now.number == before?.number, now.moves.count > before?.moves.count ?? 0 else {
            return
        }
        let truth: UInt8 =
            switch now.ending {
            case .line: 1
            case .draw: 2
            default: 0
            }
        try expect(claim == truth, "a move was played that claimed \(String(describing: claim))")
    }

    /// Checks that a readable message has the same bytes when it is written again, and that they mean the same message.
    private static func checkMessage(_ bytes: [UInt8]) throws {
        guard let message = try? TableMessage(bytes) else { return }
        try expect(
            message.bytes == bytes, "\(bytes) is read as \(message), which is written \(message.bytes)")
        try expect((try? TableMessage(message.bytes)) == message, "\(bytes) is not read as it was written")
    }

    /// A request, read in the simplest way.
    private struct Request {
        let after: UInt32
        let game: UInt32
        let kind: UInt8
        /// The claim of a move.
        let claim: UInt8?

        init?(_ bytes: [UInt8]) {
            guard bytes.count >= 11, bytes.starts(with: [1, 16]) else { return nil }
            var fields = Input(Array(bytes.dropFirst(2)))
            (after, game, kind) = (fields.number(), fields.number(), fields.byte())
            let rest = bytes.dropFirst(11)
            let isRight =
                switch kind {
                case 1: rest.count == 2 && bytes[11] < 7 && bytes[12] < 3
                case 2, 3: rest.isEmpty
                case 4: rest.count > 1 && rest.count == 1 + Int(bytes[11])
                default: false
                }
            guard isRight else { return nil }
            claim = kind == 1 ? bytes[12] : nil
        }
    }

    // MARK: Outputs

    /// Takes the outputs of the host's table after an action of `actor`, or after something that happened by itself.
    private mutating func handle(_ outputs: [HostTable.Output], by actor: Disc?) throws {
        var news: [TableNews] = []
        for output in outputs {
            switch output {
            case .show(let one): news.append(one)
            case .send(let bytes, let peers):
                try expect(Set(peers).count == peers.count, "the host sends bytes twice")
                for peer in peers {
                    guard let index = visitors.firstIndex(where: { $0.id == peer }) else {
                        throw Finding(description: "the host sends to a visitor that is gone")
                    }
                    visitors[index].fromHost.append(bytes)
                }
            }
        }
        try expect(outputs.count - news.count <= 3, "the host sends too much: \(outputs.count)")
        try checker.check(host.table, news)
        if host.table.eventCount == UInt32(history.count) { history.append(host.table) }
        let isShown =
            host.watchers.count == host.table.watcherCount && (host.guest == nil) == (host.table.guest == nil)
            && host.table == history[Int(host.table.eventCount)]
        try expect(isShown, "the host's table does not show who is there")
        for one in news {
            switch one {
            case .moved(let disc, _), .said(let disc, _), .ended(.line(let disc)),
                .ended(.resigned(let disc)),
                .began(_, let disc):
                try expect(disc == actor, "\(disc) did not do what is reported: \(one)")
            case .ended(.brokenOff):
                let isClean = guestIndex.map { visitors[$0].isClean } ?? true
                try expect(!isClean, "a game was broken off between honest players")
            default: break
            }
        }
    }

    /// Takes the outputs of a visitor's table.
    private mutating func handle(_ outputs: [VisitorTable.Output], of index: Int) throws {
        var isLeaving = false
        var news: [TableNews] = []
        for output in outputs {
            switch output {
            case .show(let one): news.append(one)
            case .leave(let breach):
                isLeaving = true
                try expect(!visitors[index].isClean, "a visitor nobody lied to leaves: \(breach)")
            case .send(let bytes):
                try Self.checkMessage(bytes)
                if bytes[1] == 17 {
                    let game = visitors[index].table.table?.game?.number
                    try expect(!visitors[index].isClean, "a visitor nobody lied to protests")
                    try expect(visitors[index].protested != game, "somebody protests twice in a game")
                    visitors[index].protested = game
                }
                visitors[index].toHost.append(bytes)
            }
        }
        if let table = visitors[index].table.table {
            try visitors[index].checker.check(table, news)
            if visitors[index].table.isSeated { for one in news { try visitors[index].checkOwn(one) } }
        }
        if isLeaving { try handle(host.remove(visitors.remove(at: index).id), by: nil) }
    }
}

extension TableTarget.Visitor {
    /// Checks that a guest sees itself do only what it asked for.
    fileprivate mutating func checkOwn(_ news: TableNews) throws {
        switch news {
        case .moved(.yellow, let cell): try expectRequest(.move(cell.column))
        case .ended(.resigned(.yellow)): try expectRequest(.resign)
        case .began(let number, .yellow) where number > 1: try expectRequest(.rematch)
        case .said(.yellow, let words):
            let place = said.firstIndex(of: words)
            try expect(place != nil, "a guest did not say \(words)")
            said.removeSubrange(...(place ?? 0))
        case .guestLeft, .guestJoined:
            throw Finding(description: "a guest gets news of its own absence: \(news)")
        default: break
        }
    }

    private mutating func expectRequest(_ action: FourInARow.Action) throws {
        try expect(requested == action, "a guest did not \(action)")
        requested = nil
    }
}

/// Follows one side's table from call to call, and finds changes that no honest table makes.
private struct TableChecker {
    let name: String
    private var table: Table?
    private var reportedEnding: UInt32?
    private var reportedBeginning: UInt32?

    init(name: String) { self.name = name }

    /// Checks `next`, the table after a call that reported `news`.
    mutating func check(_ next: Table, _ news: [TableNews]) throws {
        defer { table = next }
        for one in news { try check(one, next.game) }
        if let game = next.game { try check(game) }
        guard let before = table, next != before else { return }
        try expect(next.eventCount &- before.eventCount == 1, "\(name) does not count by one")
        guard let old = before.game else { return }
        guard let new = next.game, new.number == old.number else {
            let isNext =
                next.game.map {
                    $0.number == old.number &+ 1 && old.ending != nil && $0.moves.isEmpty && $0.ending == nil
                } ?? false
            return try expect(isNext, "\(name) has another game after \(old)")
        }
        try expect(old.ending == nil || old == new, "\(name) changed a game that had ended")
        let isOneOn = new.moves.starts(with: old.moves) && new.moves.count - old.moves.count <= 1
        try expect(new.starter == old.starter && isOneOn, "\(name) undid a move")
        let endings = news.count { if case .ended = $0 { true } else { false } }
        try expect(
            endings == (old.ending == nil && new.ending != nil ? 1 : 0), "\(name) reported \(endings) endings"
        )
    }

    private mutating func check(_ news: TableNews, _ game: Game?) throws {
        switch news {
        case .ended(let ending):
            let isNew = game != nil && game?.ending == ending && reportedEnding != game?.number
            try expect(isNew, "\(name) reported \(ending) twice, or without a game")
            reportedEnding = game?.number
        case .began(let number, let starter):
            let isNew = game?.number == number && game?.starter == starter && reportedBeginning != number
            try expect(isNew, "\(name) reported a beginning twice, or without a game")
            reportedBeginning = number
        case .moved(let disc, let cell):
            try expect(game?.board[cell] == disc, "\(name) reported a move that is not on the board")
        case .joined, .said, .guestJoined, .guestLeft, .watched, .resumed, .seatOffered: break
        }
    }

    /// Checks that legal moves, with the colors in turn and none after a line, lead to this game.
    private func check(_ game: Game) throws {
        var board = Board()
        var disc = game.starter
        for column in game.moves {
            let isLegal = board.winner == nil && board.drop(disc, in: column) != nil
            try expect(isLegal, "\(name) has moves that cannot be: \(game.moves)")
            disc = disc.other
        }
        try expect(board == game.board, "\(name) has a board that its moves do not lead to: \(game.moves)")
        let isOver = board.winner != nil || board.isFull
        let isRight =
            switch game.ending {
            case .line(let winner): board.winner == winner
            case .draw: board.winner == nil && board.isFull
            case nil: !isOver && game.turn == disc
            case .resigned, .left, .brokenOff: !isOver
            }
        try expect(isRight, "\(name) has \(String(describing: game.ending)) after \(game.moves)")
    }
}
