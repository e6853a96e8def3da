/// The shells that can learn to complete a program's command lines.
///
/// A program that wants a command for it declares `Operand("SHELL", .choice(of: Shell.self), "…")`.
public enum Shell: String, CaseIterable, Hashable, Sendable {
    /// GNU Bash 4.4 or later.
    case bash
    /// The Z shell, with `compinit` done.
    case zsh
    /// The friendly interactive shell, 3.0 or later.
    case fish
}
