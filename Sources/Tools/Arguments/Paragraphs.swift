/// Breaks text into lines.
package enum Paragraphs {
    enum Piece: Hashable {
        case flowing(String)
        /// Lines that stay as they are.
        case fixed([String])
    }

    /// Returns the paragraphs of a text. Empty lines separate them; a line that begins with a space stays as it is.
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

    /// Returns the lines of a text, with an empty line between paragraphs.
    static func lines(of text: String, width: Int) -> [String] {
        Array(
            pieces(of: text).map { piece in
                switch piece {
                case .flowing(let words): wrap(words.split(separator: " ").map(String.init), width: width)
                case .fixed(let lines): lines
                }
            }.joined(separator: [""]))
    }

    /// Puts as many words on each line as fit. A word that is longer than a line gets a line of its own, and exceeds
    /// it.
    package static func wrap(_ words: [String], width: Int) -> [String] {
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
