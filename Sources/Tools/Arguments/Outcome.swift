/// The result of parsing a command line.
public enum Outcome<Action: Sendable>: Sendable {
    /// The action that the command's closure made.
    case action(Action)
    /// Help or the version, to be printed unchanged. Each line ends with a newline. Afterwards the program ends with
    /// status 0.
    case text(String)
}

extension Outcome: Equatable where Action: Equatable {}
