import FourInARow
import NighCore

/// Follows one side's table from call to call, and finds changes that no honest table makes.
struct TableChecker {
    let name: String
    private(set) var table: Table?
    private var reportedEnding: UInt32?
    private var reportedBeginning: UInt32?

    init(_ name: String) { self.name = name }

    /// Starts over with `table`. What was reported before no longer counts.
    mutating func reset(_ table: Table?) {
        self = TableChecker(name)
        self.table = table
    }

    /// Checks `next`, the table after a call that reported `news`.
    mutating func check(_ next: Table, _ news: [TableNews]) throws {
        defer { table = next }
        try checkNews(news, next)
        if let game = next.game { try Self.check(game, name) }
        guard let before = table else { return }
        guard next.happeningCount &- before.happeningCount <= 1 else {
            throw Finding("\(name) counts \(next.happeningCount) after \(before.happeningCount)")
        }
        guard next != before else { return }
        guard next.happeningCount != before.happeningCount else { throw Finding("\(name) changed uncounted") }
        guard let old = before.game else { return }
        guard let new = next.game else { throw Finding("\(name) has lost a game") }
        if new.number == old.number {
            try checkCourse(from: old, to: new, news)
        } else {
            guard new.number == old.number &+ 1, old.ending != nil, new.moves.isEmpty, new.ending == nil
            else { throw Finding("\(name) has game \(new) after \(old)") }
        }
    }

    private func checkCourse(from old: Game, to new: Game, _ news: [TableNews]) throws {
        if old.ending != nil, old != new { throw Finding("\(name) changed a game that had ended") }
        guard new.starter == old.starter, new.moves.starts(with: old.moves),
            new.moves.count - old.moves.count <= 1
        else { throw Finding("\(name) undid a move") }
        let endings = news.count { if case .ended = $0 { true } else { false } }
        let due = old.ending == nil && new.ending != nil ? 1 : 0
        if endings != due { throw Finding("\(name) reported \(endings) endings, expected \(due)") }
    }

    private mutating func checkNews(_ news: [TableNews], _ next: Table) throws {
        for one in news {
            switch one {
            case .ended(let ending):
                guard let game = next.game, game.ending == ending, reportedEnding != game.number else {
                    throw Finding("\(name) reported \(ending) twice, or without a game")
                }
                reportedEnding = game.number
            case .began(let number, let starter):
                guard let game = next.game, game.number == number, game.starter == starter,
                    reportedBeginning != number
                else { throw Finding("\(name) reported a beginning twice, or without a game") }
                reportedBeginning = number
            case .moved(let disc, let cell):
                guard next.game?.board[cell] == disc else {
                    throw Finding("\(name) reported a move that is not on the board")
                }
            case .joined, .said, .guestJoined, .guestLeft, .watched, .resumed, .seatOffered: break
            }
        }
    }

    /// Checks that legal moves, with the colors in turn and none after a line, lead to this game.
    static func check(_ game: Game, _ name: String) throws {
        var board = Board()
        var disc = game.starter
        var count = (red: 0, yellow: 0)
        for column in game.moves {
            guard board.winner == nil, board.drop(disc, in: column) != nil else {
                throw Finding("\(name) has moves that cannot be: \(game.moves)")
            }
            if disc == .red { count.red += 1 } else { count.yellow += 1 }
            disc = disc.other
        }
        guard board == game.board, abs(count.red - count.yellow) <= 1 else {
            throw Finding("\(name) has a board that its moves do not lead to: \(game.moves)")
        }
        switch game.ending {
        case .line(let winner): if board.winner == winner { return }
        case .draw: if board.winner == nil, board.isFull { return }
        case nil: if board.winner == nil, !board.isFull, game.turn == disc { return }
        case .resigned, .left, .brokenOff: if board.winner == nil, !board.isFull { return }
        }
        throw Finding("\(name) has \(String(describing: game.ending)) after \(game.moves)")
    }
}
