import FourInARow
import SessionArguments
import Terminal

// The box in the middle, which is drawn over everything else.
extension Screen {
    func drawBox(into canvas: inout Canvas, _ layout: Layout) {
        if case .help = prompt { return draw(help(layout), into: &canvas, layout) }
        if case .chat = prompt { return }
        if let seatRequest { return draw(question(about: seatRequest), into: &canvas, layout) }
        switch prompt {
        case .resign: draw(["Give this game up?  y/n"], into: &canvas, layout)
        case .leave:
            draw(["\(leaveQuestion)  y/n"], into: &canvas, layout)
        case .level(let level): draw(levels(level, layout), into: &canvas, layout)
        case .chat, .help, nil:
            if isSeatOffered {
                draw(["The seat is free. Do you want to play on?  y/n"], into: &canvas, layout)
            } else if case .joining(let name, let role) = view.place {
                draw(joiningLines(name, role), into: &canvas, layout)
            }
        }
    }

    /// The keys for the current question, or nil if there is none.
    var promptKeys: [KeyMeaning]? {
        switch prompt {
        case .help: return [KeyMeaning("any key", "closes this")]
        case .chat: return [KeyMeaning("Enter", "send"), KeyMeaning("Esc", "cancel")]
        case .resign, .leave, .level, nil: break
        }
        if seatRequest != nil {
            return [
                KeyMeaning("y", "accept"), KeyMeaning("n", "decline"), KeyMeaning("?", "all keys"),
                KeyMeaning("q", "leave"),
            ]
        }
        switch prompt {
        case .resign: return [KeyMeaning("y", "give up"), KeyMeaning("n", "play on")]
        case .leave: return [KeyMeaning("y", "leave"), KeyMeaning("n", "play on")]
        case .level:
            return [
                KeyMeaning("1-9 or arrows", "choose"), KeyMeaning("Enter", "play"),
                KeyMeaning("Esc", "cancel"),
            ]
        case .chat, .help, nil:
            guard isSeatOffered else { return nil }
            return [
                KeyMeaning("y", "take the seat"), KeyMeaning("n", "keep watching"), KeyMeaning("q", "leave"),
            ]
        }
    }

    private func question(about seatRequest: SeatRequest) -> [String] {
        var lines = ["\(seatRequest.name) wants to play, over \(seatRequest.transport)."]
        if let warning = seatRequest.warning { lines.append(PlainDialog.asSentence(warning.sentence)) }
        let others = view.seatRequests.count { !answered.contains($0.id) } - 1
        if others > 0 { lines += [others == 1 ? "one more waits" : "\(others) more wait", ""] }
        return lines + ["Accept?  y/n"]
    }

    private var leaveQuestion: String {
        tableView?.isHost == true && tableView?.table.watcherCount ?? 0 > 0
            ? "Leave in the middle of the game? Somebody who watches may take your seat."
            : "Leave in the middle of the game? It ends then."
    }

    private func levels(_ level: Int, _ layout: Layout) -> [String] {
        let gap = layout.panel == nil ? "" : " "
        let numbers = Prompt.levels.map { $0 == level ? "[\($0)]" : gap + "\($0)" + gap }.joined()
        return ["How strong should the machine be?", "", numbers]
    }

    private func joiningLines(_ name: String, _ role: TableRole) -> [String] {
        let what = role == .seat ? "Asking \(name) for a seat" : "Going to watch at the table of \(name)"
        return ["\(what)\(glyphs.dots)", "Esc cancels"]
    }

    /// Returns all keys, or on a small terminal the keys of this place.
    private func help(_ layout: Layout) -> [String] {
        let needed = TerminalSize(
            columns: (Self.allKeys.map(\.count).max() ?? 0) + Self.boxColumns,
            rows: Self.allKeys.count + Self.boxRows)
        if layout.frame.size.holds(needed) { return Self.allKeys }
        return tableView == nil ? Self.lobbyKeys : Self.tableKeys
    }

    private static let lobbyKeys = [
        "up, down  choose", "Enter  join, or watch", "w  watch", "h  host a game", "b  play the machine",
        "q, Ctrl-C  quit",
    ]
    private static let tableKeys = [
        "left, right, 1-7 choose", "Enter, 1-7 again  drop", "c  say something", "x  resign",
        "r  play again", "p  code for phones", "q  leave", "Ctrl-C  quit",
    ]
    private static let allKeys = [
        "In the lobby",
        "  up, down         choose a table     Enter  join it, or watch",
        "  w  watch it      h  host a game     b  play the machine",
        "At a table",
        "  left, right, Home, End              choose a column",
        "  1-7, or a to g, but C with Shift    choose it, again to drop",
        "  Enter, space, down, a click         drop a disc there",
        "  c  say something     x  resign      r  play again",
        "  p  show or hide the code for phones (with --web)",
        "Everywhere",
        "  q  leave, or quit    Ctrl-C  quit   Ctrl-L  redraw",
        "  Ctrl-Z  suspend                     ?  these keys",
    ]

    /// The columns that a box takes beside its text.
    private static let boxColumns = 6
    /// The rows that a box takes beside its text.
    private static let boxRows = 2

    private func draw(_ lines: [String], into canvas: inout Canvas, _ layout: Layout) {
        var texts = lines.flatMap { CellText($0).lines(of: layout.frame.size.columns - Self.boxColumns) }
        // The last line names the key to press.
        let rows = layout.frame.size.rows - Self.boxRows
        if texts.count > rows {
            texts.replaceSubrange(rows - 2..<texts.count - 1, with: [CellText(glyphs.dots)])
        }
        let width = texts.map(\.columns).max() ?? 0
        let size = TerminalSize(columns: width + 4, rows: texts.count + 2)
        let area = CellArea(
            column: layout.frame.origin.column + (layout.frame.size.columns - size.columns) / 2,
            row: layout.frame.origin.row + (layout.frame.size.rows - size.rows) / 2, columns: size.columns,
            rows: size.rows)
        canvas.fill(
            CellArea(
                column: area.origin.column - 1, row: area.origin.row, columns: area.size.columns + 2,
                rows: area.size.rows))
        if glyphs.isUnicode {
            canvas.box(area, .double, .bold)
        } else {
            canvas.fill(area, with: "*", .bold)
            canvas.fill(area.inside)
        }
        for (index, text) in texts.enumerated() {
            canvas.write(
                text, at: CellPosition(column: area.origin.column + 2, row: area.origin.row + 1 + index))
        }
    }
}
