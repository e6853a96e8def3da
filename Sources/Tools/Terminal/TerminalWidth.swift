import Glibc

/// The width of text on a terminal.
public enum TerminalWidth {
    /// The width of help: that of the terminal on the standard output, but at most 100. It is 80 if there is no
    /// terminal, or if it has fewer than 40 columns.
    public static var forHelp: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col >= 40 else { return 80 }
        return min(Int(size.ws_col), 100)
    }
}
