/// One line of text while the user types it: a chat line, a name, an address.
public struct LineEditor: Hashable, Sendable {
    /// The most bytes of UTF-8. The line does not accept more.
    public let limit: Int
    private var before: String
    private var after = ""

    /// Creates a line that begins with `text`, as far as the limit allows, with the cursor at its end.
    public init(_ text: String = "", limit: Int) {
        self.limit = limit
        before = ""
        insert(text)
    }

    /// The text of the line.
    public var text: String { before + after }

    /// Whether the line is empty.
    public var isEmpty: Bool { before.isEmpty && after.isEmpty }

    /// Applies an input to the line, and returns whether it means anything there. Enter means nothing here: the caller
    /// decides what follows.
    public mutating func handle(_ input: Input) -> Bool {
        switch input {
        case .character(let scalar): insert(scalar)
        case .paste(let text): insert(text)
        case .key(.left), .control("b"): moveLeft()
        case .key(.right), .control("f"): moveRight()
        case .key(.home), .control("a"): moveHome()
        case .key(.end), .control("e"): moveToEnd()
        case .key(.backspace): _ = before.popLast()
        case .key(.delete), .control("d"): if !after.isEmpty { after.removeFirst() }
        case .control("u"): before = ""
        case .control("k"): after = ""
        case .control("w"): removeWord()
        default: return false
        }
        return true
    }

    /// Empties the line, and returns its text.
    public mutating func take() -> String {
        defer { (before, after) = ("", "") }
        return text
    }

    /// Draws the part of the line that has the cursor from `position` on, and puts the canvas's cursor there.
    public func draw(
        into canvas: inout Canvas, at position: CellPosition, columns: Int, _ style: Style = .plain
    ) {
        guard columns > 0 else { return }
        let cursor = CellText(before).columns
        // The visible part moves in steps of half its width, so that there is text on both sides of the cursor.
        let step = max(columns / 2, 1)
        let hidden = cursor < columns ? 0 : (cursor - columns + step) / step * step
        var line = Canvas(TerminalSize(columns: columns, rows: 1))
        line.fill(line.area, style)
        line.write(text, at: CellPosition(column: -hidden, row: 0), style)
        canvas.place(line, at: position)
        canvas.cursor = CellPosition(column: position.column + cursor - hidden, row: position.row)
    }

    // MARK: Editing

    private mutating func insert(_ text: String) {
        for character in text {
            let accepted = character.unicodeScalars.compactMap(Self.accepted)
            let whole = character.isNewline ? " " : String(String.UnicodeScalarView(accepted))
            guard before.utf8.count + after.utf8.count + whole.utf8.count <= limit else { return }
            before += whole
        }
    }

    private mutating func insert(_ scalar: Unicode.Scalar) {
        guard let scalar = Self.accepted(scalar),
            before.utf8.count + after.utf8.count + UTF8.width(scalar) <= limit
        else { return }
        before.unicodeScalars.append(scalar)
    }

    /// Returns a typed scalar as the line accepts it; nil if it could harm a reader.
    private static func accepted(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        switch ScalarWidth(scalar) {
        case .cells, .mark, .joiner: scalar
        case .blank: " "
        case .harmful: nil
        }
    }

    private mutating func moveLeft() {
        if let last = before.popLast() { after.insert(last, at: after.startIndex) }
    }

    private mutating func moveRight() {
        if !after.isEmpty { before.append(after.removeFirst()) }
    }

    private mutating func moveHome() { (before, after) = ("", text) }

    private mutating func moveToEnd() { (before, after) = (text, "") }

    private mutating func removeWord() {
        while before.last == " " { before.removeLast() }
        while !before.isEmpty, before.last != " " { before.removeLast() }
    }
}
