import Glibc

/// Why a terminal could not be taken over.
public enum TerminalFailure: Error, Equatable, CustomStringConvertible {
    /// One of the descriptors is not a terminal.
    case noTerminal
    /// The terminal can be written to only line by line.
    case dumb
    /// This process has already taken over a terminal.
    case takenAlready
    /// The system refused something, with this error number.
    case system(String, Int32)

    /// The problem and its remedy.
    public var description: String {
        switch self {
        case .noTerminal: "this needs a terminal: input and output must not go to a file or another program"
        case .dumb: "this terminal cannot move its cursor: set TERM to its type, as in TERM=xterm-256color"
        case .takenAlready: "this process has taken over a terminal already"
        case .system(let what, let number): "\(what): \(String(cString: strerror(number)))"
        }
    }
}
