import Arguments
import Terminal

/// The options that every command takes for its output.
struct OutputOptions: Sendable {
    /// The format of the standard output.
    enum Form: Sendable {
        /// Words for a person.
        case text
        /// One JSON object at the end.
        case json
        /// One JSON object per line as things happen, with the summary last.
        case jsonLines
    }

    var form = Form.text
    /// Whether colours are off, even if the terminal has them.
    var isColourless = false
    /// Whether only results are written: no progress, no remarks.
    var isQuiet = false

    static let options = OptionGroup(
        "Output", isShared: true,
        Option(flag: "quiet", short: "q", "writes only results and errors: no progress and no remarks"),
        Option(flag: "json", "prints one JSON object at the end instead of text"),
        Option(flag: "json-lines", "prints one JSON object per line, as things happen"),
        Option(flag: "no-color", "turns colours off, as NO_COLOR in the environment does")
    ) { isQuiet, json, lines, isColourless in
        if json, lines { throw UsageError("--json and --json-lines cannot be used together") }
        return OutputOptions(
            form: json ? .json : lines ? .jsonLines : .text, isColourless: isColourless, isQuiet: isQuiet)
    }

    /// Whether text written to `descriptor` has colours.
    func showsColours(on descriptor: Int32) -> Bool {
        !isColourless && isTerminal(descriptor) && TerminalTraits.ofThisProcess.colours != .none
    }
}
