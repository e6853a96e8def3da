/// Text as a terminal shows it: each character with the number of cells that it takes, and nothing that could harm the
/// terminal.
///
/// Control characters and characters that change the direction of text become U+FFFD; tabs and line ends become spaces.
/// Terminals give different widths to some characters: families of emoji, skin tones, many accents on one letter. Of
/// these, only the part on which all terminals agree is kept.
public struct CellText: Hashable, Sendable {
    /// One character of the text.
    struct Piece: Hashable, Sendable {
        var character: Character
        /// The number of cells: one or two.
        var columns: Int
    }

    private(set) var pieces: [Piece]
    /// The number of cells that the text takes in one row.
    public private(set) var columns: Int

    /// The most accents on one character; nobody needs more.
    private static let mostMarks = 3

    /// Creates the text as it will be shown.
    public init(_ text: some StringProtocol) { self.init(text.map(Self.piece)) }

    private init(_ pieces: [Piece]) {
        self.pieces = pieces
        columns = pieces.reduce(0) { $0 + $1.columns }
    }

    /// The text as a string.
    public var string: String { String(pieces.map(\.character)) }

    /// Returns as much of the text as fits into `columns`. If that is not all, it ends with `ending`.
    public func fitting(_ columns: Int, ending: Character = "…") -> CellText {
        guard self.columns > columns else { return self }
        let ending = Self.piece(ending)
        let rest = columns - ending.columns
        guard rest >= 0 else { return CellText([]) }
        return CellText(Array(pieces[..<end(of: 0, within: rest)]) + [ending])
    }

    /// Returns the text in lines of at most `columns`, broken at spaces where there are any. There is at least one
    /// line, which may be empty.
    public func lines(of columns: Int) -> [CellText] {
        let columns = max(columns, 2)
        var lines: [CellText] = []
        var start = 0
        while start < pieces.count {
            var end = end(of: start, within: columns)
            var next = end
            if end < pieces.count, let space = pieces[start...end].lastIndex(where: { $0.character == " " }),
                space > start
            {
                end = space
                next = space + 1
            }
            lines.append(CellText(Array(pieces[start..<end])))
            start = next
        }
        return lines.isEmpty ? [self] : lines
    }

    /// Returns where the pieces from `start` on would take more than `columns`.
    private func end(of start: Int, within columns: Int) -> Int {
        var (end, rest) = (start, columns)
        while end < pieces.count, pieces[end].columns <= rest {
            rest -= pieces[end].columns
            end += 1
        }
        return end
    }

    /// Returns the visible form of one character.
    static func piece(_ character: Character) -> Piece {
        if let ascii = character.asciiValue, 0x20...0x7E ~= ascii {
            return Piece(character: character, columns: 1)
        }
        var shown = String.UnicodeScalarView()
        var columns = 0
        var marks = 0
        scalars: for scalar in character.unicodeScalars {
            switch ScalarWidth(scalar) {
            case .cells(let more):
                guard columns + more <= 2 else { break scalars }
                columns += more
                shown.append(scalar)
            case .mark:
                guard columns > 0 else { return replacement }
                guard marks < mostMarks else { continue }
                marks += 1
                shown.append(scalar)
            case .joiner:
                guard columns > 0 else { return replacement }
            case .blank: return Piece(character: " ", columns: 1)
            case .harmful: return replacement
            }
        }
        let text = String(shown)
        // Without the scalars that were left out, the rest may no longer be one character.
        guard let first = text.first, text.index(after: text.startIndex) == text.endIndex else {
            return text.first.map(piece) ?? replacement
        }
        return Piece(character: first, columns: columns)
    }

    private static let replacement = Piece(character: "\u{FFFD}", columns: 1)
}
