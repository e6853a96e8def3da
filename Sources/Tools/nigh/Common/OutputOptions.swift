import Arguments
import Terminal

/// The options that every command takes for its output.
struct OutputOptions: Sendable {
    /// What is written to the standard output.
    enum Form: Sendable {
        /// Words for a person.
        case words
        /// One JSON object at the end.
        case json
        /// One JSON object per line as things happen, with the summary last.
        case jsonLines
    }

    var form = Form.words
    /// Whether colours are off, even if the terminal has them.
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

    /// Whether text written to `descriptor` has colours.
    func showsColours(on descriptor: Int32) -> Bool {
        !isColourless && isTerminal(descriptor) && TerminalTraits.ofThisProcess.colours != .none
    }
}
