/// A worked command line in a command's help.
public struct Example: Hashable, Sendable {
    /// What comes after the command's own name.
    let line: String
    let summary: String

    /// An example.
    ///
    /// - Parameters:
    ///   - line: What comes after the command's name, as one types it; single quotes hold a word together.
    ///   - summary: What it does.
    public init(_ line: String, _ summary: String) {
        self.line = line
        self.summary = summary
    }

    /// The whole command line.
    func written(for command: Outline) -> String { line.isEmpty ? command.title : "\(command.title) \(line)" }

    /// The line's words as a shell would hand them over.
    var arguments: [String] {
        var words: [String] = []
        var word: String?
        var isQuoted = false
        for character in line {
            if character == "'" {
                isQuoted.toggle()
                word = word ?? ""
            } else if character == " ", !isQuoted {
                if let whole = word { words.append(whole) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        return word.map { words + [$0] } ?? words
    }
}
