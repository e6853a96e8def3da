/// Breaks text into lines.
enum Paragraphs {
    enum Piece: Hashable {
        case flowing(String)
        /// Lines that stay as they are.
        case fixed([String])
    }

    /// The paragraphs of a text: empty lines separate them, a line that begins with a space stays as it is.
    static func pieces(of text: String) -> [Piece] {
        var pieces: [Piece] = []
        var isNew = true
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            let isEmpty = line.allSatisfy(\.isWhitespace)
            switch (pieces.last, line.first == " ") {
            case _ where isEmpty: break
            case (.fixed(let lines), true) where !isNew: pieces[pieces.count - 1] = .fixed(lines + [line])
            case (_, true): pieces.append(.fixed([line]))
            case (.flowing(let start), false) where !isNew:
                pieces[pieces.count - 1] = .flowing("\(start) \(line)")
            case (_, false): pieces.append(.flowing(line))
            }
            isNew = isEmpty
        }
        return pieces
    }

    /// The lines of a text with an empty one between its paragraphs.
    static func lines(of text: String, width: Int) -> [String] {
        Array(
            pieces(of: text).map { piece in
                switch piece {
                case .flowing(let words): wrap(words.split(separator: " ").map(String.init), width: width)
                case .fixed(let lines): lines
                }
            }.joined(separator: [""]))
    }

    /// As many of the words on each line as fit. A word longer than a line has one of its own, and goes beyond it.
    static func wrap(_ words: [String], width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in words {
            if line.isEmpty {
                line = word
            } else if line.count + 1 + word.count <= width {
                line += " \(word)"
            } else {
                lines.append(line)
                line = word
            }
        }
        return line.isEmpty ? lines : lines + [line]
    }
}
