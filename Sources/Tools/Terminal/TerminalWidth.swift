import Glibc

/// How wide text may be.
public enum TerminalWidth {
    /// Help is as wide as the terminal on the standard output, where that is one and not too wide to read.
    public static var forHelp: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col >= 40 else { return 80 }
        return min(Int(size.ws_col), 100)
    }
}
