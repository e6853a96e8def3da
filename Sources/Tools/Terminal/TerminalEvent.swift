/// An event that a ``TerminalSession`` reports.
public enum TerminalEvent: Hashable, Sendable {
    /// The user did something.
    case input(Input)
    /// The terminal has another size. It shows nothing useful until something is painted for that size.
    case resized(TerminalSize)
    /// The terminal is gone: its window was closed, or the line to it is cut. This is the last event.
    case gone
}
