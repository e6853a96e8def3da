import FourInARow
import NighCore
import Terminal

/// Draws the current table: the board, its next step, and the chat.
struct TableDrawing {
    let screen: Screen
    let tableView: TableView
    let layout: Layout
    let now: Moment

    private var glyphs: Glyphs { screen.glyphs }
    private var table: Table { tableView.table }
    private var names: PlayerNames { PlayerNames(screen.view, tableView) }

    func draw(into canvas: inout Canvas) {
        drawBoard(into: &canvas)
        if let panel = layout.panel {
            if layout.hasTitle { canvas.drawTitle(title, screen, layout, hasRule: layout.hasTitleRule) }
            self.panel(panel).draw(into: &canvas)
        } else {
            drawPlayers(into: &canvas)
        }
        let headline = headline
        let lines = CellText(headline.text).lines(of: layout.textColumns).prefix(layout.mostHeadlines)
        for (row, line) in zip(layout.headlineRow..., lines) {
            canvas.write(line, at: CellPosition(column: layout.left, row: row), headline.style)
        }
        let lineIsFree = drawLineAndKeys(into: &canvas)
        let firstNotice = layout.headlineRow + lines.count
        let usual = layout.lendsLineRow && lineIsFree ? layout.lineRow + 1 : layout.lineRow
        let end = min(layout.code?.end ?? usual, usual)
        canvas.write(
            notices: notices, column: layout.left, rows: min(firstNotice, end)..<end,
            columns: layout.textColumns, glyphs)
        if let code = screen.shownCode { drawCode(code, into: &canvas) }
    }

    /// Draws the code for guests, with its address and warning.
    private func drawCode(_ code: GuestCode, into canvas: inout Canvas) {
        guard let place = layout.code else { return }
        if let picture = place.picture {
            // It may cover a part of the line below the title.
            let end = layout.frame.columns.upperBound
            canvas.fill(
                CellArea(
                    column: picture.columns.upperBound, row: picture.origin.row,
                    columns: end - picture.columns.upperBound, rows: 1))
            for (row, line) in zip(picture.rows, code.picture) {
                canvas.write(
                    line, at: CellPosition(column: picture.origin.column, row: row), Palette.code)
            }
        }
        for (row, line) in zip(place.text.row..., place.lines) {
            canvas.write(
                line.text, at: CellPosition(column: place.text.column, row: row),
                line.isWarning ? Palette.warning : .bold)
        }
    }

    /// Draws the input line and the keys, and returns whether the row of the input line is free. If both share one row,
    /// the input line comes first, then the keys of a question, then notices.
    private func drawLineAndKeys(into canvas: inout Canvas) -> Bool {
        let isOneRow = layout.lineRow == layout.footerRow
        if case .chat(let line) = screen.prompt {
            let label = "Say: "
            canvas.write(label, column: layout.left, row: layout.lineRow, .bold, within: 5, glyphs)
            line.draw(
                into: &canvas, at: CellPosition(column: layout.left + label.count, row: layout.lineRow),
                columns: layout.width - label.count)
            if isOneRow { return false }
        } else if isOneRow, screen.promptKeys == nil, !notices.isEmpty {
            return true
        }
        canvas.write(
            keys: screen.promptKeys ?? keys, column: layout.left, row: layout.footerRow, within: layout.width)
        if isOneRow { return false }
        if case .chat = screen.prompt { return false }
        return true
    }

    /// The latest notices, with the lines of the chat unless they stand beside the board. The newest comes last.
    private var notices: [String] {
        let happened = screen.notices.visible(at: now).map { ($0.start, $0.text) }
        guard layout.panel == nil else { return happened.map(\.1) }
        let said = screen.chat.lines.map { ($0.moment, "\($0.speaker): \($0.text)") }
        return (happened + said).sorted { $0.0 < $1.0 }.map(\.1)
    }

    private func panel(_ area: CellArea) -> PanelDrawing {
        PanelDrawing(screen: screen, tableView: tableView, names: names, area: area)
    }

    /// Draws the players in place of the title, on a terminal without room for them beside the board.
    private func drawPlayers(into canvas: inout Canvas) {
        guard layout.hasTitle else { return }
        let half = layout.width / 2
        for (disc, column) in zip(Disc.allCases, [layout.left, layout.left + half + 1]) {
            panel(CellArea(column: column, row: layout.top, columns: half - 1, rows: 1)).drawPlayer(
                disc, layout.top, into: &canvas)
        }
        if layout.hasTitleRule { canvas.drawTitleRule(screen, layout) }
    }

    private var title: String {
        let whose = tableView.isHost ? "your table" : "table of \(names.host)"
        let game = table.game.map { " \(glyphs.separator) game \($0.number)" } ?? ""
        return "Four in a Row\(game) \(glyphs.separator) \(whose)"
    }

    // MARK: Board

    private func drawBoard(into canvas: inout Canvas) {
        let drawing = BoardDrawing(layout: layout.board, glyphs: glyphs)
        let hasCursor = screen.isPlayingHere
        drawing.drawGrid(into: &canvas)
        drawing.drawLabels(chosen: hasCursor ? screen.column : nil, into: &canvas)
        if hasCursor { drawing.drawCursor(screen.column, isOwnTurn ? tableView.ownDisc : nil, into: &canvas) }
        guard let game = table.game else { return }
        let falling = screen.falling.flatMap { disc in disc.row(at: now).map { (disc, $0) } }
        let winning = falling == nil ? Set(game.board.winningCells) : []
        for cell in Cell.allCases where cell != falling?.0.cell {
            guard let disc = game.board[cell] else { continue }
            let mark: BoardDrawing.Mark =
                winning.contains(cell) ? .winning : cell == game.lastCell ? .last : .none
            drawing.draw(disc, cell.column, cell.row, mark, into: &canvas)
        }
        if let (disc, row) = falling {
            drawing.draw(disc.disc, disc.cell.column, row, .none, into: &canvas)
        }
        if case .move(let column) = tableView.pending, let own = tableView.ownDisc,
            game.board.hasRoom(in: column)
        {
            drawing.drawPending(own, column, game.board.height(of: column), into: &canvas)
        }
    }

    /// Whether the game waits for the local player.
    private var isOwnTurn: Bool {
        tableView.pending == nil && tableView.ownDisc != nil && table.turn == tableView.ownDisc
    }

    // MARK: Headline

    private var headline: (text: String, style: Style) {
        if let other = tableView.other, other.linkLostAt != nil {
            let seconds = screen.secondsLeft(now: now).map { $0 > 0 ? " \($0) s" : "" } ?? ""
            return (
                "No connection to \(other.name): waiting\(seconds) for them to come back", Palette.warning
            )
        }
        guard table.guest != nil else { return (waiting, .bold) }
        switch tableView.pending {
        case .move: return ("Your disc is on its way to \(names.host)\(glyphs.dots)", Palette.quiet)
        case .rematch: return ("Asking \(names.host) for another game\(glyphs.dots)", Palette.quiet)
        case .resign: return ("Giving up\(glyphs.dots)", Palette.quiet)
        case .say, nil: break
        }
        guard let game = table.game else { return ("", .plain) }
        if let ending = game.ending {
            let sentence = TableSentences(screen.view, tableView).text(for: ending)
            return (sentence, game.winner.map(Palette.name) ?? .bold)
        }
        guard let turn = game.turn else { return ("", .plain) }
        return turn == tableView.ownDisc
            ? ("It's your turn", Palette.name(turn)) : ("It's \(names[turn])'s turn", .plain)
    }

    private var waiting: String {
        tableView.isHost
            ? "Waiting for somebody to play\(glyphs.dots)"
            : "Waiting for somebody to sit down at the table of \(names.host)\(glyphs.dots)"
    }

    // MARK: Keys

    private var keys: [KeyMeaning] {
        let code = KeyMeaning("p", screen.shownCode == nil ? "show the code" : "hide the code")
        let always = [KeyMeaning.help, KeyMeaning("q", "leave")] + (screen.hasCode ? [code] : [])
        guard tableView.ownDisc != nil, table.guest != nil else { return always }
        if table.isPlaying {
            return [
                KeyMeaning("arrows or 1-7", "choose"), KeyMeaning("Enter", "drop"), KeyMeaning("c", "chat"),
                KeyMeaning("x", "resign"),
            ] + always
        }
        return [KeyMeaning("r", "play again"), KeyMeaning("c", "chat")] + always
    }
}
