@testable import Terminal

/// A terminal that understands exactly what a painter may write, and records a complaint about everything else.
struct TinyTerminal {
    struct Cell: Equatable {
        var text = " "
        var look = Look()
    }

    struct Look: Equatable {
        var foreground: Int?
        var background: Int?
        var accents: Set<Int> = []
    }

    let size: TerminalSize
    /// The number of cells that an emoji and half a flag take. Real terminals differ in this.
    var (emojiColumns, flagColumns) = (2, 1)
    private(set) var cells: [[Cell]]
    private(set) var column = 0
    private(set) var row = 0
    private(set) var isCursorVisible = true
    private(set) var complaints: [String] = []
    private var look = Look()
    private var lastPrinted: (row: Int, column: Int)?

    init(_ size: TerminalSize) {
        self.size = size
        cells = Array(repeating: Array(repeating: Cell(), count: size.columns), count: size.rows)
    }

    /// Fills the terminal as if another program had written all over it.
    mutating func scribble() {
        for row in 0..<size.rows {
            for column in 0..<size.columns {
                cells[row][column] = Cell(text: "#", look: Look(foreground: 3, background: 4, accents: [7]))
            }
        }
        (column, row, isCursorVisible) = (size.columns / 2, size.rows / 2, true)
        look = Look(foreground: 1, background: 2, accents: [4])
    }

    mutating func take(_ bytes: [UInt8]) {
        var rest = String(decoding: bytes, as: UTF8.self).unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\u{1B}": takeSequence(&rest)
            case "\r": column = 0
            case "\n":
                if row + 1 < size.rows { row += 1 } else { complaints.append("scrolled") }
            case _ where scalar.value < 0x20 || 0x7F...0x9F ~= scalar.value:
                complaints.append("control \(scalar.value)")
            default: write(scalar)
            }
        }
    }

    private mutating func write(_ scalar: Unicode.Scalar) {
        let columns = columns(of: scalar)
        guard columns > 0 else {
            if let lastPrinted {
                cells[lastPrinted.row][lastPrinted.column].text.unicodeScalars.append(scalar)
            }
            return
        }
        // Without wrapping, what does not fit goes to the last cells. Half a flag does not.
        let start = min(column, size.columns - columns)
        if start < column, 0x1F1E6...0x1F1FF ~= scalar.value { return }
        if cells[row][start].text.isEmpty, start > 0 { cells[row][start - 1].text = " " }
        let after = start + columns
        if after < size.columns, cells[row][after].text.isEmpty { cells[row][after].text = " " }
        cells[row][start] = Cell(text: String(scalar), look: look)
        if columns == 2 { cells[row][start + 1] = Cell(text: "", look: look) }
        lastPrinted = (row, start)
        column = start + columns
    }

    private func columns(of scalar: Unicode.Scalar) -> Int {
        switch scalar.value {
        case 0x300...0x36F, 0x20D0...0x20FF: 0
        case 0x1F1E6...0x1F1FF: min(flagColumns, size.columns)
        case 0x1F300...0x1FAFF: min(emojiColumns, size.columns)
        case 0x3041...0xD7A3, 0xFF01...0xFF60: min(2, size.columns)
        default: 1
        }
    }

    private mutating func takeSequence(_ rest: inout Substring.UnicodeScalarView) {
        guard rest.popFirst() == "[" else { return complaints.append("not a control sequence") }
        var parameters = ""
        while let scalar = rest.popFirst() {
            guard 0x40...0x7E ~= scalar.value else {
                parameters.unicodeScalars.append(scalar)
                continue
            }
            return obey(Character(scalar), parameters)
        }
        complaints.append("half a sequence")
    }

    private mutating func obey(_ last: Character, _ parameters: String) {
        let numbers = parameters.split(separator: ";").map { Int($0) ?? -1 }
        let first = numbers.first ?? 1
        switch (last, parameters) {
        case ("h", "?25"): isCursorVisible = true
        case ("l", "?25"): isCursorVisible = false
        case ("h", "?2026"), ("l", "?2026"): break
        case ("J", "2"): for row in 0..<size.rows { erase(row, from: 0) }
        case ("K", ""): erase(row, from: min(column, size.columns - 1))
        case ("m", _): wear(numbers.isEmpty ? [0] : numbers)
        case ("A", _): moveTo(column, row - first)
        case ("B", _): moveTo(column, row + first)
        case ("C", _): moveTo(column + first, row)
        case ("D", _): moveTo(column - first, row)
        case ("H", _): moveTo((numbers.count > 1 ? numbers[1] : 1) - 1, first - 1)
        default: complaints.append("\(parameters)\(last)")
        }
    }

    private mutating func moveTo(_ column: Int, _ row: Int) {
        if !(0..<size.columns ~= column && 0..<size.rows ~= row) { complaints.append("moved outside") }
        self.column = min(max(column, 0), size.columns - 1)
        self.row = min(max(row, 0), size.rows - 1)
    }

    private mutating func erase(_ row: Int, from column: Int) {
        if cells[row][column].text.isEmpty, column > 0 { cells[row][column - 1].text = " " }
        for column in column..<size.columns {
            cells[row][column] = Cell(text: " ", look: Look(background: look.background))
        }
    }

    private mutating func wear(_ numbers: [Int]) {
        var numbers = numbers[...]
        while let number = numbers.popFirst() {
            switch number {
            case 0: look = Look()
            case 1, 2, 4, 7: look.accents.insert(number)
            case 22: look.accents.subtract([1, 2])
            case 24, 27: look.accents.remove(number - 20)
            case 30...37: look.foreground = number - 30
            case 90...97: look.foreground = number - 82
            case 39: look.foreground = nil
            case 40...47: look.background = number - 40
            case 100...107: look.background = number - 92
            case 49: look.background = nil
            case 38, 48:
                if numbers.popFirst() != 5 { complaints.append("colour") }
                if number == 38 {
                    look.foreground = numbers.popFirst()
                } else {
                    look.background = numbers.popFirst()
                }
            default: complaints.append("style \(number)")
            }
        }
    }
}
