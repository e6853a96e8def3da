import Arguments
import Terminal

/// How a command tells what it found: the options that every command takes.
struct OutputOptions: Sendable {
    /// What stands on the standard output.
    enum Form: Sendable {
        /// Words for a person.
        case words
        /// One object of JSON at the end.
        case json
        /// An object of JSON a line, as things happen, and the summary last.
        case jsonLines
    }

    var form = Form.words
    /// Whether colours are left out, whatever the terminal can.
    var isColourless = false

    static let options = OptionGroup(
        "Output",
        Option(flag: "json", "one JSON object at the end instead of words"),
        Option(flag: "json-lines", "a JSON object a line, as things happen"),
        Option(flag: "no-color", "no colours; NO_COLOR in the environment does the same")
    ) { json, lines, isColourless in
        if json, lines { throw Misuse("--json and --json-lines exclude each other") }
        return OutputOptions(
            form: json ? .json : lines ? .jsonLines : .words, isColourless: isColourless)
    }

    /// Whether there are colours in what is written to `descriptor`.
    func showsColours(on descriptor: Int32) -> Bool {
        !isColourless && isTerminal(descriptor) && TerminalTraits.ofThisProcess.colours != .none
    }
}
