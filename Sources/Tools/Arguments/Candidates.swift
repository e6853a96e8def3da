/// The completions that a shell offers for a value.
public enum Candidates: Hashable, Sendable {
    /// Nothing: only a person knows the value.
    case none
    /// One of these words.
    case words([String])
    /// The path of a file.
    case files
    /// The path of a directory.
    case directories
    /// The lines that this shell command prints. The shell runs it when the user presses Tab. The lines are quoted
    /// before they reach the command line, so they may come from strangers.
    case lines(of: String)
    /// The lines that this shell command prints, and the path of a file.
    case linesAndFiles(of: String)
}
