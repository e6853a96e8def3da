/// What a ``TerminalSession`` tells.
public enum TerminalEvent: Hashable, Sendable {
    /// Somebody did something.
    case input(Input)
    /// The terminal has another size, and shows nothing of use until something is painted for that.
    case resized(TerminalSize)
    /// There is no terminal any more: its window was closed, or the line to it is cut. The last thing that is told.
    case gone
}
