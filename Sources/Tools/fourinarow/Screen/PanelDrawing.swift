import FourInARow
import NighCore
import Terminal

/// Draws the panel beside the board: the players with their transports, the watchers, and the chat.
struct PanelDrawing {
    let screen: Screen
    let tableView: TableView
    let names: PlayerNames
    let area: CellArea

    private var glyphs: Glyphs { screen.glyphs }

    func draw(into canvas: inout Canvas) {
        var row = area.origin.row
        for disc in Disc.allCases {
            drawPlayer(disc, row, into: &canvas)
            row += 1
        }
        row += 1
        for line in [link, watchers].compactMap({ $0 }) {
            write(line, row, Palette.quiet, into: &canvas)
            row += 1
        }
        if row > area.origin.row + 3 { row += 1 }
        let rest = CellArea(
            column: area.origin.column, row: row, columns: area.size.columns,
            rows: area.rows.upperBound - row)
        guard rest.size.rows > 0 else { return }
        if case .hosting = screen.view.place, tableView.table.guest == nil {
            drawAddresses(in: rest, into: &canvas)
        } else {
            drawChat(in: rest, into: &canvas)
        }
    }

    private func write(_ text: String, _ row: Int, _ style: Style = .plain, into canvas: inout Canvas) {
        guard area.rows.contains(row) else { return }
        canvas.write(
            text, column: area.origin.column, row: row, style, within: area.size.columns, glyphs)
    }

    // MARK: Players

    /// Draws a player in a row, with the ID if there is room for it beside the name.
    func drawPlayer(_ disc: Disc, _ row: Int, into canvas: inout Canvas) {
        canvas.write(
            String(glyphs.disc(disc)), at: CellPosition(column: area.origin.column, row: row),
            Palette.name(disc))
        var addition = ""
        if disc == tableView.ownDisc { addition = " (you)" }
        let isTaken = names.isTaken(disc)
        var style = Palette.quiet
        if let person = person(disc), isTaken {
            if person.isGuest {
                addition = Self.mark(within: area.size.columns)
                style = Palette.warning
            } else if area.size.columns >= 24 {
                addition = " " + person.id.short
            }
        }
        let room = area.size.columns - 2 - addition.count
        let taken = canvas.write(
            isTaken ? names[disc] : "free seat", column: area.origin.column + 2, row: row,
            isTaken ? .bold : Palette.quiet, within: room, glyphs)
        canvas.write(
            addition, column: area.origin.column + 2 + taken, row: row, style,
            within: addition.count, glyphs)
    }

    /// Returns the mark of a guest, after the name.
    private static func mark(within columns: Int) -> String {
        switch columns {
        case 36...: ", \(Sentences.guestMark)"
        case 20...: ", guest"
        default: "!"
        }
    }

    /// Returns the player of this colour, if there is a link to them.
    private func person(_ disc: Disc) -> Person? { disc == names.hostDisc ? tableView.host : tableView.guest }

    private var link: String? {
        guard let other = tableView.other else { return nil }
        guard let transport = other.transport else { return "no link to \(other.name) now" }
        guard let roundTrip = other.roundTrip else { return "over \(transport)" }
        return "over \(transport), round trip \(RoundTripText.text(roundTrip))"
    }

    private var watchers: String? {
        switch tableView.table.watcherCount {
        case ...0: nil
        case 1: tableView.ownDisc == nil ? "nobody else watches" : "one watches"
        case let count: tableView.ownDisc == nil ? "\(count) watch, including you" : "\(count) watch"
        }
    }

    // MARK: Addresses and chat

    private func drawAddresses(in area: CellArea, into canvas: inout Canvas) {
        var lines = CellText("Others nearby see this table under the name \(screen.view.name).")
            .lines(of: area.size.columns).map { ($0, Style.plain) }
        let addresses = screen.view.addressesForOthers
        if !addresses.isEmpty {
            lines.append((CellText(""), .plain))
            lines.append((CellText("From elsewhere it is reached at"), .plain))
            for address in addresses {
                let text = CellText("  \(address)").fitting(area.size.columns, ending: glyphs.cut)
                lines.append((text, .bold))
            }
        }
        for (row, line) in zip(area.rows, lines) {
            canvas.write(line.0, at: CellPosition(column: area.origin.column, row: row), line.1)
        }
    }

    private func drawChat(in area: CellArea, into canvas: inout Canvas) {
        var lines: [(text: CellText, disc: Disc?, named: Int)] = []
        for line in screen.chat.lines.reversed() where lines.count < area.size.rows {
            let speaker = CellText(line.speaker).fitting(20, ending: glyphs.cut)
            let wrapped = CellText("\(speaker.string): \(line.text)").lines(of: area.size.columns)
            let parts = wrapped.enumerated().map { index, text in
                (text: text, disc: index == 0 ? line.disc : nil, named: speaker.columns + 1)
            }
            lines = parts + lines
        }
        for (row, line) in zip(area.rows, lines.suffix(max(area.size.rows, 0))) {
            let position = CellPosition(column: area.origin.column, row: row)
            canvas.write(line.text, at: position)
            if let disc = line.disc {
                canvas.write(line.text, at: position, Palette.name(disc), columns: line.named)
            }
        }
    }
}

/// Formats round-trip times for people.
enum RoundTripText {
    static func text(_ duration: Duration) -> String {
        let microseconds = max(Moment.Span(duration).nanoseconds / 1000, 0)
        return switch microseconds {
        case ..<10_000: "\(tenths(microseconds / 100)) ms"
        case ..<1_000_000: "\(microseconds / 1000) ms"
        default: "\(tenths(microseconds / 100_000)) s"
        }
    }

    private static func tenths(_ count: Int64) -> String { "\(count / 10).\(count % 10)" }
}
