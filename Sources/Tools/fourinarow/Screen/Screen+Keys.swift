import FourInARow
import NighCore
import Terminal

// Handles keys and the mouse. Some mean the same everywhere, others depend on the current question, then on the current
// place.
extension Screen {
    /// Handles an input on a terminal of this size, and returns the person's requests to the program.
    mutating func handle(_ input: Input, size: TerminalSize, now: Moment) -> [UserRequest] {
        switch input {
        case .control("c"): return [.quit]
        case .control("z"): return [.suspend]
        default: break
        }
        // On a terminal that is too small, the person sees nothing to act on.
        guard let layout = layout(size) else { return [] }
        if case .help = prompt {
            if input.isPress { prompt = nil }
            return []
        }
        let previous = lastPress
        if input.isPress { lastPress = input }
        // While the person writes, all input belongs to that line.
        if case .chat(let line) = prompt { return handleInChat(input, line) }
        if let seatRequest {
            return answer(seatRequest, input) ?? handleAtPlace(input, previous, layout, now)
        }
        if isSeatOffered, case nil = prompt {
            switch input.letter {
            case "y": return [.answerOffer(takesSeat: true)]
            case "n": return [.answerOffer(takesSeat: false)]
            default: break
            }
        }
        switch prompt {
        case .resign: return decide(input, [.act(.resign)])
        case .leave: return decide(input, [.leave])
        case .level(let level): return chooseLevel(input, level)
        case .chat, .help, nil: return handleAtPlace(input, previous, layout, now)
        }
    }

    private mutating func handleAtPlace(
        _ input: Input, _ previous: Input?, _ layout: Layout, _ now: Moment
    ) -> [UserRequest] {
        switch input {
        case .character("?"), .key(.function(1)):
            prompt = .help
            return []
        default: break
        }
        switch view.place {
        case .lobby: return handleInLobby(input, layout, now)
        case .joining: return input == .key(.escape) || input == .character("q") ? [.leave] : []
        case .hosting(let tableView), .visiting(let tableView):
            return handleAtTable(input, previous, tableView, layout, now)
        }
    }

    // MARK: Questions

    /// Handles a yes or no to a peer that wants to play. Returns nil for any other key.
    private mutating func answer(_ seatRequest: SeatRequest, _ input: Input) -> [UserRequest]? {
        switch input.letter {
        case "y": answered.insert(seatRequest.id)
        case "n": answered.insert(seatRequest.id)
        default: return nil
        }
        return [.answer(seatRequest.id, accept: input.letter == "y")]
    }

    private mutating func decide(_ input: Input, _ requests: [UserRequest]) -> [UserRequest] {
        if input.letter == "y" {
            prompt = nil
            return requests
        }
        if input.letter == "n" || input == .key(.escape) { prompt = nil }
        return []
    }

    private mutating func chooseLevel(_ input: Input, _ level: Int) -> [UserRequest] {
        var level = level
        switch input {
        case .key(.enter):
            prompt = nil
            return [.playBot(level: level)]
        case .key(.escape), .character("q"):
            prompt = nil
            return []
        case .key(.up), .key(.right), .character("+"): level += 1
        case .key(.down), .key(.left), .character("-"): level -= 1
        case .key(.home): level = Prompt.levels.lowerBound
        case .key(.end): level = Prompt.levels.upperBound
        case .character(let scalar): level = Character(scalar).wholeNumberValue ?? level
        default: return []
        }
        prompt = .level(min(max(level, Prompt.levels.lowerBound), Prompt.levels.upperBound))
        return []
    }

    private mutating func handleInChat(_ input: Input, _ line: LineEditor) -> [UserRequest] {
        var line = line
        switch input {
        case .key(.escape):
            prompt = nil
            return []
        case .key(.enter):
            prompt = nil
            return SafeText(fitting: line.take()).map { [.act(.say($0))] } ?? []
        default:
            if line.handle(input) { prompt = .chat(line) }
            return []
        }
    }

    // MARK: In the lobby

    private mutating func handleInLobby(_ input: Input, _ layout: Layout, _ now: Moment) -> [UserRequest] {
        let tables = view.tables
        switch input {
        case .key(.up): selection.move(-1, in: tables)
        case .key(.down): selection.move(1, in: tables)
        case .key(.pageUp): selection.move(-layout.list.size.rows, in: tables)
        case .key(.pageDown): selection.move(layout.list.size.rows, in: tables)
        case .key(.home): selection.choose(0, in: tables)
        case .key(.end): selection.choose(tables.count - 1, in: tables)
        case .key(.enter): return join()
        case .character("w"): return selection.table(in: tables).map { [.join($0.id, .watch)] } ?? []
        case .character("h"): return [.host]
        case .character("b"): prompt = .level(Prompt.defaultLevel)
        case .character("q"): return [.quit]
        case .mouse(let mouse): return handleInLobby(mouse, layout, now)
        default: break
        }
        return []
    }

    /// Goes to the chosen table: to play if the seat is free, otherwise to watch.
    private func join() -> [UserRequest] {
        selection.table(in: view.tables).map { [.join($0.id, $0.hasFreeSeat ? .seat : .watch)] } ?? []
    }

    private mutating func handleInLobby(_ mouse: MouseInput, _ layout: Layout, _ now: Moment) -> [UserRequest]
    {
        let tables = view.tables
        switch mouse.action {
        case .wheelUp: selection.move(-1, in: tables)
        case .wheelDown: selection.move(1, in: tables)
        case .press(.left):
            guard let chosen = selection.index(in: tables), layout.list.contains(mouse.position) else {
                break
            }
            let index =
                layout.firstListed(tables.count, chosen: chosen) + mouse.position.row - layout.list.origin.row
            guard tables.indices.contains(index) else { break }
            if selection.click(index, in: tables, now: now) { return join() }
        case .press, .release, .move: break
        }
        return []
    }

    // MARK: At a table

    private mutating func handleAtTable(
        _ input: Input, _ previous: Input?, _ tableView: TableView, _ layout: Layout, _ now: Moment
    ) -> [UserRequest] {
        switch input {
        case .character("q"):
            guard isPlayingHere else { return [.leave] }
            prompt = .leave
        case .character("p"): toggleCode(now: now)
        case .character("x"): if may(.resign, tableView, now) { prompt = .resign }
        case .character("r"): return may(.rematch, tableView, now) ? [.act(.rematch)] : []
        case .character("c"):
            // Any text shows whether somebody is there to read it.
            if let text = SafeText("?"), may(.say(text), tableView, now) {
                prompt = .chat(LineEditor(limit: SafeText.byteLimit))
            }
        default: return tableView.ownDisc == nil ? [] : handleOnBoard(input, previous, tableView, layout, now)
        }
        return []
    }

    private mutating func handleOnBoard(
        _ input: Input, _ previous: Input?, _ tableView: TableView, _ layout: Layout, _ now: Moment
    ) -> [UserRequest] {
        switch input {
        case .key(.left): column = Column(column.index - 1) ?? column
        case .key(.right): column = Column(column.index + 1) ?? column
        case .key(.home): column = Column.allCases.first ?? column
        case .key(.end): column = Column.allCases.last ?? column
        case .key(.enter), .key(.down), .character(" "): return drop(tableView, now)
        case .character(let scalar):
            guard let named = Column(key: scalar) else { return [] }
            if input == previous, named == column {
                lastPress = nil
                return drop(tableView, now)
            }
            column = named
        case .mouse(let mouse):
            guard let column = layout.board.column(at: mouse.position) else { return [] }
            switch mouse.action {
            case .move: self.column = column
            case .press(.left):
                self.column = column
                return drop(tableView, now)
            case .press, .release, .wheelUp, .wheelDown: break
            }
        default: break
        }
        return []
    }

    private mutating func drop(_ tableView: TableView, _ now: Moment) -> [UserRequest] {
        may(.move(column), tableView, now) ? [.act(.move(column))] : []
    }

    /// Returns whether the table allows the action. If not, shows why.
    private mutating func may(_ action: Action, _ tableView: TableView, _ now: Moment) -> Bool {
        let breach = tableView.breach(of: action)
        if let breach { showRefusal(breach, now: now) }
        return breach == nil
    }
}

extension Column {
    /// The column of a key: 1 to 7, or its letter. The lowercase c opens the chat before it gets here.
    fileprivate init?(key: Unicode.Scalar) {
        switch key {
        case "1"..."7": self.init(Int(key.value) - Int(("1" as Unicode.Scalar).value))
        case "A"..."G": self.init(Int(key.value) - Int(("A" as Unicode.Scalar).value))
        case "a"..."g": self.init(Int(key.value) - Int(("a" as Unicode.Scalar).value))
        default: return nil
        }
    }
}

extension Input {
    /// The lowercase letter of a key that writes one; nil for everything else.
    fileprivate var letter: Unicode.Scalar? {
        guard case .character(let scalar) = self else { return nil }
        return scalar.properties.lowercaseMapping.unicodeScalars.first
    }

    /// Whether something was pressed. Moving the mouse and changing the focus are not presses.
    fileprivate var isPress: Bool {
        switch self {
        case .character, .key, .control, .alternate, .paste: true
        case .mouse(let mouse): if case .press = mouse.action { true } else { false }
        case .focus: false
        }
    }
}
