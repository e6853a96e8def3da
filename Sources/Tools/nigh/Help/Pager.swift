import Glibc
import ProgramSupport

/// Shows a text page by page.
enum Pager {
    /// Shows `text` with the program that `PAGER` names, or with `less`; without one of them, prints it. Returns false
    /// if the text could not be shown.
    static func show(_ text: String) -> Bool {
        let named = getenv("PAGER").map { String(cString: $0) } ?? ""
        // -F ends at once if all fits, -R shows colours, -X leaves the text on the screen.
        let command = named.isEmpty ? "command -v less >/dev/null && exec less -FRX || exec cat" : named
        // A pager that ends early is no failure.
        signal(SIGPIPE, SIG_IGN)
        guard let pipe = popen(command, "we") else { return LineOutput.write(text, to: STDOUT_FILENO) }
        // From here on, Ctrl-C is for the pager.
        signal(SIGINT, SIG_IGN)
        fputs(text, pipe)
        let status = pclose(pipe)
        // The shell says so if it did not find the program, or could not start it.
        guard status < 0 || ![126, 127].contains(status >> 8 & 0xFF) else {
            return LineOutput.write(text, to: STDOUT_FILENO)
        }
        return status >= 0
    }
}
