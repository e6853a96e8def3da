import FourInARow
import NighCore

/// The game as lines, for screen readers and pipes: the lines to print for each event, and the requests in typed lines.
/// A value without I/O.
struct PlainDialog {
    /// The response to a typed line.
    struct Reply: Equatable {
        var lines: [String] = []
        var requests: [UserRequest] = []
    }

    private(set) var view: LobbyView
    private var announcedTables: [TableListing] = []
    private var wasMyTurn = false
    /// The last game whose beginning was announced. In a later game, the turn is announced only after its beginning.
    private var announcedGame: UInt32?
    /// Whether the last view was in the lobby. If not, the next view of the lobby lists all tables again.
    private var isInLobby = true
    private var isHosting = false
    private var announcedAddresses: [TransportAddress] = []
    private var code = CodeAnnouncement()

    /// Creates a dialog that has announced nothing yet.
    init(_ view: LobbyView) { self.view = view }

    /// The lines to print first.
    var greeting: [String] {
        [
            "You are \(view.name), with the ID \(view.id.short). Type ? and Enter for the commands."
        ]
    }

    // MARK: Events

    /// Returns the lines for news.
    mutating func lines(for view: LobbyView, _ news: LobbyNews?) -> [String] {
        self.view = view
        var lines: [String] = []
        if view.place.tableView?.table.game == nil { announcedGame = nil }
        switch news {
        case .table(.began(let number, _)): announcedGame = number
        case .table(.resumed), .hostLeft: announcedGame = view.place.tableView?.table.game?.number
        default: break
        }
        if let news { lines += self.lines(for: news) }
        lines += turnLines()
        lines += lobbyLines()
        lines += hostingLines()
        return lines
    }

    private func lines(for news: LobbyNews) -> [String] {
        switch news {
        case .table(.moved(let disc, let cell)): return [moveLine(disc, cell)]
        case .table(.joined):
            guard let tableView = view.place.tableView else { return [] }
            let host = tableView.host?.name ?? "somebody"
            let seat =
                switch tableView.ownDisc {
                case nil: "You watch at the table of \(host)."
                case .red: "You sit at the table of \(host), and play red."
                case .yellow: "You sit at the table of \(host), and play yellow."
                }
            return [seat]
                + (tableView.table.game.map { $0.moves.isEmpty ? [] : PlainBoard.lines(of: $0) } ?? [])
        // Chat lines are printed unchanged.
        case .table(.said): return Sentences.sentence(for: news, in: view).map { [$0] } ?? []
        case .table(.ended):
            let board = view.place.tableView?.table.game.map(PlainBoard.lines) ?? []
            return sentence(news) + board
        case .seatRequested(let request):
            let doubt = request.warning.map { [Self.asSentence($0.sentence)] } ?? []
            return sentence(news) + doubt + ["Accept? y or n"]
        case .table(.seatOffered): return sentence(news) + ["Take the seat? y or n"]
        default: return sentence(news)
        }
    }

    private func sentence(_ news: LobbyNews) -> [String] {
        Sentences.sentence(for: news, in: view).map { [Self.asSentence($0)] } ?? []
    }

    private func moveLine(_ disc: Disc, _ cell: Cell) -> String {
        let column = "column \(cell.column.index + 1), row \(cell.row + 1)"
        guard let tableView = view.place.tableView else { return column }
        if disc == tableView.ownDisc { return "You dropped a disc into \(column)." }
        let name =
            disc == tableView.table.hostDisc ? tableView.host?.name : tableView.table.guest?.description
        return "\(name ?? "Somebody") dropped a disc into \(column)."
    }

    private mutating func turnLines() -> [String] {
        let tableView = view.place.tableView
        let isMyTurn =
            tableView?.ownDisc != nil && tableView?.table.turn == tableView?.ownDisc
            && tableView?.pending == nil && tableView?.table.game?.number == announcedGame
        defer { wasMyTurn = isMyTurn }
        return isMyTurn && !wasMyTurn ? ["It's your turn: 1 to 7."] : []
    }

    private mutating func lobbyLines() -> [String] {
        guard case .lobby = view.place else {
            isInLobby = false
            return []
        }
        let isNew = !isInLobby
        isInLobby = true
        guard isNew || view.tables != announcedTables else { return [] }
        let before = isNew ? [] : announcedTables
        announcedTables = view.tables
        return (isNew ? ["You are in the lobby."] : [])
            + view.tables.enumerated().filter { !before.contains($0.element) }.map(tableLine)
            + before.filter { old in !view.tables.contains { $0.id == old.id } }.map {
                "The table of \($0.name) is gone."
            }
    }

    /// Returns the lines about the local player's own table, with its addresses as they become known.
    private mutating func hostingLines() -> [String] {
        guard case .hosting(let tableView) = view.place else {
            isHosting = false
            announcedAddresses = []
            return []
        }
        // A table that was taken over was announced already.
        let isTakenOver = tableView.table.game != nil
        let opening =
            isHosting || isTakenOver
            ? [] : ["You host a table. Others nearby see it under the name \(view.name)."]
        isHosting = true
        let addresses = view.addressesForOthers.filter { !announcedAddresses.contains($0) }
        announcedAddresses += addresses
        return opening + addresses.map { "From elsewhere it is reached at \($0)" }
    }

    private func tableLine(_ index: Int, _ table: TableListing) -> String {
        let seat =
            table.isFull
            ? "full at the moment" : table.hasFreeSeat ? "a free seat" : "a game to watch"
        let signal = table.quality.map { ", signal \(Int(($0 * 100).rounded())) %" } ?? ""
        return
            "Table \(index + 1): \(table.name), \(seat), over \(table.transports.joined(separator: " or "))\(signal)."
            + (table.warning.map { " \(Self.asSentence($0.sentence))" } ?? "")
    }

    /// Returns the text as a sentence of its own, with a capital letter and a full stop.
    static func asSentence(_ sentence: String) -> String {
        let ends: Set<Character> = [".", "!", "?", "…"]
        let stop = sentence.last.map(ends.contains) ?? true ? "" : "."
        return sentence.prefix(1).uppercased() + sentence.dropFirst() + stop
    }

    // MARK: Codes for guests

    /// Takes a code, which replaces the one before.
    mutating func take(_ code: GuestCode) { self.code.take(code) }

    /// Returns the lines of the code, if it is to be printed now: without anything that could harm a terminal.
    mutating func codeLines(_ style: PrintedCodeStyle?) -> [String] { code.lines(for: view, style) }

    // MARK: Commands

    /// Returns the response to a typed line.
    mutating func reply(to line: String) -> Reply {
        do throws(PlainCommand.ParseError) {
            guard let command = try PlainCommand(line) else { return Reply() }
            return reply(to: command)
        } catch {
            return Reply(lines: [Self.asSentence(error.message)])
        }
    }

    private mutating func reply(to command: PlainCommand) -> Reply {
        switch command {
        case .drop(let column): Reply(requests: [.act(.move(column))])
        case .rematch: Reply(requests: [.act(.rematch)])
        case .resign: Reply(requests: [.act(.resign)])
        case .say(let text): Reply(requests: [.act(.say(text))])
        case .board:
            Reply(lines: view.place.tableView?.table.game.map(PlainBoard.lines) ?? ["There is no board yet."])
        case .tables: Reply(lines: tableLines)
        case .yes where view.place.tableView?.isSeatOffered == true:
            Reply(requests: [.answerOffer(takesSeat: true)])
        case .no where view.place.tableView?.isSeatOffered == true:
            Reply(requests: [.answerOffer(takesSeat: false)])
        case .yes, .no:
            view.seatRequests.first.map { Reply(requests: [.answer($0.id, accept: command == .yes)]) }
                ?? Reply(lines: ["Nobody waits for an answer."])
        case .join(let number): go(to: number, as: .seat)
        case .watch(let number): go(to: number, as: .watch)
        case .host: Reply(requests: [.host])
        case .bot(let level): Reply(requests: [.playBot(level: level)])
        case .code: requestCode()
        case .quit: Reply(requests: [view.place == .lobby ? .quit : .leave])
        case .help: Reply(lines: PlainCommand.overview)
        }
    }

    private mutating func requestCode() -> Reply {
        guard view.isOpenToGuests else { return Reply(lines: [Self.asSentence(Sentences.noCode)]) }
        code.request()
        return Reply(requests: [.newCode])
    }

    private var tableLines: [String] {
        view.tables.isEmpty ? ["No tables are seen so far."] : view.tables.enumerated().map(tableLine)
    }

    private func go(to number: Int, as role: TableRole) -> Reply {
        guard view.tables.indices.contains(number - 1) else {
            return Reply(lines: ["There is no table \(number)."] + tableLines)
        }
        let table = view.tables[number - 1]
        return Reply(lines: ["Asking \(table.name)."], requests: [.join(table.id, role)])
    }
}
