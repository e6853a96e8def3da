import FourInARow
import NighCore
import Terminal

/// Draws the lobby: the tables nearby, notices, and keys.
struct LobbyDrawing {
    let screen: Screen
    let layout: Layout
    let now: Moment

    private var glyphs: Glyphs { screen.glyphs }
    private var view: LobbyView { screen.view }

    func draw(into canvas: inout Canvas) {
        canvas.drawTitle("Four in a Row", screen, layout, hasRule: layout.isRoomy)
        canvas.write(
            "Games near you", column: layout.left, row: layout.listHeadingRow, Palette.heading,
            within: layout.width, glyphs)
        if let chosen = screen.selection.index(in: view.tables) {
            draw(chosen: chosen, into: &canvas)
        } else {
            drawNothing(into: &canvas)
        }
        canvas.write(
            notices: screen.notices.visible(at: now).map(\.text), column: layout.left,
            rows: layout.lobbyNotices,
            columns: layout.width, glyphs)
        if let warning = screen.selection.table(in: view.tables)?.warning {
            canvas.write(
                warning.sentence, column: layout.left, row: layout.lobbyLineRow, Palette.warning,
                within: layout.width, glyphs)
        } else {
            let broken = view.brokenTransports.sorted { $0.key < $1.key }
                .map { Sentences.broken($0.key, $0.value) }
            canvas.write(
                broken.joined(separator: "; "), column: layout.left, row: layout.lobbyLineRow, Palette.quiet,
                within: layout.width, glyphs)
        }
        canvas.write(
            keys: screen.promptKeys ?? keys, column: layout.left, row: layout.footerRow, within: layout.width)
    }

    private var keys: [KeyMeaning] {
        if case .joining = view.place { return [KeyMeaning("Esc", "cancel")] }
        var keys: [KeyMeaning] = []
        if let table = screen.selection.table(in: view.tables) {
            keys.append(KeyMeaning("Enter", table.hasFreeSeat ? "join" : "watch"))
            if table.hasFreeSeat { keys.append(KeyMeaning("w", "watch")) }
        }
        return keys + [
            KeyMeaning("h", "host a game"), KeyMeaning("b", "play the machine"),
            .help, KeyMeaning("q", "quit"),
        ]
    }

    // MARK: Tables

    private func draw(chosen: Int, into canvas: inout Canvas) {
        let first = layout.firstListed(view.tables.count, chosen: chosen)
        for (row, index) in zip(layout.list.rows, view.tables.indices[first...]) {
            draw(view.tables[index], isChosen: index == chosen, row, into: &canvas)
        }
        let hidden = view.tables.count - layout.list.size.rows
        if hidden > 0 {
            canvas.write(
                "\(chosen + 1) of \(view.tables.count)", endingAt: layout.left + layout.width,
                row: layout.listHeadingRow, Palette.quiet, within: 12, glyphs)
        }
    }

    private func draw(_ table: TableListing, isChosen: Bool, _ row: Int, into canvas: inout Canvas) {
        let style = isChosen ? Palette.chosen : .plain
        if isChosen {
            canvas.fill(CellArea(column: layout.left, row: row, columns: layout.width, rows: 1), style)
            canvas.write(String(glyphs.chosen), column: layout.left, row: row, style, within: 1, glyphs)
        }
        let details = TableDetails(columns: layout.width)
        let seat = layout.left + layout.width - details.width
        canvas.write(
            table.name, column: layout.left + 2, row: row, style, within: seat - layout.left - 3, glyphs)
        canvas.write(
            table.isFull ? "full" : table.hasFreeSeat ? "free seat" : "being played", column: seat, row: row,
            style, within: 12, glyphs)
        if let column = details.transports {
            canvas.write(
                table.transports.joined(separator: ", "), column: seat + column, row: row, style, within: 22,
                glyphs)
        }
        if let column = details.quality, let quality = table.quality {
            canvas.write(glyphs.bars(quality), column: seat + column, row: row, style, within: 4, glyphs)
        }
        if table.warning != nil {
            canvas.write("!", column: seat + details.warning, row: row, style, within: 1, glyphs)
        }
        if let column = details.id {
            canvas.write(table.knownID.short, column: seat + column, row: row, style, within: 8, glyphs)
        }
    }

    private func drawNothing(into canvas: inout Canvas) {
        let over = screen.transports.isEmpty ? "" : " over " + screen.transports.joined(separator: " and ")
        let sentences = [
            "Looking for games\(over)\(glyphs.dots)",
            "Nobody nearby has a table with a free seat, or one to watch. Press h to host a game: others who "
                + "run this program will see it and can join. Or press b to play the machine.",
        ]
        let paragraphs = sentences.map { CellText($0).lines(of: min(layout.width - 2, 72)) }
        let lines = Array(paragraphs.joined(separator: layout.isRoomy ? [CellText("")] : []))
        for (row, line) in zip(layout.list.rows, lines) {
            canvas.write(line, at: CellPosition(column: layout.left + 2, row: row))
        }
    }
}

/// The details that a row of the lobby shows beside the name of a table, each with its first column. A narrow terminal
/// leaves out the ID first, then the transports, then the signal.
private struct TableDetails {
    let width: Int
    let warning: Int
    var transports: Int?
    var quality: Int?
    var id: Int?

    /// The seat comes first, and takes 12 columns.
    init(columns: Int) {
        switch columns {
        case 72...: (width, warning, transports, quality, id) = (52, 42, 14, 37, 43)
        case 60...: (width, warning, transports, quality) = (43, 42, 14, 37)
        case 38...: (width, warning, quality) = (19, 18, 13)
        default: (width, warning) = (14, 13)
        }
    }
}

extension Canvas {
    /// Draws the first row, with the title and the local player's name and ID. If both do not fit, each gets half of
    /// the row at least. A row too short for the name beside the ID shows no ID.
    mutating func drawTitle(_ title: String, _ screen: Screen, _ layout: Layout, hasRule: Bool) {
        let glyphs = screen.glyphs
        let id = screen.view.id.short
        let gap = 2
        let (name, wanted) = (CellText(screen.view.name), CellText(title).columns)
        let most = max(layout.width / 2 - gap, layout.width - wanted - gap)
        let idColumns = most >= id.count * 2 ? id.count + 1 : 0
        let room = min(name.columns, most - idColumns)
        write(
            title, column: layout.left, row: layout.top, Palette.heading,
            within: layout.width - room - idColumns - gap, glyphs)
        let end = layout.left + layout.width
        if idColumns > 0 {
            write(id, endingAt: end, row: layout.top, Palette.quiet, within: id.count, glyphs)
        }
        write(screen.view.name, endingAt: end - idColumns, row: layout.top, within: room, glyphs)
        if hasRule { drawTitleRule(screen, layout) }
    }

    /// Draws the line below the first row.
    mutating func drawTitleRule(_ screen: Screen, _ layout: Layout) {
        fill(
            CellArea(
                column: layout.frame.origin.column, row: layout.top + 1,
                columns: layout.frame.size.columns, rows: 1),
            with: screen.glyphs.across, Palette.quiet)
    }
}
