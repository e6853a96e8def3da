/// What a command line asked for.
public enum Outcome<Action: Sendable>: Sendable {
    /// What a command's closure made.
    case action(Action)
    /// Help or the version, to be printed as it is; each line has its end. The program then ends with status 0.
    case text(String)
}

extension Outcome: Equatable where Action: Equatable {}
