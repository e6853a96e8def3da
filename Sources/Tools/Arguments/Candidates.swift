/// What a shell offers where a value is to be typed.
public enum Candidates: Hashable, Sendable {
    /// Nothing: only a person knows.
    case none
    /// One of these.
    case words([String])
    /// A file's path.
    case files
    /// A directory's path.
    case directories
    /// The lines that this shell command prints, which the shell runs when somebody presses Tab. What they say is
    /// quoted before it reaches the command line, so it may come from strangers.
    case lines(of: String)
}
