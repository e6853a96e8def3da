/// Text as a terminal shows it: each character with the cells it takes, harmless whoever wrote it.
///
/// Controls and what turns the direction of text become U+FFFD, tabs and line ends spaces. Of a character that terminals give
/// different widths (families of emoji, skin tones, heaps of accents) only what all of them agree on is kept.
public struct CellText: Hashable, Sendable {
    /// One character of it.
    struct Piece: Hashable, Sendable {
        var character: Character
        /// One or two.
        var columns: Int
    }

    private(set) var pieces: [Piece]
    /// How many cells it takes side by side.
    public private(set) var columns: Int

    /// More accents than that on one character serve nobody.
    private static let mostMarks = 3

    /// The text as it will be shown.
    public init(_ text: some StringProtocol) { self.init(text.map(Self.piece)) }

    private init(_ pieces: [Piece]) {
        self.pieces = pieces
        columns = pieces.reduce(0) { $0 + $1.columns }
    }

    /// The same as a string.
    public var string: String { String(pieces.map(\.character)) }

    /// As much as fits into `columns`; where that is not all, `ending` says so.
    public func fitting(_ columns: Int, ending: Character = "…") -> CellText {
        guard self.columns > columns else { return self }
        let ending = Self.piece(ending)
        let rest = columns - ending.columns
        guard rest >= 0 else { return CellText([]) }
        return CellText(Array(pieces[..<end(of: 0, within: rest)]) + [ending])
    }

    /// The same in lines of at most `columns`, broken at spaces where there are any. At least one, which may be empty.
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

    /// Where the pieces from `start` on come to more than `columns`.
    private func end(of start: Int, within columns: Int) -> Int {
        var (end, rest) = (start, columns)
        while end < pieces.count, pieces[end].columns <= rest {
            rest -= pieces[end].columns
            end += 1
        }
        return end
    }

    /// What is shown of one character.
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
        // What was left out may have held the rest together.
        guard let first = text.first, text.index(after: text.startIndex) == text.endIndex else {
            return text.first.map(piece) ?? replacement
        }
        return Piece(character: first, columns: columns)
    }

    private static let replacement = Piece(character: "\u{FFFD}", columns: 1)
}
