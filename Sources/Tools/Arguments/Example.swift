/// An example command line in a command's help.
public struct Example: Hashable, Sendable {
    /// The command line behind the command's own name.
    let line: String
    let summary: String

    /// Creates an example.
    ///
    /// - Parameters:
    ///   - line: The command line behind the command's name, as a user types it; single quotes hold a word together.
    ///   - summary: The effect of the example.
    public init(_ line: String, _ summary: String) {
        self.line = line
        self.summary = summary
    }

    /// Returns the whole command line.
    func written(for command: Outline) -> String { line.isEmpty ? command.title : "\(command.title) \(line)" }

    /// The words of the line, as a shell would pass them to the program.
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
