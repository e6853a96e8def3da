/// The shells for which a program can print a completion script.
///
/// A program that has a command for this declares `Operand("SHELL", .choice(of: Shell.self), "…")`.
public enum Shell: String, CaseIterable, Hashable, Sendable {
    /// GNU Bash 4.4 or later.
    case bash
    /// The Z shell, after `compinit`.
    case zsh
    /// The friendly interactive shell, 3.0 or later.
    case fish
}
